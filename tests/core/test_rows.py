"""A row written anew from a node and what is seated on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from aliquot.core.columns import blank_chunk
from aliquot.core.grants import Seat
from aliquot.core.inventory import Node
from aliquot.core.rows import row_state
from aliquot.core.slices import Vector
from tests.support.build import L40S, T4, a_node

WHOLE = Vector(1000, 14_917, 1000)
NODE = a_node("n", 3, model=T4, cpu=8_000, host=32_000, numa=2)


def write(node: Node, seats: Sequence[Seat] = (), mask: int = 0b111, open_to_work: bool = True) -> Any:
    """(columns of the row, whether it is over-committed); the chunk is one card wider than the node."""
    chunk = blank_chunk(2, len(node.cards) + 1)
    over = row_state(chunk, 1, node, 5, mask, seats, open_to_work=open_to_work)
    assert all(not column[0].any() or name == "kind" for name, column in chunk._asdict().items())
    return {name: column[1].tolist() for name, column in chunk._asdict().items()}, over


def test_an_empty_machine_offers_what_it_has_less_what_the_driver_keeps() -> None:
    row, over = write(NODE)
    assert not over
    assert row["kind"] == 5
    assert (row["usable"], row["idle"]) == (0b111, 0b111)
    assert (row["cpu"], row["host"]) == (8_000, 32_000)
    assert row["left"] == [[1000, 14_917, 1000]] * 3 + [[0, 0, 0]]
    assert row["numa_cpu"][:3] == [4_000, 4_000, 0]
    assert row["numa_host"][:3] == [16_000, 16_000, 0]


def test_tenants_are_subtracted_in_every_dimension() -> None:
    seats = [
        Seat(0, 0b001, WHOLE, True, 1_000, 2_000, ((0, 1_000, 2_000),), ((0, 250),)),
        Seat(0, 0b110, Vector(250, 3_000, 100), edges=((0, 50), (3, 7))),
    ]
    row, over = write(NODE, seats)
    assert not over
    assert row["idle"] == 0
    assert row["left"][:3] == [[0, 0, 0], [750, 11_917, 900], [750, 11_917, 900]]
    assert (row["cpu"], row["host"]) == (7_000, 30_000)
    assert row["numa_cpu"][:2] == [3_000, 4_000]
    assert row["traffic"][:4] == [300, 0, 0, 7]


@pytest.mark.parametrize(
    "seat",
    [
        pytest.param(Seat(0, 0b001, Vector(1000, 14_918, 1000)), id="card memory by 1 MiB"),
        pytest.param(Seat(0, 0b001, Vector(1001, 1, 1)), id="compute by 1 milli"),
        pytest.param(Seat(0, 0b001, Vector(1, 1, 1001)), id="bandwidth by 1 milli"),
        pytest.param(Seat(0, cpu=8_001), id="cpu by a milli-core"),
        pytest.param(Seat(0, host=32_001), id="host memory by 1 MiB"),
        pytest.param(Seat(0, numa=((1, 4_001, 0),)), id="one NUMA node's cpu"),
        pytest.param(Seat(0, numa=((1, 0, 16_001),)), id="one NUMA node's memory"),
    ],
)
def test_more_booked_than_there_is_leaves_nothing_and_says_so(seat: Seat) -> None:
    row, over = write(NODE, [seat])
    assert over
    numbers = [row["cpu"], row["host"], *row["numa_cpu"], *row["numa_host"], *flat(row["left"])]
    assert min(numbers) == 0


def test_a_bad_card_offers_nothing_and_keeps_what_is_booked_on_it_out_of_the_others() -> None:
    row, over = write(NODE, [Seat(0, 0b011, WHOLE, True)], mask=0b101)
    assert not over
    assert (row["usable"], row["idle"]) == (0b101, 0b100)
    assert row["left"][:3] == [[0, 0, 0], [0, 0, 0], [1000, 14_917, 1000]]


def test_a_closed_machine_offers_nothing_at_all() -> None:
    row, over = write(NODE, [Seat(0, cpu=1_000, edges=((1, 9),))], mask=0, open_to_work=False)
    assert not over
    offered = (row["usable"], row["idle"], row["cpu"], row["host"])
    assert offered == (0, 0, 0, 0)
    assert not any(flat(row["left"]))
    assert not any(row["numa_cpu"])
    assert row["traffic"][1] == 9, "its traffic is still there"


def test_large_machines_are_exact() -> None:
    huge = a_node("huge", 3, model=L40S, cpu=4_000_000, host=40_000_000)
    row, over = write(huge, [Seat(0, cpu=1, host=1)])
    assert not over
    assert (row["cpu"], row["host"]) == (3_999_999, 39_999_999)


def flat(rows: list[list[int]]) -> list[int]:
    return [number for row in rows for number in row]
