"""Queues in the planner: quota, borrowing, order, dependencies, arrays, gangs with a minimum."""

from __future__ import annotations

import pytest

from aliquot.core.events import Outcome
from aliquot.core.ids import JobId
from aliquot.core.jobs import After, Array, When
from aliquot.core.planner import Memo, explain_wait
from aliquot.core.queues import (
    CARDS,
    MEMORY,
    POOL,
    UNLIMITED,
    Discipline,
    Limit,
    Measure,
    Queue,
    Quota,
    Resource,
)
from aliquot.core.settings import Backfill, Order, Rates, Settings
from aliquot.core.steps import Gate, Lack, Place, Wait, Withdraw
from aliquot.interfaces.cli.gates import gate_lines
from tests.support.build import H100, L40S, a_request
from tests.support.planning import carried_out, gates, nodes_of, planned, settings
from tests.support.same import excess
from tests.support.worlds import WorldBuilder


def cards(name: str, nominal: int, borrowing: int | None = None, **more: Limit) -> Queue:
    """A queue with a quota of whole cards."""
    limit = None if borrowing is None else borrowing * 1000
    return Queue(name, quotas=(Quota(CARDS, nominal * 1000, limit, **more),))


def queues(*all_queues: Queue, **more: object) -> Settings:
    """A site of these queues, with no memory of the past."""
    return settings(queues=all_queues, order=Order(half_life_ms=0), **more)


def test_a_queue_takes_its_nominal_and_what_others_leave_idle() -> None:
    site = WorldBuilder().node("n", 8)
    for at in range(10):
        site.submit(f"a{at}", queue="a")
    decided = carried_out(site, queues(cards("a", 4), cards("b", 4)))
    assert len(nodes_of(decided)) == 8


def test_a_borrowing_limit_of_0_is_not_the_same_as_none() -> None:
    """B29's kind: absent is unlimited, 0 is nothing, and a number is that much."""
    for borrowing, placed in ((None, 8), (0, 4), (2, 6)):
        site = WorldBuilder().node("n", 8)
        for at in range(10):
            site.submit(f"a{at}", queue="a")
        decided = carried_out(site, queues(cards("a", 4, borrowing), cards("b", 4)))
        assert len(nodes_of(decided)) == placed


@pytest.mark.parametrize("how", [queues(cards("a", 4)), queues(backfill=Backfill())])
def test_a_job_that_takes_any_model_starts_on_any_where_no_quota_tells_them_apart(how: Settings) -> None:
    """An H100 has more memory than an L40S, but nobody has a quota of memory."""
    site = WorldBuilder().node("n0", 2, model=H100).node("n1", 2, model=L40S)
    for at in range(4):
        site.submit(f"a{at}", queue="a")
    decided = carried_out(site, how)
    assert sorted(nodes_of(decided).values()) == [["n0"], ["n0"], ["n1"], ["n1"]]


def by_model(name: str, h100: int, l40s: int) -> Queue:
    """A queue with a quota of cards of each of two models, and nothing beyond."""
    quotas = ((H100.name, h100), (L40S.name, l40s))
    return Queue(
        name,
        quotas=tuple(Quota(Resource(Measure.CARDS, model), cards * 1000, 0) for model, cards in quotas),
    )


@pytest.mark.parametrize("backfill", [None, Backfill()])
def test_where_the_cards_of_one_model_are_taken_a_job_has_those_of_another_it_has_quota_for(
    backfill: Backfill | None,
) -> None:
    site = WorldBuilder().node("h", 4, model=H100).node("l", 4, model=L40S)
    how = queues(by_model("a", 4, 2), by_model("b", 4, 4), backfill=backfill)
    site.submit("full", a_request(4, models=(H100.name,)), queue="b")
    carried_out(site, how)
    for at in range(3):
        site.submit(f"a{at}", queue="a")
    decided = carried_out(site, how)
    assert nodes_of(decided) == {"a0": ["l"], "a1": ["l"]}
    assert gates(decided) == {"a2": Gate.FIT}, "of the one there is no quota left, of the other no room"


def test_one_that_is_refused_says_nothing_for_its_like_of_a_queue_with_more_models() -> None:
    site = WorldBuilder().node("h", 4, model=H100).node("l", 4, model=L40S)
    how = queues(by_model("a", 4, 0), by_model("b", 4, 4), by_model("c", 4, 0))
    site.submit("full", a_request(4, models=(H100.name,)), queue="c")
    carried_out(site, how)
    site.submit("first", queue="a").submit("like", queue="b")
    assert nodes_of(carried_out(site, how)) == {"like": ["l"]}


