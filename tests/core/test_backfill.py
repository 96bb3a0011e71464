"""Backfill on sites one can draw: who starts, who is promised what, and who must leave it alone."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from aliquot.core.room.backfill import (
    Decision,
    Running,
    Waiting,
    Windows,
    decide,
)
from aliquot.core.room.disciplines import EASY, FIFO, SKIP
from aliquot.core.room.forward import foresee
from aliquot.core.room.shadow import FAR, expected_end
from aliquot.core.settings import Backfill, Overrun

PARTS = 3


class Site:
    """Nodes of 4 cards at time 100. What runs and what waits is said job by job."""

    def __init__(self, nodes: int = 2) -> None:
        self.size = np.full(nodes, 4, np.int64)
        self.free = self.size.copy()
        self.ends: list[int] = []
        self.spots: list[dict[int, int]] = []
        self.names: list[str] = []
        self.jobs: list[tuple[int, int, int]] = []
        self.windows: list[tuple[int, dict[int, int]]] = []

    def runs(self, until: int, **spots: int) -> Site:
        """`n0=2`: two cards on node 0."""
        where = {int(name[1:]): cards for name, cards in spots.items()}
        for row, cards in where.items():
            self.free[row] -= cards
        self.ends.append(until)
        self.spots.append(where)
        return self

    def waits(self, name: str, cards: int, estimate: int = -1, since: int | None = None) -> Site:
        self.names.append(name)
        self.jobs.append((len(self.jobs) if since is None else since, cards, estimate))
        return self

    def closes(self, at: int, **spots: int) -> Site:
        self.windows.append((at, {int(name[1:]): cards for name, cards in spots.items()}))
        return self

    def decide(self, rules: Backfill, now: int = 100) -> Decision:
        return decide(now, self.size, self.free, self._running(), self._waiting(), rules, self._windows())

    def foreseen(self, rules: Backfill = EASY, now: int = 100) -> str:
        starts = foresee(now, self.size, self.free, self._running(), self._waiting(), rules)
        return " ".join(f"{name}@{start}" for name, start in zip(self.names, starts, strict=True))

    def _waiting(self) -> Waiting:
        return Waiting(*(np.array(column, np.int64) for column in zip(*self.jobs, strict=True)))

    def _running(self) -> Running:
        rows, cards = np.zeros((2, len(self.ends), PARTS), np.int64)
        for job, where in enumerate(self.spots):
            for part, (row, count) in enumerate(where.items()):
                rows[job, part], cards[job, part] = row, count
        return Running(np.array(self.ends, np.int64), rows, cards)

    def told(self, rules: Backfill = EASY, now: int = 100) -> str:
        """`a:n0x2` started there, `b@150:n1x4` reserved from 150 on; the others are left out."""
        found = self.decide(rules, now)
        words = []
        for job, name in enumerate(self.names):
            spots = zip(found.rows[job], found.cards[job], strict=True)
            where = "+".join(f"n{row}x{count}" for row, count in spots if count)
            if found.started[job]:
                words.append(f"{name}:{where}")
            elif found.at[job] >= 0:
                words.append(f"{name}@{found.at[job]}:{where}")
        return " ".join(words)

    def _windows(self) -> Windows | None:
        if not self.windows:
            return None
        cards = np.zeros((len(self.windows), len(self.size)), np.int64)
        for at, (_, spots) in enumerate(self.windows):
            for row, count in spots.items():
                cards[at, row] = count
        return Windows(np.array([at for at, _ in self.windows], np.int64), cards)


def test_what_fits_starts_where_least_is_left() -> None:
    assert Site().runs(500, n1=2).waits("a", 2, 10).waits("b", 3, 10).told() == "a:n1x2 b:n0x3"


def test_a_blocked_head_is_promised_the_first_moment_it_fits_on_one_node() -> None:
    """Six cards are free from 150 on, but four on one node only at 200."""
    site = Site().runs(150, n0=2).runs(200, n0=2).runs(300, n1=3).waits("head", 4, 50)
    assert site.told() == "head@200:n0x4"


def test_behind_a_promise_start_who_is_over_in_time_or_elsewhere() -> None:
    site = Site().runs(200, n0=3).runs(300, n1=2).waits("head", 4, 50)
    site.waits("long", 1, 150).waits("short", 1, 100).waits("other", 1, 101)
    assert site.told() == "head@200:n0x4 long:n1x1 short:n0x1 other:n1x1"


def test_a_job_over_exactly_at_the_shadow_may_use_what_is_promised() -> None:
    site = Site(1).runs(200, n0=3).waits("head", 4, 50)
    assert site.waits("just", 1, 100).told() == "head@200:n0x4 just:n0x1"
    assert Site(1).runs(200, n0=3).waits("head", 4, 50).waits("late", 1, 101).told() == "head@200:n0x4"


def test_fifo_stops_at_the_first_and_skipping_does_not() -> None:
    site = Site(1).runs(200, n0=2).waits("head", 4, 50).waits("next", 2, 10_000)
    assert site.told(FIFO) == ""
    assert site.told(SKIP) == "next:n0x2"


def test_more_than_a_node_takes_whole_nodes_the_last_in_part() -> None:
    assert Site(3).waits("wide", 9, 50).told() == "wide:n0x4+n1x4+n2x1"
    site = Site(3).runs(150, n1=1).runs(250, n2=1).waits("wide", 6, 50)
    assert site.told() == "wide@150:n0x4+n1x2"


def test_a_job_wider_than_the_site_is_never_promised_anything_and_blocks_nobody() -> None:
    assert Site().waits("huge", 9, 50).waits("a", 4, 99).told() == "a:n0x4"
    assert Site(5).waits("many parts", 17, 50).waits("a", 4, 99).told() == "a:n0x4"


def test_unknown_ends_are_promised_for_no_known_time_and_still_kept_clear() -> None:
    site = Site().runs(FAR, n0=4).runs(FAR, n1=1).waits("head", 4).waits("no idea", 1).waits("short", 1, 5)
    assert site.told() == f"head@{FAR}:n0x4 no idea:n1x1 short:n1x1"
    site = Site(1).runs(FAR, n0=1).waits("head", 4).waits("no idea", 1).waits("short", 1, 5)
    assert site.told() == f"head@{FAR}:n0x4 short:n0x1"


def test_the_short_go_first_unless_somebody_is_overdue() -> None:
    rules = Backfill(overdue_ms=90, overdue_wide_ms=90, doubt_milli=1000)
    site = Site(1).runs(200, n0=3).waits("long", 1, 90, since=20).waits("short", 1, 10, since=30)
    assert site.told(rules) == "long@110:n0x1 short:n0x1"
    assert site.waits("old", 4, 50, since=5).told(rules) == "short:n0x1 old@200:n0x4"


def test_wide_jobs_are_overdue_sooner() -> None:
    rules = Backfill(overdue_ms=90, overdue_wide_ms=50, first=0)
    site = Site(1).runs(200, n0=3).waits("wide", 4, 500, since=40).waits("narrow", 2, 500, since=40)
    assert site.told(rules) == "wide@200:n0x4"


def test_several_are_promised_without_getting_in_each_others_way() -> None:
    rules = replace(EASY, reservations=3)
    site = Site().runs(200, n0=4).runs(300, n1=3).waits("a", 4, 50).waits("b", 4, 50).waits("c", 2, 30)
    assert site.told(rules) == "a@200:n0x4 b@300:n1x4"
    assert site.waits("d", 1, 1000).told(rules) == "a@200:n0x4 b@300:n1x4"


def test_a_second_promise_may_fit_before_the_first() -> None:
    rules = replace(EASY, reservations=2)
    site = Site(1).runs(150, n0=2).runs(300, n0=2).waits("a", 4, 50).waits("b", 2, 100).waits("c", 1, 100)
    assert site.told(rules) == "a@300:n0x4 b@150:n0x2"


def test_maintenance_is_left_alone_by_those_who_would_not_be_over() -> None:
    site = Site(1).closes(200, n0=4).waits("long", 1, 101).waits("short", 1, 100)
    assert site.told() == "short:n0x1"
    site = Site().closes(200, n0=4).runs(150, n1=1).waits("wide", 4, 101)
    assert site.told() == "wide@150:n1x4"


def test_doubt_keeps_longer_distance_from_a_shadow() -> None:
    site = Site(1).runs(200, n0=3).waits("head", 4, 50).waits("maybe", 1, 60)
    assert site.told(EASY) == "head@200:n0x4 maybe:n0x1"
    assert site.told(replace(EASY, doubt_milli=2000)) == "head@200:n0x4"


def test_jobs_that_end_together_are_put_together() -> None:
    site = Site(3).runs(500, n0=2).runs(110, n1=2).waits("long", 1, 400).waits("short", 1, 8)
    assert site.told(replace(EASY, by_end=True)) == "long:n0x1 short:n0x1"
    assert (
        Site(3).runs(900, n0=1).runs(100, n1=3).waits("a", 1, 50).told(replace(EASY, by_end=True)) == "a:n0x1"
    )


def test_nothing_given_is_changed() -> None:
    site = Site(1).runs(200, n0=3).waits("head", 4, 50).waits("short", 1, 100)
    before = site.free.copy()
    site.decide(EASY)
    assert np.array_equal(site.free, before)


@pytest.mark.parametrize(
    ("estimate", "now", "expected"),
    [
        pytest.param(100, 50, 110, id="as estimated"),
        pytest.param(None, 50, FAR, id="unknown is far, not now"),
        pytest.param(100, 110, 110 + 60_000 + 100, id="outrun: as long again and a minute"),
        pytest.param(0, 10, 60_010, id="at once"),
    ],
)
def test_when_a_running_job_is_expected_to_end(estimate: int | None, now: int, expected: int) -> None:
    assert expected_end(10, estimate, now) == expected


def test_the_textbook_expects_an_outrun_job_to_end_in_a_minute() -> None:
    assert expected_end(0, 5, 1000, Overrun(again_milli=0)) == 61_000


def test_foreseeing_plays_the_passes_forward_without_newcomers() -> None:
    site = Site(1).runs(200, n0=3).waits("head", 4, 50).waits("short", 1, 100).waits("next", 2, 10)
    assert site.foreseen() == "head@200 short@100 next@250"


def test_what_can_never_start_is_not_foreseen() -> None:
    assert Site(1).waits("huge", 5, 50).waits("a", 1, 50).foreseen() == "huge@-1 a@100"
    assert Site(1).runs(FAR, n0=4).waits("a", 1, 50).foreseen() == "a@-1"
