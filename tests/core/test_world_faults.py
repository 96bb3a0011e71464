"""The faults that other systems had with their ledgers, as stories told to ours."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from msgspec.structs import replace

from aliquot.core.events import JobSubmitted, Outcome
from aliquot.core.grants import GrantState
from aliquot.core.ids import JobId
from aliquot.core.lifecycle import Phase
from aliquot.core.slices import Ask, Cut, Vector
from aliquot.core.steps import Gate, Kill, Start, Wait
from tests.support.build import H100, L40S, T4, a_node, a_placement, a_request, node_id
from tests.support.first_fit import first_fit
from tests.support.same import excess, orphans, same_world
from tests.support.worlds import WorldBuilder

Story = Callable[[WorldBuilder], object]
EIGHT = a_request(8)


def busy_node() -> WorldBuilder:
    """J1 runs on all eight cards of the only node; J2 wants the same."""
    return WorldBuilder().node("n").submit("j1", EIGHT).placed().started("j1").submit("j2", EIGHT)


# --- a job that is deleted gives everything back -----------------------------------------------------


def delete(site: WorldBuilder) -> WorldBuilder:
    return site.cancel("j1")


def terminated(site: WorldBuilder) -> WorldBuilder:
    return site.ended("j1", Outcome.FAILED, attempt=1)


def late_update(site: WorldBuilder) -> WorldBuilder:
    """The object's last update, told when it is already gone."""
    first = next(event for event in site.events if isinstance(event, JobSubmitted))
    return site.happen(first).started("j1", attempt=1).stopping("j1", attempt=1)


@pytest.mark.parametrize(
    "news",
    [
        pytest.param([delete, terminated], id="deleted, then its processes end"),
        pytest.param([terminated, delete], id="its processes end, then deleted"),
        pytest.param([terminated], id="only the end is ever heard of"),
        pytest.param([delete, delete, terminated, terminated, delete], id="everything told again on resync"),
        pytest.param([delete, terminated, late_update], id="an update after all that"),
    ],
)
def test_b01_the_next_job_starts_as_soon_as_the_processes_are_gone(news: list[Story]) -> None:
    site = busy_node()
    for happens in news:
        happens(site)
    assert site.phase("j1") is None
    assert site.free_cards == 8
    site.placed()
    assert site.holding == ["j2"]
    assert site.waiting == []
    assert [type(step) for step in site.world.outstanding()] == [Start]


def test_b01_a_deleted_job_keeps_its_cards_until_its_processes_are_gone() -> None:
    site = busy_node().cancel("j1").placed()
    assert site.free_cards == 0
    assert site.waiting == ["j2"]
    assert site.states("j1") == [GrantState.TERMINATING] * 1
    assert site.world.outstanding() == [Kill(JobId("j1"), 1)]


def test_b01_an_id_is_never_used_again() -> None:
    site = busy_node().ended("j1").cancel("j2")
    for name in ("j1", "j2"):
        site.submit(name, EIGHT)
    assert site.waiting == []
    assert site.frozen.tally.submitted == 2


# --- boards and nodes that come and go ---------------------------------------------------------------


def test_b02_a_swapped_board_orphans_its_grant_and_is_a_new_card() -> None:
    site = WorldBuilder().node("n", ["A", "B"]).submit("j1", a_request(memory=20_000)).placed().started("j1")
    before = site.row("n")["left"][1]
    site.node("n", ["C", "B"])
    assert site.states("j1") == [GrantState.ORPHANED]
    assert orphans(site.frozen) == ["j1"], "it is still listed"
    assert site.row("n")["left"] == [[1000, 81_559, 1000], before]
    assert site.free_cards == 2
    site.submit("j2").submit("j3").placed()
    assert [grant.placement.cards for job in ("j2", "j3") for grant in site.world.grants[JobId(job)]] == [
        ("C",),
        ("B",),
    ]
    site.ended("j1", Outcome.FAILED).ended("j2").ended("j3")
    assert site.free_cards == 2
    assert site.holding == []


