"""The board says what the columns say, and lists what changed, once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aliquot.core.columns import CHUNK
from aliquot.core.placement.board import Board
from tests.core.test_placement_site import Site

ENGINES = [pytest.param(False, id="python"), pytest.param(True, id="numba")]


def changed(board: Board, seen: int) -> list[int]:
    out = np.zeros(board.cells.kind.shape[0], np.int32)
    return sorted(out[: board.changed_since(seen, out)].tolist())


@pytest.mark.parametrize("compiled", ENGINES)
def test_only_rows_that_differ_are_listed(compiled: bool) -> None:
    site = Site(*([2] * 5))
    board = Board(site.hardware, compiled=compiled)
    board.sync(site)
    seen = board.length
    site.book(3, 0b01, site.shape(250))
    site.book(1, 0b10, site.shape(1000))
    board.sync(site)
    assert changed(board, seen) == [1, 3]
    assert board.cells.effective[3].tolist() == [750, 1000]
    assert board.cells.effective[1].tolist() == [1000, 0]


@pytest.mark.parametrize("compiled", ENGINES)
def test_a_row_changed_twice_is_listed_once(compiled: bool) -> None:
    site = Site(2, 2)
    board = Board(site.hardware, compiled=compiled)
    board.sync(site)
    seen = board.length
    for _ in range(3):
        site.book(0, 0b01, site.shape(100))
        board.refresh(site, (0,))
    assert changed(board, seen) == [0]


@pytest.mark.parametrize("compiled", ENGINES)
@pytest.mark.parametrize(
    "rows",
    [
        pytest.param((4, 5, 5, 7), id="close together"),
        pytest.param((0, 200), id="far apart"),
        pytest.param((3, CHUNK + 1, CHUNK + 2), id="of two chunks"),
    ],
)
def test_rows_told_at_one_go_are_brought_up_to_date(rows: tuple[int, ...], compiled: bool) -> None:
    site = Site(*([2] * (CHUNK + 3)))
    board = Board(site.hardware, compiled=compiled)
    board.sync(site)
    seen = board.length
    for row in set(rows):
        site.book(row, 0b01, site.shape(250))
    board.refresh(site, rows)
    assert changed(board, seen) == sorted(set(rows))
    assert {board.cells.effective[row].tolist()[0] for row in rows} == {750}


def test_a_rollback_is_seen_although_the_old_handle_returns() -> None:
    site = Site(2, 2)
    board = Board(site.hardware, compiled=False)
    board.sync(site)
    old = site.chunks[0]
    site.book(0, 0b01, site.shape(100))
    board.refresh(site, (0,))
    site.chunks[0] = old
    board.sync(site)
    assert board.cells.effective[0].tolist() == [1000, 1000]


def test_a_card_that_may_not_be_used_has_nothing_left() -> None:
    site = Site(2)
    site.chunks[0].usable[0] = 0b10
    board = Board(site.hardware, compiled=False)
    board.sync(site)
    assert board.cells.effective[0].tolist() == [0, 1000]


def test_a_held_card_with_everything_left_is_not_idle() -> None:
    site = Site(1)
    site.chunks[0].idle[0] = 0
    board = Board(site.hardware, compiled=False)
    board.sync(site)
    assert board.cells.effective[0].tolist() == [999]


def test_the_log_forgets_its_older_half_and_says_so() -> None:
    site = Site(2)
    board = Board(site.hardware, compiled=False)
    board.sync(site)
    chunk = site.chunks[0]
    for turn in range(board.cells.log.shape[0] + 1):
        chunk.cpu[0] = turn
        board.refresh(site, (0,))
    assert board.length > board.cells.log.shape[0]
    assert changed(board, 0) == [0]
    assert changed(board, board.length) == []


def test_more_nodes_start_a_new_generation() -> None:
    board = Board(Site(2).hardware, compiled=False)
    board.sync(Site(2))
    generation = board.generation
    board.sync(Site(*([2] * (CHUNK + 1))))
    assert board.generation == generation + 1
    assert board.rows == CHUNK + 1


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1), st.sampled_from([130, 500, 1000])), max_size=12)
)
def test_both_engines_mirror_alike(bookings: list[tuple[int, int, int]]) -> None:
    site = Site(2, 2, 2)
    boards = [Board(site.hardware, compiled=compiled) for compiled in (False, True)]
    for row, card, milli in bookings:
        shape = site.shape(milli)
        at = site.chunks[0]
        room = int(at.idle[row]) >> card & 1 if shape.whole else int(at.left[row, card, 0]) >= milli
        if room:
            site.book(row, 1 << card, shape)
        for board in boards:
            board.sync(site)
    plain, compiled = (board.cells for board in boards)
    for mine, theirs in zip(plain, compiled, strict=True):
        assert np.array_equal(mine, theirs)
