"""How long work takes where it runs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.core.speed import FULL_SPEED, Reach, SpeedTable, duration_ms, reach_of
from aliquot.core.topology.wiring import Wiring, pcie, uniform, unknown

HOUR = 3_600_000
TWO_SOCKETS = pcie(8, per_switch=2, per_socket=4)


@pytest.mark.parametrize(
    ("work", "speed", "takes"),
    [
        pytest.param(3 * HOUR, 500, 6 * HOUR, id="3 h at half speed take 6 h"),
        pytest.param(3 * HOUR, 1000, 3 * HOUR, id="full speed"),
        pytest.param(1_000, 3, 333_334, id="rounded up, never early"),
        pytest.param(0, 500, 0, id="nothing to do"),
        pytest.param(850, 850, 1_000, id="a PCIe switch"),
    ],
)
def test_work_takes(work: int, speed: int, takes: int) -> None:
    assert duration_ms(work, speed) == takes


@given(work=st.integers(0, 10**12), speed=st.integers(1, FULL_SPEED))
def test_work_is_done_by_then_and_not_a_millisecond_before(work: int, speed: int) -> None:
    takes = duration_ms(work, speed)
    assert takes * speed >= work * FULL_SPEED
    assert takes == 0 or (takes - 1) * speed < work * FULL_SPEED


@pytest.mark.parametrize(
    ("wiring", "mask", "reach"),
    [
        pytest.param(TWO_SOCKETS, 0, Reach.SINGLE, id="no card"),
        pytest.param(TWO_SOCKETS, 0b1000, Reach.SINGLE, id="one card"),
        pytest.param(TWO_SOCKETS, 0b0011, Reach.SWITCH, id="one switch"),
        pytest.param(TWO_SOCKETS, 0b0101, Reach.BRIDGE, id="one socket"),
        pytest.param(TWO_SOCKETS, 0b1_0001, Reach.SOCKET, id="two sockets"),
        pytest.param(TWO_SOCKETS, 0b1_0011, Reach.SOCKET, id="the worst link counts"),
        pytest.param(uniform(8, 18), 0b1111_1111, Reach.NVLINK, id="NVSwitch"),
        pytest.param(unknown(4), 0b11, Reach.UNKNOWN, id="nobody said"),
        pytest.param(None, 0b11, Reach.UNKNOWN, id="no wiring at all"),
        pytest.param(None, 0b10, Reach.SINGLE, id="one card needs no wiring"),
    ],
)
def test_the_reach_of_a_set(wiring: Wiring | None, mask: int, reach: Reach) -> None:
    assert reach_of(wiring, mask) is reach


def test_the_table_names_every_reach_and_far_is_never_faster_than_near() -> None:
    table = SpeedTable()
    speeds = [table.speed(reach, shared=False) for reach in Reach if reach is not Reach.UNKNOWN]
    assert speeds == sorted(speeds, reverse=True)
    assert table.speed(Reach.UNKNOWN, shared=False) == FULL_SPEED, "unknown is not slow, and not 0"


def test_sharing_costs_what_the_mechanism_costs() -> None:
    table = SpeedTable(sharing_milli=900)
    assert table.speed(Reach.SWITCH, shared=True) == 765
    assert table.speed(Reach.SWITCH, shared=False) == 850
