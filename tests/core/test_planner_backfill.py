"""Reservations in the planner: who gets one, who may start beside it, and what is kept for whom."""

from __future__ import annotations

import pytest

from aliquot.core.events import Reserved
from aliquot.core.planner import Memo
from aliquot.core.room.disciplines import EASY
from aliquot.core.settings import Backfill
from aliquot.core.steps import Gate, Place, Reserve, Unreserve, Wait
from tests.support.build import a_request
from tests.support.planning import carried_out, gates, nodes_of, planned, settings
from tests.support.worlds import WorldBuilder

HOUR = 3_600_000
HOW = settings(backfill=EASY)


def blocked_head() -> WorldBuilder:
    """Two nodes of 4: 3 cards are busy on each for 1 h and 2 h, and a job of 4 waits first in line."""
    site = WorldBuilder().nodes(2, 4)
    site.submit("one", cards=3, estimate_ms=HOUR).submit("two", cards=3, estimate_ms=2 * HOUR)
    carried_out(site, HOW)
    site.submit("head", cards=4, estimate_ms=HOUR)
    return site


def reserved(site: WorldBuilder) -> dict[str, tuple[int, str]]:
    """job -> (from ms, node) of what is kept."""
    return {kept.job: (kept.from_ms, kept.placements[0].node.name) for kept in site.frozen.kept}


def test_the_head_gets_the_node_that_is_free_first() -> None:
    site = blocked_head()
    decided = carried_out(site, HOW)
    assert reserved(site) == {"head": (HOUR, site.grant("one").placement.node.name)}
    (wait,) = [step for step in decided.steps if isinstance(step, Wait)]
    assert (wait.gate, wait.until_ms) == (Gate.FIT, HOUR)


@pytest.mark.parametrize(
    ("estimate", "nodes"),
    [
        pytest.param(HOUR, 2, id="over-by-then"),
        pytest.param(HOUR + 1, 1, id="not-over-by-then"),
        pytest.param(None, 1, id="unknown"),
    ],
)
def test_beside_a_reservation_only_those_start_that_are_over_by_then(
    estimate: int | None, nodes: int
) -> None:
    """One card is free on each node: the one kept for the head is closed to those that run too long."""
    site = blocked_head()
    carried_out(site, HOW)
    site.submit("s0", estimate_ms=estimate).submit("s1", estimate_ms=estimate)
    placed = nodes_of(carried_out(site, HOW))
    assert len(placed) == nodes
    kept = site.grant("one").placement.node.name
    assert (kept in {node for (node,) in placed.values()}) == (nodes == 2)


def test_a_head_that_can_start_elsewhere_does_and_its_reservation_is_open() -> None:
    site = blocked_head()
    carried_out(site, HOW)
    site.started("two").ended("two")
    assert list(nodes_of(carried_out(site, HOW))) == ["head"]
    assert site.frozen.kept == ()