def test_a_high_job_that_fits_by_borrowing_is_admitted_and_nobody_is_stopped() -> None:
    """B29."""
    site = WorldBuilder().node("n0", 8).node("n1", 8)
    how = queues(cards("a", 4), cards("b", 8), cards("c", 4))
    site.submit("a1", queue="a", cards=2)
    for at in range(5):
        site.submit(f"b{at}", queue="b")
    carried_out(site, how)
    site.submit("high", queue="a", cards=6, priority=100)
    assert list(nodes_of(carried_out(site, how))) == ["high"]


def test_two_borrowers_in_one_cycle_do_not_both_get_the_last_share() -> None:
    """B27."""
    site = WorldBuilder().nodes(3, 4)
    how = queues(cards("a", 4), cards("b", 4), cards("c", 4))
    site.submit("a0", queue="a", cards=4).submit("b0", queue="b", cards=4)
    carried_out(site, how)
    site.submit("a1", queue="a", cards=4).submit("b1", queue="b", cards=4)
    decided = carried_out(site, how)
    assert list(nodes_of(decided)) == ["a1"]
    assert gates(decided) == {"b1": Gate.FIT}, "to a plan it is a matter of room, which may be made"
    told = explain_wait(site.frozen, how, site.job("b1").job.id, Memo(), site.at)
    assert (told.gate, told.lack) == (Gate.BORROWING, Lack(CARDS, 4000, 0, POOL, borrows=True))
    assert list(gate_lines(told)) == ["It asks for 4 of cards; the pool has 0 left for it."]


def test_on_a_full_site_who_would_have_to_borrow_is_told_that_nothing_is_left_to_lend() -> None:
    """`c` owns what `a1` borrowed, and waits for room; `none` owns nothing, so it borrows all."""
    site = WorldBuilder().nodes(3, 4)
    how = queues(cards("a", 4), cards("b", 4), cards("c", 4), Queue("none"))
    for name in ("a", "b", "a"):
        site.submit(f"{name}{len(site.waiting)}", queue=name, cards=4)
    carried_out(site, how)
    for name in ("a", "b", "c", "none"):
        site.submit(f"{name}-waits", queue=name, cards=3)
    told = {
        name: explain_wait(site.frozen, how, JobId(f"{name}-waits"), Memo(), site.at).gate
        for name in ("a", "b", "c", "none")
    }
    assert told == {"a": Gate.BORROWING, "b": Gate.BORROWING, "c": Gate.FIT, "none": Gate.BORROWING}


def test_the_reason_names_the_queue_whose_limit_it_is() -> None:
    site = WorldBuilder().node("n", 8).submit("x", queue="lab/a", cards=3).submit("y", queue="lab/a", cards=2)
    how = queues(cards("lab", 4, 0), Queue("lab/a"), cards("other", 4))
    decided = carried_out(site, how)
    (wait,) = [step for step in decided.steps if isinstance(step, Wait)]
    assert wait.lack is not None
    assert (wait.job, wait.gate, wait.lack.queue, wait.lack.need, wait.lack.have) == (
        "y",
        Gate.QUOTA,
        "lab",
        2000,
        1000,
    )
    assert explain_wait(site.frozen, how, site.job("y").job.id, Memo(), site.at) == wait


def test_what_others_borrowed_is_not_lent_again_while_its_owner_waits() -> None:
    site = WorldBuilder().node("n", 8)
    how = queues(cards("a", 4), cards("b", 4))
    for at in range(8):
        site.submit(f"a{at}", queue="a")
    carried_out(site, how)
    for at in range(8, 12):
        site.submit(f"a{at}", queue="a")
    site.later(1).submit("b", queue="b", cards=2)
    site.started("a0").ended("a0")
    assert nodes_of(carried_out(site, how)) == {}
    site.started("a1").ended("a1")
    assert list(nodes_of(carried_out(site, how))) == ["b"]


def test_whoever_waits_behind_one_like_it_for_what_is_held_for_its_owner_is_told_the_same() -> None:
    """One card is free, and held for `b`: none of `a` may borrow it, the last no more than the first."""
    rules = queues(cards("a", 4), cards("b", 4))
    site = WorldBuilder().node("n", 8)
    for at in range(7):
        site.submit(f"a{at}", queue="a")
    carried_out(site, rules)
    site.later(1).submit("b", queue="b", cards=4)
    for at in range(7, 10):
        site.later(1).submit(f"a{at}", queue="a")
    waits = [explain_wait(site.frozen, rules, JobId(f"a{at}"), Memo(), site.at) for at in (7, 8, 9)]
    assert [wait.gate for wait in waits] == [Gate.BORROWING] * 3
    assert len({wait.lack for wait in waits}) == 1