def test_b02_an_orphan_finds_its_card_when_the_board_comes_back() -> None:
    site = WorldBuilder().node("n", ["A", "B"]).submit("j1").placed().started("j1")
    site.node("n", ["C", "B"]).node("n", ["B", "A"])
    assert site.states("j1") == [GrantState.RUNNING]
    assert site.row("n")["idle"] == 0b01, "its card has moved to another slot"


def test_cards_of_a_job_that_lost_one_are_not_sold_while_its_processes_may_use_them() -> None:
    """A job on A and B loses A: it is orphaned, B stays its own until its end is proven."""
    site = WorldBuilder().node("n", ["A", "B"]).submit("j1", a_request(2, cpu=4_000)).placed().started("j1")
    site.node("n", ["C", "B"]).submit("j2").submit("j3").placed()
    assert site.states("j1") == [GrantState.ORPHANED]
    assert site.row("n")["left"][1] == [0, 0, 0]
    assert site.row("n")["cpu"] == 60_000
    assert site.holding == ["j1", "j2"]
    assert site.waiting == ["j3"]
    site.ended("j1", Outcome.FAILED).placed()
    assert site.holding == ["j2", "j3"]


def test_a_lost_node_offers_nothing_and_keeps_its_grants_until_the_attempts_are_proven_over() -> None:
    site = WorldBuilder().nodes(2, cards=2).submit("j1", cards=2).placed().started("j1").lose("n0")
    assert site.states("j1") == [GrantState.ORPHANED]
    assert site.phase("j1") is Phase.RUNNING
    assert site.is_strained("n0")
    assert site.free_cards == 2
    site.later(90).ended("j1", Outcome.LOST).placed()
    assert site.job("j1").attempt == 2
    assert site.job("j1").job.submitted_ms == 0, "the wait counts from the first submission"
    assert site.grant("j1").placement.node == node_id("n1")
    site.node("n0", 2)
    assert site.row("n0")["idle"] == 0b11, "the old grant does not come back with the node"


def test_a_node_that_was_only_away_finds_its_tenants_again() -> None:
    site = WorldBuilder().node("n", 2).submit("j1", cards=2).placed().started("j1")
    before = site.frozen
    site.lose("n").submit("j2").placed()
    assert site.waiting == ["j2"]
    site.cancel("j2").node("n", 2)
    assert site.states("j1") == [GrantState.RUNNING]
    assert replace(site.frozen, tally=before.tally).grants == before.grants
    assert site.free_cards == 0
    assert not site.is_strained("n")


def test_a_tenant_that_ends_while_its_node_is_away_is_gone_when_it_returns() -> None:
    site = WorldBuilder().node("n", 2).submit("j1").placed().started("j1").lose("n").ended("j1")
    assert site.frozen.residents.get(0, ()) == ()
    assert site.node("n", 2).free_cards == 2


def test_a_drained_node_lets_its_tenants_finish_and_takes_none() -> None:
    site = WorldBuilder().node("n", 2).submit("j1").placed().started("j1").drain("n").submit("j2").placed()
    assert site.states("j1") == [GrantState.RUNNING]
    assert site.waiting == ["j2"]
    assert site.ended("j1").placed().waiting == ["j2"], "what comes free stays closed"
    assert site.free_cards == 0
    site.node("n", 2)
    assert site.free_cards == 0, "reporting anew does not undo a drain"
    assert site.drain("n", drained=False).placed().holding == ["j2"]


def test_a_bad_card_keeps_its_tenant_and_takes_no_other() -> None:
    site = WorldBuilder().node("n", 2).submit("j1", a_request(compute=500)).placed().started("j1")
    site.faulty("n", "n-g0").submit("j2", a_request(compute=500)).submit("j3", cards=2).placed()
    assert site.states("j1") == [GrantState.RUNNING]
    assert site.grant("j2").placement.cards == ("n-g1",)
    assert site.waiting == ["j3"]
    assert site.is_strained("n")
    site.ended("j1").ended("j2")
    assert site.free_cards == 1, "an empty bad card is still bad"
    site.faulty("n")
    assert site.free_cards == 2
    assert not site.is_strained("n")
    assert site.placed().holding == ["j3"]