def test_a_job_with_estimates_that_hold_starts_when_it_was_told_to() -> None:
    site, memo = blocked_head(), Memo()
    carried_out(site, HOW, memo=memo)
    for at in range(6):
        site.later(HOUR // 6).submit(f"s{at}", estimate_ms=HOUR // 4)
        if at == 5:
            site.started("one").ended("one")
        for name in [name for name in site.holding if name.startswith("s")]:
            record = site.job(name)
            if site.at - record.granted_ms >= HOUR // 4:
                site.started(name).ended(name)
        carried_out(site, HOW, memo=memo)
        told = reserved(site).get("head")
        assert told is None or told[0] <= HOUR
    assert site.phase("head") is not None
    assert "head" in site.holding


def test_a_reservation_never_moves_later_while_estimates_are_upper_bounds() -> None:
    site, memo, told = WorldBuilder().nodes(4, 8), Memo(), []
    for at in range(12):
        site.submit(f"r{at}", cards=1 + at % 4, estimate_ms=HOUR + at * HOUR // 3)
    carried_out(site, HOW, memo=memo)
    site.submit("wide", [a_request(8)] * 2, estimate_ms=HOUR)
    for at in range(30):
        carried_out(site, HOW, memo=memo)
        if "wide" in site.holding:
            break
        told.append(reserved(site)["wide"][0])
        site.later(HOUR // 5)
        site.submit(f"s{at}", cards=1 + at % 3, estimate_ms=HOUR // 2 * (1 + at % 5))
        for name in list(site.holding):
            record = site.job(name)
            assert record.job.estimate_ms is not None
            if site.at >= record.granted_ms + record.job.estimate_ms:
                site.started(name).ended(name)
    assert told == sorted(told, reverse=True)
    assert site.at <= told[0] + HOUR // 5
    assert "wide" in site.holding


def test_the_first_in_line_is_not_put_off_by_reservations_of_those_behind_it() -> None:
    """A wide job that lost its place: those behind it have reservations already, and give way."""
    rules = Backfill(overdue_ms=0, overdue_wide_ms=0, reservations=8)
    how = settings(backfill=rules)
    site = WorldBuilder().nodes(3, 2)
    for at in range(3):
        site.submit(f"r{at}", cards=2, estimate_ms=(at + 1) * HOUR)
    carried_out(site, how)
    for at in range(2):
        site.later(1).submit(f"behind{at}", cards=2, estimate_ms=9 * HOUR)
    carried_out(site, how)
    site.submit("wide", [a_request(2)] * 2, priority=5, estimate_ms=HOUR)
    carried_out(site, how)
    told = reserved(site)
    assert told["wide"][0] == 2 * HOUR
    assert told["behind0"][0] == 3 * HOUR


def test_a_shared_slice_waits_for_enough_of_a_card_and_not_for_all_of_it() -> None:
    site = WorldBuilder().node("n", 1)
    for at, hours in enumerate((1, 3)):
        site.submit(f"s{at}", a_request(compute=500), estimate_ms=hours * HOUR)
    carried_out(site, HOW)
    site.submit("half", a_request(compute=500), estimate_ms=HOUR)
    carried_out(site, HOW)
    assert reserved(site) == {"half": (HOUR, "n")}


def test_nobody_waits_for_a_node_that_could_never_hold_it() -> None:
    site = WorldBuilder().node("n", 4).submit("huge", cards=9, estimate_ms=HOUR)
    assert gates(carried_out(site, HOW)) == {"huge": Gate.FIT}
    assert site.frozen.kept == ()


def test_a_reservation_on_a_node_that_is_lost_is_given_up_and_made_elsewhere() -> None:
    site = blocked_head()
    carried_out(site, HOW)
    kept = site.grant("one").placement.node.name
    site.lose(kept)
    decided = carried_out(site, HOW)
    assert [type(step) for step in decided.steps if not isinstance(step, Wait)] == [Unreserve, Reserve]
    assert reserved(site)["head"][1] != kept


def test_a_cancelled_head_leaves_nothing_behind() -> None:
    site = blocked_head()
    carried_out(site, HOW)
    site.cancel("head").submit("s", cards=1)
    assert list(nodes_of(carried_out(site, HOW))) == ["s"]
    assert site.frozen.kept == ()


def test_who_stands_before_the_head_takes_what_is_kept_for_it() -> None:
    """A reservation holds those behind, not those before."""
    site = blocked_head()
    how = settings(backfill=EASY)
    carried_out(site, how)
    site.submit("urgent", cards=1, priority=9).submit("urgent2", cards=1, priority=9)
    decided = carried_out(site, how)
    assert sorted(nodes_of(decided)) == ["urgent", "urgent2"]


def test_shortest_work_first_and_the_overdue_before_all() -> None:
    rules = Backfill(overdue_ms=10 * HOUR, overdue_wide_ms=10 * HOUR)
    how = settings(backfill=rules)
    site = WorldBuilder().node("n", 1).submit("old", estimate_ms=20 * HOUR)
    site.later(9 * HOUR).submit("long", estimate_ms=4 * HOUR).submit("short", estimate_ms=HOUR)
    assert list(nodes_of(carried_out(site, how))) == ["short"]
    site.started("short").ended("short").later(HOUR).submit("new", estimate_ms=1000)
    assert list(nodes_of(carried_out(site, how))) == ["old"]


def test_at_most_so_many_reservations_oldest_first() -> None:
    rules = Backfill(overdue_ms=0, overdue_wide_ms=0, reservations=2)
    site = WorldBuilder().nodes(4, 2)
    for at in range(4):
        site.submit(f"r{at}", cards=2, estimate_ms=HOUR)
    carried_out(site, settings(backfill=rules))
    for at in range(4):
        site.later(1).submit(f"w{at}", cards=2, estimate_ms=HOUR)
    carried_out(site, settings(backfill=rules))
    assert sorted(reserved(site)) == ["w0", "w1"]
    assert len({node for _, node in reserved(site).values()}) == 2


def test_a_warm_memo_plans_as_an_empty_one_beside_reservations() -> None:
    how, warm = settings(backfill=Backfill(overdue_ms=HOUR, overdue_wide_ms=HOUR)), Memo()
    site = WorldBuilder().nodes(3, 4)
    events = 0
    for at in range(40):
        site.later(HOUR // 7).submit(f"j{at}", cards=1 + at * 7 % 4, estimate_ms=HOUR // 2 * (1 + at % 6))
        cold = planned(site, how)
        assert carried_out(site, how, memo=warm) == cold
        events += sum(isinstance(step, (Reserve, Place)) for step in cold.steps)
        for name in list(site.holding):
            record = site.job(name)
            if record.job.estimate_ms is not None and site.at >= record.granted_ms + record.job.estimate_ms:
                site.started(name).ended(name)
    assert any(isinstance(event, Reserved) for event in site.events)
    assert events > 20