def test_the_queue_that_uses_less_of_its_share_goes_first() -> None:
    site = WorldBuilder().node("n", 8)
    how = queues(Queue("a", weight=1000), Queue("b", weight=3000))
    for at in range(8):
        site.submit(f"a{at}", queue="a").submit(f"b{at}", queue="b")
    placed = nodes_of(carried_out(site, how))
    assert sum(job.startswith("b") for job in placed) == 6


def test_memory_is_charged_as_asked_and_cards_of_one_model_by_model() -> None:
    site = WorldBuilder().node("a", 4).node("l", 4, model=L40S)
    h = Resource(Measure.CARDS, H100.name)
    how = queues(Queue("q", quotas=(Quota(h, 2000, 0),)))
    for at in range(4):
        site.submit(f"any{at}", queue="q")
    placed = nodes_of(carried_out(site, how))
    assert [node for (node,) in placed.values()].count("a") <= 2
    assert len(placed) == 4  # the others take cards that have no quota
    memory = queues(Queue("q", quotas=(Quota(MEMORY, 20_000, 0),)))
    site = WorldBuilder().node("a", 4)
    for at in range(4):
        site.submit(f"s{at}", a_request(memory=8000), queue="q")
    assert len(nodes_of(carried_out(site, memory))) == 2


def test_compute_is_charged_in_cards_of_the_reference() -> None:
    site = WorldBuilder().node("a", 8)
    rates = Rates(compute_milli=((H100.name, 2000),))
    how = queues(Queue("q", quotas=(Quota(Resource(Measure.COMPUTE), 5000, 0),)), rates=rates)
    for at in range(4):
        site.submit(f"j{at}", queue="q")
    assert len(nodes_of(carried_out(site, how))) == 2


def test_jobs_of_a_queue_that_is_gone_count_above_it_and_nothing_is_lost() -> None:
    site = WorldBuilder().node("n", 8).submit("old", queue="lab/gone", cards=4)
    carried_out(site, queues(cards("lab", 4, 0), Queue("lab/gone")))
    without = queues(cards("lab", 4, 0))
    site.submit("new", queue="lab").submit("waits", queue="lab/gone")
    decided = carried_out(site, without)
    assert gates(decided) == {"new": Gate.QUOTA}  # the other is like it
    site.started("old").ended("old")
    assert sorted(nodes_of(carried_out(site, without))) == ["new", "waits"]


def test_a_quota_below_usage_stops_nobody_and_starts_nobody() -> None:
    site = WorldBuilder().node("n", 8).submit("big", queue="a", cards=6)
    carried_out(site, queues(cards("a", 8)))
    site.submit("more", queue="a")
    assert gates(carried_out(site, queues(cards("a", 2, 0)))) == {"more": Gate.QUOTA}


def test_an_over_committed_site_offers_nothing_and_never_less() -> None:
    """B33."""
    site = WorldBuilder().node("n0", 8).node("n1", 2)
    how = queues(Queue("a"), Queue("b"))
    site.submit("all", queue="a", cards=8)
    carried_out(site, how)
    site.node("n0", 6)
    site.submit("next", queue="b", cards=2).submit("more", queue="b")
    decided = carried_out(site, how)
    assert nodes_of(decided) == {"next": ["n1"]}
    assert gates(decided) == {"more": Gate.FIT}


def test_strict_holds_its_own_queue_only() -> None:
    site = WorldBuilder().node("n", 4)
    site.submit("a0", queue="a", cards=8).submit("a1", queue="a").submit("b0", queue="b")
    how = queues(Queue("a", discipline=Discipline.STRICT), Queue("b"))
    assert list(nodes_of(carried_out(site, how))) == ["b0"]


def test_unlimited_said_and_nothing_said_are_kept_apart_and_both_borrow() -> None:
    for limit in (None, UNLIMITED):
        site = WorldBuilder().node("n", 8).submit("x", queue="a", cards=8)
        quota = Quota(CARDS, 1000, limit)
        decided = carried_out(site, queues(Queue("a", quotas=(quota,)), cards("b", 7)))
        assert list(nodes_of(decided)) == ["x"]


def test_what_a_queue_does_not_lend_stays_its_own_while_cards_are_free() -> None:
    site = WorldBuilder().node("n", 8).submit("five", queue="b", cards=5).submit("four", queue="b", cards=4)
    decided = carried_out(site, queues(cards("a", 4, lending=0), cards("b", 4)))
    assert list(nodes_of(decided)) == ["four"]
    assert gates(decided) == {"five": Gate.QUOTA}