def test_a_bad_card_that_is_not_there_strains_nobody() -> None:
    site = WorldBuilder().node("n", 2).faulty("n", "of-another-node")
    assert site.free_cards == 2
    assert not site.is_strained("n")


# --- what shrinks ------------------------------------------------------------------------------------


def full_of_singles() -> WorldBuilder:
    """Eight one-card jobs on eight cards, each with 8 cores, and an empty neighbour."""
    site = WorldBuilder().node("n", 8, cpu=64_000)
    for number in range(8):
        site.submit(f"j{number}", a_request(1, cpu=8_000))
    site.placed()
    assert site.free_cards == 0
    return site.node("other", 2)


SHRUNK: list[tuple[str, Story, dict[tuple[int, str, int], int], list[str]]] = [
    ("two cards gone from the report", lambda site: site.node("n", 6), {}, ["j6", "j7"]),
    ("two cards bad", lambda site: site.faulty("n", "n-g6", "n-g7"), {}, []),
    ("a quarter of its cpus gone", lambda site: site.node("n", 8, cpu=48_000), {(0, "cpu", 0): 16_000}, []),
    (
        "its drivers keep more for themselves",
        lambda site: site.node("n", 8, model=replace(H100, reserved_mib=500)),
        {(0, "memory", at): 500 for at in range(8)},
        [],
    ),
]


@pytest.mark.parametrize(
    ("shrinks", "over", "orphaned"), [pytest.param(*row[1:], id=row[0]) for row in SHRUNK]
)
def test_b33_a_node_that_shrank_below_its_grants_has_nothing_free_never_less(
    shrinks: Story, over: dict[tuple[int, str, int], int], orphaned: list[str]
) -> None:
    site = full_of_singles()
    shrinks(site)
    row = site.row("n")
    assert row["idle"] == 0
    assert min(number for card in row["left"] for number in card) == 0
    assert row["cpu"] == 0
    assert excess(site.frozen) == over
    assert orphans(site.frozen) == orphaned
    assert site.is_strained("n") or orphaned, "someone can see it"
    site.submit("more", cards=2).submit("too-many").placed()
    assert site.grant("more").placement.node == node_id("other"), "other nodes go on"
    assert site.waiting == ["too-many"]
    for number in range(8):
        site.ended(f"j{number}")
    assert excess(site.frozen) == {}


def test_b33_the_last_tenant_in_excess_frees_nothing_the_next_does() -> None:
    site = full_of_singles().node("n", 8, cpu=48_000).drain("other")
    site.submit("next", a_request(1, cpu=8_000))
    for gone, starts in (("j0", False), ("j1", False), ("j2", True)):
        site.ended(gone).placed()
        assert (site.waiting == []) is starts, gone
    assert not site.is_strained("n")


# --- ends and failures -------------------------------------------------------------------------------


def test_b06_a_finished_job_holds_everything_until_its_processes_are_gone() -> None:
    site = busy_node().stopping("j1").later(5_000).placed()
    assert site.states("j1") == [GrantState.TERMINATING]
    assert site.free_cards == 0
    assert site.waiting == ["j2"]
    site.later(85_000).ended("j1").placed()
    assert site.holding == ["j2"]


def test_b06_a_second_announcement_of_the_end_changes_nothing() -> None:
    site = busy_node().stopping("j1")
    before = site.frozen
    site.later(50).stopping("j1").started("j1").refused("j2")
    assert same_world(before, site.frozen)


