"""Backfill played forward, against a loop around the pass itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aliquot.core.columns import I64
from aliquot.core.room.backfill import Waiting, decide
from aliquot.core.room.counts import Running
from aliquot.core.room.disciplines import EASY, FIFO, SKIP
from aliquot.core.room.forward import foresee
from aliquot.core.room.shadow import FAR
from aliquot.core.settings import Backfill

CARDS, PARTS, NOW = 4, 3, 100
MANY = Backfill(by_size=False, overdue_ms=0, overdue_wide_ms=0, reservations=4, doubt_milli=1000)
DEFAULT = Backfill(overdue_ms=30, overdue_wide_ms=30)
RULES = (EASY, MANY, DEFAULT, FIFO, SKIP)
RUNS = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4), st.integers(1, 60) | st.none()), max_size=8)
WAITS = st.lists(
    st.tuples(st.integers(0, 99), st.integers(1, 10), st.integers(1, 60) | st.none()), min_size=1, max_size=20
)


@dataclass
class Site:
    """Three nodes of 4 cards at a moment."""

    free: I64
    running: Running
    waiting: Waiting

    def foreseen(self, rules: Backfill, **more: object) -> list[int]:
        found = foresee(NOW, SIZE, self.free, self.running, self.waiting, rules, **more)  # type: ignore[arg-type]  # passed on
        return list(map(int, found))

    def played(self, rules: Backfill) -> list[int]:
        """The plain twin: pass after pass, everything built anew."""
        lengths = self.waiting.estimate
        starts = np.full(len(lengths), -1, np.int64)
        now, free, running, left = NOW, self.free.copy(), self.running, np.arange(len(lengths))
        while len(left) and now < FAR:
            found = decide(
                now, SIZE, free, running, Waiting(*(column[left] for column in self.waiting)), rules
            )
            new = found.started
            starts[left[new]] = now
            np.subtract.at(free, found.rows[new], found.cards[new])
            runs = lengths[left[new]]
            begun = Running(np.where(runs < 0, FAR, now + runs), found.rows[new], found.cards[new])
            running = Running(*(np.concatenate(pair) for pair in zip(running, begun, strict=True)))
            left = left[~new]
            if not len(running.end):
                break
            now = int(running.end.min())
            over = running.end <= now
            np.add.at(free, running.rows[over], running.cards[over])
            running = Running(*(column[~over] for column in running))
        return list(map(int, starts))


SIZE = np.full(3, CARDS, np.int64)


def a_site(runs: list[tuple[int, int, int | None]], waits: list[tuple[int, int, int | None]]) -> Site:
    free = SIZE.copy()
    ends: list[int] = []
    rows, cards = np.zeros((2, len(runs), PARTS), np.int64)
    for row, count, left in runs:
        if free[row] >= count:
            rows[len(ends), 0], cards[len(ends), 0] = row, count
            free[row] -= count
            ends.append(FAR if left is None else NOW + left)
    running = Running(np.array(ends, np.int64), rows[: len(ends)], cards[: len(ends)])
    column = zip(*((since, count, -1 if told is None else told) for since, count, told in waits), strict=True)
    return Site(free, running, Waiting(*(np.array(values, np.int64) for values in column)))


@pytest.mark.parametrize("rules", RULES)
@given(runs=RUNS, waits=WAITS)
@settings(max_examples=80, deadline=None)
def test_all_starts_are_those_of_pass_after_pass(
    rules: Backfill, runs: list[tuple[int, int, int | None]], waits: list[tuple[int, int, int | None]]
) -> None:
    site = a_site(runs, waits)
    before = site.free.copy()
    assert site.foreseen(rules) == site.played(rules)
    assert (site.free == before).all()


def test_jobs_run_as_long_as_they_really_do_and_stand_in_line_by_what_was_told() -> None:
    site = a_site([(0, 4, 10), (1, 4, None), (2, 4, None)], [(90, 4, 30), (91, 4, 20), (92, 4, 5)])
    assert site.foreseen(DEFAULT) == [135, 115, 110]
    assert site.foreseen(DEFAULT, lengths=np.array([9, 1, 50])) == [160, 169, 110]
    assert site.foreseen(DEFAULT, lengths=np.array([-1, 1, 50])) == [160, -1, 110], "one of them never ends"


def test_who_is_asked_for_is_found_and_the_rest_may_be_left() -> None:
    site = a_site([(0, 4, 10), (1, 4, 20), (2, 4, 30)], [(0, 4, 5), (1, 4, 50), (2, 4, 70), (3, 4, 90)])
    assert site.foreseen(SKIP) == [110, 115, 120, 130]
    assert site.foreseen(SKIP, wanted=np.array([1])) == [110, 115, -1, -1]
    assert site.foreseen(SKIP, wanted=np.array([], np.int64)) == [-1] * 4


def test_looking_ends_when_it_is_told_to() -> None:
    runs = [(0, 4, 10), (1, 4, 20), (2, 4, None)]
    site = a_site(runs, [(at, 4, 1 + at) for at in range(80)])
    answers = iter([False, True])
    found = site.foreseen(SKIP, stop=lambda: next(answers))
    assert 110 in found, "the first moments were looked at"
    assert -1 in found, "and then no more"
    assert -1 not in site.foreseen(SKIP)


def test_what_nobody_knows_to_end_is_not_waited_for() -> None:
    site = a_site([(0, 4, None), (1, 4, None), (2, 4, None)], [(0, 1, 5)])
    assert site.foreseen(DEFAULT) == [-1]