# --- gangs --------------------------------------------------------------------------------------------


def test_two_gangs_never_hold_each_others_parts() -> None:
    """B22, with 20 nodes."""
    site = WorldBuilder().nodes(20, 1)
    how = queues(Queue("a"), Queue("b"))
    site.submit("g", [a_request()] * 20, queue="a").submit("h", [a_request()] * 20, queue="b")
    assert list(nodes_of(carried_out(site, how))) == ["g"]
    assert site.holding == ["g"]
    site.started("g").ended("g")
    assert list(nodes_of(carried_out(site, how))) == ["h"]


@pytest.mark.parametrize(("minimum", "placed"), [(2, 3), (3, 3), (4, 0), (None, 0)])
def test_a_gang_with_a_minimum_starts_with_what_fits_from_there_on(minimum: int | None, placed: int) -> None:
    """B26."""
    site = WorldBuilder().node("n", 3).submit("g", [a_request()] * 6, minimum=minimum)
    decided = carried_out(site)
    assert sum(len(nodes) for nodes in nodes_of(decided).values()) == placed


def test_spread_members_go_to_racks_apart_then_to_nodes_apart() -> None:
    site = WorldBuilder()
    for rack in "ab":
        for number in range(2):
            site.node(f"{rack}{number}", 4, rack=rack)
    site.submit("s", [a_request()] * 4, spread=True)
    (nodes,) = nodes_of(carried_out(site)).values()
    assert {name[0] for name in nodes[:2]} == {"a", "b"}
    assert len(set(nodes)) == 4


# --- dependencies and arrays --------------------------------------------------------------------------


def test_after_waits_for_any_end_and_after_ok_for_success() -> None:
    site = WorldBuilder().node("n", 8).submit("first")
    first = site.job("first").job.id
    site.submit("any", after=(After(first),)).submit("ok", after=(After(first, When.SUCCEEDED),))
    decided = carried_out(site)
    assert gates(decided) == {"any": Gate.DEPENDENCY, "ok": Gate.DEPENDENCY}
    site.started("first").ended("first", Outcome.FAILED)
    decided = carried_out(site)
    assert list(nodes_of(decided)) == ["any"]
    assert [step.job for step in decided.steps if isinstance(step, Withdraw)] == ["ok"]
    assert site.phase("ok") is None


def test_a_chain_behind_a_failure_is_withdrawn_link_by_link_and_plain_after_is_released() -> None:
    site = WorldBuilder().node("n", 8).submit("a")
    a = site.job("a").job.id
    site.submit("b", after=(After(a, When.SUCCEEDED),))
    b = site.job("b").job.id
    site.submit("c", after=(After(b, When.SUCCEEDED),)).submit("d", after=(After(b),))
    carried_out(site)
    site.started("a").ended("a", Outcome.FAILED)
    carried_out(site)
    decided = carried_out(site)
    assert site.phase("c") is None
    assert list(nodes_of(decided)) == ["d"]


def test_a_job_that_comes_after_the_end_of_what_it_waits_for_starts_at_once() -> None:
    site = WorldBuilder().node("n", 8).submit("a")
    a = site.job("a").job.id
    carried_out(site)
    site.started("a").ended("a")
    site.submit("b", after=(After(a, When.SUCCEEDED),))
    assert list(nodes_of(carried_out(site))) == ["b"]


@pytest.mark.parametrize("how", [settings(), queues(Queue("q"))])
def test_no_more_of_an_array_than_its_width_are_under_way(how: Settings) -> None:
    site = WorldBuilder().node("n", 8)
    for at in range(6):
        site.submit(f"x{at}", queue="q", array=Array("x", 6, 2))
    decided = carried_out(site, how)
    assert list(nodes_of(decided)) == ["x0", "x1"]
    assert set(gates(decided).values()) == {Gate.ARRAY}
    site.started("x0").ended("x0")
    assert list(nodes_of(carried_out(site, how))) == ["x2"]


# --- the memo -----------------------------------------------------------------------------------------


def test_a_warm_standing_plans_as_an_empty_one() -> None:
    how = queues(cards("a", 3), cards("b", 3), Queue("c"), discipline=Discipline.BEST_EFFORT)
    site, warm = WorldBuilder().node("n", 8), Memo()
    number = 0
    for turn in range(30):
        site.later(1000)
        for queue in "abc"[: 1 + turn % 3]:
            site.submit(f"j{number}", queue=queue, cards=1 + number % 3, priority=number % 2)
            number += 1
        cold = planned(site, how)
        decided = carried_out(site, how, memo=warm)
        assert decided == cold
        for name in list(site.holding)[: turn % 3]:
            site.started(name).ended(name)
    assert any(isinstance(step, Place) for step in cold.steps) or site.waiting