FAILURES: list[tuple[str, Story]] = [
    ("reserve: the node turns it away", lambda site: site.refused("j")),
    ("persist: the record is told, then turned away", lambda site: site.refused("j").refused("j", attempt=1)),
    ("isolate: started, then its processes fail", lambda site: site.started("j").ended("j", Outcome.FAILED)),
    ("launch: its end is heard before its start", lambda site: site.ended("j", Outcome.FAILED)),
    (
        "watch: its node is lost, proven later",
        lambda site: site.started("j").lose("n").ended("j", Outcome.LOST),
    ),
    ("stop: given up, then turned away", lambda site: site.cancel("j").refused("j")),
    ("stop: given up while running", lambda site: site.started("j").cancel("j").ended("j", Outcome.FAILED)),
]


@pytest.mark.parametrize("fails", [pytest.param(story, id=name) for name, story in FAILURES])
def test_b08_whatever_fails_gives_back_what_was_taken_once(fails: Story) -> None:
    site = WorldBuilder().node("n", 3, cpu=9_000, numa=3)
    before = site.row("n")
    for _ in range(3):
        site.submit("j", a_request(3, cpu=5_001)).later(100_000).placed()
        if site.phase("j") is None:
            break
        fails(site)
        if not site.world.nodes[node_id("n")].up:
            site.node("n", 3, cpu=9_000, numa=3)
        assert site.row("n") == before
        assert excess(site.frozen) == {}
    assert site.world.outstanding() == []


@pytest.mark.parametrize("repeats", [1, 2, 200])
def test_b08_release_is_idempotent(repeats: int) -> None:
    site = WorldBuilder().node("n", 3).submit("j", cards=3).submit("k", a_request(0, cpu=1)).placed()
    for _ in range(repeats):
        site.ended("j", Outcome.FAILED, attempt=1).refused("j", attempt=1)
    assert site.free_cards == 3
    assert site.row("n")["cpu"] == 63_999


def test_a_failed_job_is_over_and_a_lost_one_waits_again() -> None:
    site = WorldBuilder().node("n", 2).submit("bad").submit("unlucky").placed()
    site.ended("bad", Outcome.FAILED).ended("unlucky", Outcome.LOST)
    assert site.phase("bad") is None
    assert site.waiting == ["unlucky"]
    assert site.job("unlucky").not_before_ms == site.at, "it was not the job's fault"


# --- amounts -----------------------------------------------------------------------------------------


def fitted(model: object, asks: list[Ask]) -> WorldBuilder:
    """One card of `model`, and a job for each of `asks` that wants in."""
    site = WorldBuilder().node("n", 1, model=model)
    for number, ask in enumerate(asks):
        site.submit(f"j{number:02}", replace(a_request(1), ask=ask))
    return site.placed()


def test_b09_23_slices_of_2000_fit_on_46068_and_not_24() -> None:
    site = fitted(L40S, [Ask(Cut.SHARED, 2_000)] * 24)
    assert len(site.holding) == 23
    assert site.waiting == ["j23"]
    assert site.row("n")["left"][0][1] == 68


def test_b09_three_exact_thirds_fit() -> None:
    site = fitted(L40S, [Ask(Cut.SHARED, 15_356)] * 4)
    assert site.holding == ["j00", "j01", "j02"]
    assert site.row("n")["left"][0][1] == 0


@pytest.mark.parametrize(
    ("asks", "placed"),
    [
        pytest.param([7_680, 7_680], ["j00"], id="two halves of the printed size"),
        pytest.param([15_360], [], id="the printed size"),
        pytest.param([14_917], ["j00"], id="the usable size"),
        pytest.param([7_459, 7_458], ["j00", "j01"], id="two halves of the usable size"),
    ],
)
def test_b10_what_the_driver_keeps_is_never_granted(asks: list[int], placed: list[str]) -> None:
    site = fitted(T4, [Ask(Cut.SHARED, memory) for memory in asks])
    assert site.holding == placed


def test_b21_a_job_with_all_compute_has_no_neighbour() -> None:
    site = fitted(T4, [Ask(Cut.SHARED, 1_000, 1_000), Ask(Cut.SHARED, 1_000)])
    assert site.waiting == ["j01"]


def test_b21_a_whole_card_is_booked_in_every_dimension() -> None:
    site = fitted(T4, [Ask()])
    assert site.grant("j00").placement.vector == Vector(1000, 14_917, 1000)
    assert site.row("n")["left"] == [[0, 0, 0]]


