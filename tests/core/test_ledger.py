"""Booking and releasing in the columns, and what a snapshot keeps."""

from __future__ import annotations

import pytest

from aliquot.core.columns import CHUNK
from aliquot.core.grants import Seat
from aliquot.core.ledger import Ledger
from aliquot.core.rows import row_state
from aliquot.core.slices import Vector
from tests.support.build import L40S, a_node
from tests.support.same import chunks_as_bytes, rows_of

WHOLE = Vector(1000, 46_068, 1000)
HALF = Vector(500, 23_034, 500)
NODE = a_node("n", 4, model=L40S, cpu=16_000, host=64_000, numa=2)


def ledger_of(rows: int = 1) -> Ledger:
    """A ledger of `rows` copies of NODE, all free."""
    ledger = Ledger(cards=4)
    for _ in range(rows):
        row = ledger.add_row()
        chunk, place = ledger.writable(row)
        row_state(chunk, place, NODE, 0, 0b1111, (), open_to_work=True)
    return ledger


@pytest.mark.parametrize(
    ("seat", "fits"),
    [
        pytest.param(Seat(0, 0b1000, WHOLE, whole=True), True, id="a whole idle card"),
        pytest.param(Seat(0, 0b0001, WHOLE, whole=True), False, id="a whole card of which half is taken"),
        pytest.param(Seat(0, 0b0001, HALF), True, id="the other half"),
        pytest.param(Seat(0, 0b0011, HALF), False, id="halves of two cards, one of them full"),
        pytest.param(Seat(0, 0b0001, Vector(501, 1, 1)), False, id="one milli of compute too much"),
        pytest.param(Seat(0, 0b0001, Vector(1, 23_035, 1)), False, id="one MiB too much"),
        pytest.param(Seat(0, 0b0001, Vector(1, 1, 501)), False, id="one milli of bandwidth too much"),
        pytest.param(Seat(0, 0b10000, HALF), False, id="a card that is not there"),
        pytest.param(Seat(0, cpu=12_000, host=60_000), True, id="all the host has left"),
        pytest.param(Seat(0, cpu=12_001), False, id="one milli-core too much"),
        pytest.param(Seat(0, host=60_001), False, id="one MiB of host memory too much"),
        pytest.param(Seat(0, numa=((0, 4_000, 28_000),)), True, id="all that NUMA node 0 has left"),
        pytest.param(Seat(0, numa=((0, 4_001, 0),)), False, id="too much of NUMA node 0"),
        pytest.param(Seat(0, numa=((1, 0, 32_001),)), False, id="too much memory of NUMA node 1"),
        pytest.param(Seat(1, cpu=1), False, id="a row that was never written"),
    ],
)
def test_what_fits_beside_two_tenants(seat: Seat, fits: bool) -> None:
    ledger = ledger_of()
    ledger.add_row()
    ledger.book(Seat(0, 0b0010, WHOLE, whole=True))
    ledger.book(Seat(0, 0b0001, HALF, cpu=4_000, host=4_000, numa=((0, 4_000, 4_000),)))
    assert ledger.fits(seat) is fits


def test_release_gives_back_exactly_what_was_booked() -> None:
    ledger = ledger_of()
    before = rows_of(ledger)
    seats = [
        Seat(0, 0b0011, HALF, cpu=3, host=5, numa=((0, 2, 5), (1, 1, 0)), edges=((2, 700), (7, 1))),
        Seat(0, 0b0010, HALF),
        Seat(0, 0b1100, WHOLE, whole=True, edges=((2, 300),)),
    ]
    for seat in seats:
        assert ledger.fits(seat)
        ledger.book(seat)
    assert rows_of(ledger)[0]["idle"] == 0
    assert rows_of(ledger)[0]["traffic"][2] == 1000
    ledger.release(seats[1])
    assert rows_of(ledger)[0]["idle"] == 0, "half of card 1 is still taken"
    for seat in (seats[0], seats[2]):
        ledger.release(seat)
    assert rows_of(ledger) == before


def test_a_snapshot_does_not_see_what_comes_later_and_restoring_is_the_identity() -> None:
    ledger = ledger_of(rows=CHUNK + 1)
    ledger.book(Seat(CHUNK, 0b0001, HALF))
    snapshot = ledger.snapshot()
    kept = chunks_as_bytes(snapshot)
    ledger.book(Seat(0, 0b0001, HALF))
    ledger.book(Seat(CHUNK, 0b0001, HALF))
    ledger.release(Seat(CHUNK, 0b0001, HALF))
    assert chunks_as_bytes(snapshot) == kept
    ledger.restore(snapshot)
    assert chunks_as_bytes(ledger.snapshot()) == kept
    ledger.book(Seat(0, 0b0001, HALF))
    assert chunks_as_bytes(snapshot) == kept, "a restored ledger copies before it writes"


def test_only_the_chunk_that_is_written_is_copied() -> None:
    ledger = ledger_of(rows=CHUNK + 1)
    first, second = ledger.snapshot()
    ledger.book(Seat(CHUNK, cpu=1))
    assert ledger.chunks[0] is first
    assert ledger.chunks[1] is not second


def test_a_wider_machine_widens_every_row_and_changes_none() -> None:
    ledger = ledger_of()
    ledger.book(Seat(0, 0b0001, HALF))
    snapshot = ledger.snapshot()
    before = rows_of(ledger)[0]["left"]
    ledger.widen(8)
    ledger.widen(2)
    assert ledger.cards == 8
    assert rows_of(ledger)[0]["left"] == before + [[0, 0, 0]] * 4
    assert snapshot[0].left.shape[1] == 4


def test_versions_move_on_with_every_write_to_their_row_only() -> None:
    ledger = ledger_of(rows=2)
    before = ledger.chunks[0].version.copy()
    ledger.book(Seat(1, cpu=1))
    ledger.release(Seat(1, cpu=1))
    moved = ledger.chunks[0].version - before
    assert moved[:2].tolist() == [0, 2]