def test_b05_a_job_whose_queue_and_node_are_gone_gives_all_back_when_it_ends() -> None:
    """Release asks nothing of documents: queue and node go, the job ends, both return."""
    site, memo = WorldBuilder().node("n", 4), Memo()
    with_queue = queues(cards("gone", 4, 0), cards("stays", 0))
    site.submit("j1", queue="gone", cards=4)
    carried_out(site, with_queue, memo=memo)
    site.started("j1").lose("n")
    without = queues(cards("stays", 0))
    carried_out(site, without, memo=memo)
    site.ended("j1", Outcome.LOST).cancel("j1")
    site.node("n", 4).submit("j2", queue="gone", cards=4)
    assert list(nodes_of(carried_out(site, with_queue, memo=memo))) == ["j2"]
    assert excess(site.frozen) == {}


def test_b05_a_queue_written_out_under_a_running_job_is_charged_again_when_it_returns() -> None:
    site, memo = WorldBuilder().node("n", 8), Memo()
    with_queue = queues(cards("gone", 4, 0), cards("stays", 4))
    site.submit("j1", queue="gone", cards=4)
    carried_out(site, with_queue, memo=memo)
    carried_out(site, queues(cards("stays", 4)), memo=memo)
    site.submit("j2", queue="gone", cards=1)
    assert gates(carried_out(site, with_queue, memo=memo)) == {"j2": Gate.QUOTA}


@pytest.mark.parametrize("cards_there", [12, 20], ids=["all there are", "the pool may have 12 of 20"])
@pytest.mark.parametrize("first", ["a", "b"])
def test_b27_the_last_lendable_share_goes_to_exactly_one_whoever_asks_first(
    first: str, cards_there: int
) -> None:
    """B27: three queues of 4, two full and one idle; both full ones ask for 4 more in one cycle."""
    other = "ba"["ab".index(first)]
    site = WorldBuilder().nodes(cards_there // 4, 4)
    how = queues(Queue(POOL, quotas=(Quota(CARDS, 12_000),)), *(cards(name, 4) for name in "abc"))
    for name in "ab":
        site.submit(f"{name}0", queue=name, cards=4)
    carried_out(site, how)
    site.submit(f"{first}1", queue=first, cards=4).submit(f"{other}1", queue=other, cards=4)
    for _ in range(3):
        carried_out(site, how)
        assert site.holding == sorted(["a0", "b0", f"{first}1"])
    assert site.free_cards == cards_there - 12
    site.started("a0").ended("a0")
    carried_out(site, how)
    assert f"{other}1" in site.holding


def test_b06_a_queue_is_charged_until_the_last_process_is_gone() -> None:
    """B06, where queues meet it: done is not gone, and what is not gone is not lent on either."""
    site, memo = WorldBuilder().nodes(2, 4), Memo()
    how = queues(cards("a", 4, 0), cards("b", 4, 0))
    site.submit("j1", queue="a", cards=4)
    carried_out(site, how, memo=memo)
    site.started("j1").submit("j2", queue="a", cards=4)
    for says in (site.stopping, site.cancel):
        says("j1")
        assert gates(carried_out(site, how, memo=memo)) == {"j2": Gate.QUOTA}
    site.ended("j1")
    assert list(nodes_of(carried_out(site, how, memo=memo))) == ["j2"]


ORDERS = [("cancel", "ended"), ("ended", "cancel"), ("ended",), ("cancel", "ended", "started")]


@pytest.mark.parametrize("order", ORDERS)
def test_b01_a_deleted_job_gives_its_quota_back_once_in_any_order(order: tuple[str, ...]) -> None:
    """B01, where queues meet it: no order of news leaves a charge, or gives one back twice."""
    site, memo = WorldBuilder().node("n", 8), Memo()
    how = queues(cards("a", 4, 0), cards("b", 4, 0))
    site.submit("j1", queue="a", cards=4)
    carried_out(site, how, memo=memo)
    site.started("j1")
    for what in order:
        if what == "started":
            site.started("j1", attempt=1)
        elif what == "ended":
            site.ended("j1", Outcome.FAILED, attempt=1)
        else:
            site.cancel("j1")
    site.submit("j2", queue="a", cards=3).submit("j3", queue="a").submit("j4", queue="a")
    decided = carried_out(site, how, memo=memo)
    assert sorted(nodes_of(decided)) == ["j2", "j3"]
    assert gates(decided) == {"j4": Gate.QUOTA}
