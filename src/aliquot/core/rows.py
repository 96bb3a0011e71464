"""One row of the columns, written anew from a node and what is seated on it.

Used when a node joins, changes, fails or returns. Where what is booked exceeds what is there, free is 0,
never negative, and the excess is returned.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from aliquot.core.columns import DIMS, MAX_NUMA, NodeChunk
from aliquot.core.grants import Seat, bits
from aliquot.core.inventory import Node
from aliquot.core.units import FULL


def row_state(
    chunk: NodeChunk,
    place: int,
    node: Node,
    kind: int,
    mask: int,
    seats: Iterable[Seat],
    *,
    open_to_work: bool,
) -> bool:
    """Write row `place` of `chunk`; True where bookings exceed capacity in any dimension.

    `mask`: cards that may be used. A node closed to work keeps its bookings but offers nothing.
    """
    cards = len(node.cards)
    left = np.zeros((chunk.left.shape[1], DIMS), np.int64)
    for at, card in enumerate(node.cards):
        left[at] = (FULL, card.model.usable_mib, FULL)
    numa = np.zeros((MAX_NUMA, 2), np.int64)
    for at, part in enumerate(node.numa[:MAX_NUMA]):
        numa[at] = (part.cpu_milli, part.host_mib)
    traffic = np.zeros(chunk.traffic.shape[1], np.int64)
    host = np.array([node.cpu_milli, node.host_mib], np.int64)
    busy = 0
    for seat in seats:
        host -= (seat.cpu, seat.host)
        busy |= seat.mask
        for at in bits(seat.mask):
            left[at] -= seat.vector
        for at, cpu, memory in seat.numa:
            numa[at] -= (cpu, memory)
        for edge, rate in seat.edges:
            traffic[edge] += rate
    over = bool((left < 0).any() or (host < 0).any() or (numa < 0).any())
    usable_rows = np.array([bool(mask >> at & 1) for at in range(left.shape[0])])
    chunk.kind[place] = kind
    chunk.usable[place] = mask
    chunk.idle[place] = ((1 << cards) - 1) & ~busy & mask
    chunk.cpu[place], chunk.host[place] = np.maximum(host, 0) if open_to_work else (0, 0)
    chunk.left[place] = np.where(usable_rows[:, None], np.maximum(left, 0), 0)
    chunk.numa_cpu[place] = np.maximum(numa[:, 0], 0) if open_to_work else 0
    chunk.numa_host[place] = np.maximum(numa[:, 1], 0) if open_to_work else 0
    chunk.traffic[place] = traffic
    return over