@pytest.mark.parametrize(
    ("tenants", "placed"),
    [
        pytest.param((3, 4), False, id="one card has a free quarter, the other none"),
        pytest.param((2, 4), False, id="two free quarters on one card are not two cards"),
        pytest.param((3, 3), True, id="a quarter of each"),
    ],
)
def test_b19_two_shares_of_one_card_are_not_two_cards(tenants: tuple[int, int], placed: bool) -> None:
    node = a_node("n", 2, model=T4)
    quarter = Vector(250, 3_000, 250)
    site = WorldBuilder().node(node)
    for slot, count in enumerate(tenants):
        for number in range(count):
            name = f"t{slot}{number}"
            site.submit(name, a_request(1, compute=250, memory=3_000))
            site.granted(name, a_placement(node, [slot], quarter))
    site.submit("two", a_request(2, compute=250, memory=3_000)).placed()
    assert (site.phase("two") is Phase.STARTING) is placed


# --- many at once, and turned away -------------------------------------------------------------------


def test_b12_fifty_jobs_and_five_cards_make_five_owners() -> None:
    site = WorldBuilder().node("n", 6).submit("a").placed().started("a")
    for number in range(50):
        site.submit(f"j{number:02}")
    seen = site.frozen
    plans = [first_fit(seen, site.at) for _ in range(8)]
    for plan in plans:
        site.check(*plan.steps, seen=seen)
    assert site.holding == ["a", "j00", "j01", "j02", "j03", "j04"]
    owners = [card for held in site.world.grants.values() for grant in held for card in grant.placement.cards]
    assert len(set(owners)) == len(owners) == 6
    assert len(site.waiting) == 45


def test_b12_a_grant_turned_away_goes_back_once_and_waits_longer_each_time() -> None:
    site = WorldBuilder().node("n", 1).submit("j")
    waits = []
    for attempt in range(1, 11):
        site.later(site.job("j").not_before_ms - site.at).placed()
        assert site.grant("j").id.attempt == attempt
        site.refused("j", attempt=attempt).refused("j", attempt=attempt)
        assert site.waiting == ["j"]
        waits.append(site.job("j").not_before_ms - site.at)
        assert first_fit(site.frozen, site.at).steps == (Wait(JobId("j"), Gate.BACKOFF),)
    assert waits[:3] == [1_000, 2_000, 4_000]
    assert all(before <= after for before, after in pairwise(waits))
    assert waits[-1] == waits[-2] == 64_000, "it grows up to a bound"
    site.later(waits[-1]).placed().started("j")
    assert site.phase("j") is Phase.RUNNING


def test_after_a_loss_the_back_off_begins_anew() -> None:
    site = WorldBuilder().node("n", 1).submit("j").placed().refused("j").later(1_000).placed()
    site.ended("j", Outcome.LOST).placed().refused("j")
    assert site.job("j").not_before_ms - site.at == 1_000


def test_of_whom_nobody_sees_how_he_ended_he_waits_longer_each_time_and_is_counted() -> None:
    site, waits = WorldBuilder().node("n", 1).submit("j"), []
    for losses in range(3):
        site.later(site.job("j").not_before_ms - site.at).placed().started("j")
        site.ended("j", Outcome.LOST, unseen=True)
        assert site.job("j").losses == losses + 1
        waits.append(site.job("j").not_before_ms - site.at)
    assert waits == [1_000, 2_000, 4_000]
    site.later(4_000).placed().refused("j")
    assert (site.job("j").losses, site.job("j").refusals) == (3, 1), "it did not run"
    site.later(1_000).placed()
    assert [step.losses for step in site.world.outstanding() if isinstance(step, Start)] == [3]
    site.started("j").ended("j", Outcome.LOST)
    assert (site.job("j").losses, site.job("j").not_before_ms) == (0, site.at)
    assert same_world(site.frozen, site.rebuilt().freeze())
