"""How fast a job runs where it is placed: a factor of its best speed, by the worst link of its set.

The default table is an assumption to be replaced by measurement: a set joined by NVLink runs at full speed,
one inside a PCIe switch or host bridge slower, and one scattered over nodes at less than half, after the
common observation that scattered training loses over half of its speed.
"""

from __future__ import annotations

from enum import Enum

import msgspec

from aliquot.core.topology.links import Link
from aliquot.core.topology.sets import set_class
from aliquot.core.topology.wiring import Wiring

FULL_SPEED = 1000


class Reach(Enum):
    """The worst link that joins the cards of a set, near to far."""

    SINGLE = "single"
    NVLINK = "nvlink"
    SWITCH = "pcie-switch"
    BRIDGE = "host-bridge"
    SOCKET = "cross-socket"
    NETWORK = "network"
    UNKNOWN = "unknown"


class SpeedTable(msgspec.Struct, frozen=True):
    """Milli of full speed by reach. A job without a need for links ignores it."""

    by_reach: tuple[tuple[Reach, int], ...] = (
        (Reach.SINGLE, 1000),
        (Reach.NVLINK, 1000),
        (Reach.SWITCH, 850),
        (Reach.BRIDGE, 750),
        (Reach.SOCKET, 600),
        (Reach.NETWORK, 500),
        (Reach.UNKNOWN, 1000),
    )
    sharing_milli: int = 1000  # speed of a job on a shared card; the overhead of the mechanism

    def speed(self, reach: Reach, shared: bool) -> int:
        """Milli of full speed for a set of `reach`, on shared cards or not."""
        base = dict(self.by_reach)[reach]
        return base * self.sharing_milli // FULL_SPEED if shared else base


_REACH_OF_LINK = {
    Link.SELF: Reach.SINGLE,
    Link.NV: Reach.NVLINK,
    Link.PIX: Reach.SWITCH,
    Link.PXB: Reach.SWITCH,
    Link.PHB: Reach.BRIDGE,
    Link.NODE: Reach.BRIDGE,
    Link.SYS: Reach.SOCKET,
    Link.UNKNOWN: Reach.UNKNOWN,
}


def reach_of(wiring: Wiring | None, mask: int) -> Reach:
    """The worst link among the cards `mask` of one machine; UNKNOWN where the wiring is."""
    if mask.bit_count() <= 1:
        return Reach.SINGLE
    return Reach.UNKNOWN if wiring is None else _REACH_OF_LINK[set_class(wiring, mask)]


def duration_ms(work_ms: int, speed_milli: int) -> int:
    """How long `work_ms` of full-speed work takes; rounded up. 3 h at 500 milli takes 6 h."""
    return -(-work_ms * FULL_SPEED // speed_milli)
