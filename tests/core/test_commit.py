"""Whether a plan is still true: what is accepted, what comes back with a reason, and I1 in both."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from aliquot.core.events import Granted, Moved, Reserved, Tidied
from aliquot.core.grants import Placement
from aliquot.core.ids import CardId, JobId
from aliquot.core.inventory import CardModel, Node
from aliquot.core.slices import Vector
from aliquot.core.steps import Gate, Kill, Move, Place, Tidy, Wait
from tests.support.build import a_cpu_placement, a_node, a_placement, a_request, node_id
from tests.support.first_fit import first_fit
from tests.support.same import excess, same_world
from tests.support.worlds import WorldBuilder

N0, N1 = a_node("n0", 2), a_node("n1", 2)
HALF = Vector(500, 40_000, 500)


def place(job: str, *placements: Placement, attempt: int = 1) -> Place:
    return Place(JobId(job), attempt, placements)


def move(job: str, placement: Placement, member: int = 0, attempt: int = 1) -> Move:
    return Move(JobId(job), attempt, member, placement)


def two_nodes() -> WorldBuilder:
    return WorldBuilder().node(N0).node(N1)


def reasons(site: WorldBuilder) -> list[str]:
    return [refusal.reason for refusal in site.verdict.refused]


BETWEEN: list[tuple[str, Callable[[WorldBuilder], object], str]] = [
    ("its node was lost", lambda site: site.lose("n0"), "gone"),
    ("its node was drained", lambda site: site.drain("n0"), "gone"),
    ("its card broke", lambda site: site.faulty("n0", "n0-g0"), "no room"),
    ("its board was swapped", lambda site: site.node("n0", ["n0-gX", "n0-g1"]), "gone"),
    ("its node came back smaller", lambda site: site.node("n0", 0), "gone"),
    ("its card's driver keeps more", lambda site: site.node(a_node("n0", 2, model=smaller())), "no room"),
    (
        "another job took the card",
        lambda site: site.submit("k").granted("k", a_placement(N0, [0])),
        "no room",
    ),
    ("it was cancelled", lambda site: site.cancel("j"), "not waiting"),
    ("it was granted already", lambda site: site.granted("j", a_placement(N1, [0])), "not waiting"),
    (
        "it is at a later attempt",
        lambda site: site.granted("j", a_placement(N1, [0])).refused("j"),
        "attempt 1 is over, 2 is due",
    ),
]


def smaller() -> CardModel:
    return replace(N0.cards[0].model, reserved_mib=1)


@pytest.mark.parametrize(("happens", "reason"), [pytest.param(*row[1:], id=row[0]) for row in BETWEEN])
def test_a_place_is_refused_when_meanwhile(happens: Callable[[WorldBuilder], object], reason: str) -> None:
    site = two_nodes().submit("j", a_request(1))
    happens(site)
    before = site.frozen
    site.check(place("j", a_placement(N0, [0])))
    assert site.verdict.events == ()
    assert reason in reasons(site)[0]
    assert same_world(before, site.frozen)


def test_a_place_that_still_holds_is_granted_as_planned() -> None:
    site = two_nodes().submit("j").later(70)
    site.check(place("j", a_placement(N1, [1], cpu=500)))
    assert site.verdict.events == (Granted(70, JobId("j"), 1, (a_placement(N1, [1], cpu=500),)),)
    assert site.row("n1")["idle"] == 0b01
    assert site.row("n1")["cpu"] == 63_500


def test_what_is_refused_does_not_hold_up_the_rest() -> None:
    site = two_nodes().submit("a").submit("b").submit("c")
    site.check(
        place("a", a_placement(N0, [0])),
        place("b", a_placement(N0, [0])),
        Wait(JobId("x"), Gate.FIT),
        Kill(JobId("x"), 1),
        place("c", a_placement(N0, [1])),
    )
    assert [event.job for event in site.verdict.events] == ["a", "c"]
    assert [refusal.step.job for refusal in site.verdict.refused] == ["b"]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_gang_of_which_one_member_has_no_room_any_more_gets_nothing(order: tuple[int, int]) -> None:
    """I5, whichever member comes first."""
    site = two_nodes().submit("g", [a_request(2), a_request(2)]).submit("k").submit("after", a_request(2))
    site.granted("k", a_placement(N1, [0]))
    parts = (a_placement(N0, [0, 1]), a_placement(N1, [0, 1]))
    site.check(place("g", *(parts[at] for at in order)), place("after", a_placement(N0, [0, 1])))
    assert reasons(site) == ["node n1 has no room for it any more"]
    assert site.holding == ["after", "k"], "what the gang would have taken is free for the next"


@pytest.mark.parametrize("placements", [(), (a_placement(N0, [0]),), (a_placement(N0, [0]),) * 3])
def test_a_gang_of_two_takes_exactly_two_places(placements: tuple[Placement, ...]) -> None:
    site = two_nodes().submit("g", [a_request(1), a_request(1)])
    site.check(place("g", *placements))
    assert site.holding == []
    assert "members" in reasons(site)[0]


def test_only_a_job_that_may_scatter_comes_in_pieces() -> None:
    pieces = (a_placement(N0, [0]), a_placement(N1, [0]))
    site = two_nodes().submit("rigid", cards=2).submit("loose", cards=2, scatter=True)
    site.check(place("rigid", *pieces), place("loose", *pieces))
    assert site.holding == ["loose"]
    assert len(site.states("loose")) == 2


def test_the_same_job_twice_in_one_plan_is_granted_once() -> None:
    site = two_nodes().submit("j").check(place("j", a_placement(N0, [0])), place("j", a_placement(N1, [0])))
    assert len(site.granted_events()) == 1


def test_a_plan_committed_twice_grants_once() -> None:
    site = two_nodes().submit("a").submit("b")
    plan = first_fit(site.frozen, 0)
    site.check(*plan.steps)
    after = site.frozen
    site.check(*plan.steps)
    assert site.verdict.events == ()
    assert same_world(after, site.frozen)


def test_two_members_may_not_share_what_only_one_can_have() -> None:
    site = two_nodes().submit("g", [a_request(1, compute=600), a_request(1, compute=600)])
    big = Vector(600, 40_000, 600)
    site.check(place("g", a_placement(N0, [0], big), a_placement(N0, [0], big)))
    assert site.holding == []


# --- moves -----------------------------------------------------------------------------------------------


def slice_on(site: WorldBuilder, job: str, node: Node, slot: int) -> WorldBuilder:
    """A running half-card job."""
    site.submit(job, a_request(1, compute=500, memory=40_000), movable=True)
    return site.granted(job, a_placement(node, [slot], HALF)).started(job)


def test_a_move_makes_room_for_a_place_of_the_same_plan() -> None:
    site = slice_on(slice_on(two_nodes(), "a", N0, 0), "b", N1, 0)
    site.submit("whole", cards=2)
    site.check(move("a", a_placement(N1, [0], HALF)), place("whole", a_placement(N0, [0, 1])))
    assert site.verdict.refused == ()
    assert [type(event) for event in site.verdict.events] == [Moved, Granted]
    assert site.row("n1")["left"][0][0] == 0


def test_a_place_whose_move_was_refused_is_refused_too() -> None:
    site = slice_on(slice_on(slice_on(two_nodes(), "a", N0, 0), "b", N1, 0), "c", N1, 0)
    site.submit("whole", cards=2)
    site.check(move("a", a_placement(N1, [0], HALF)), place("whole", a_placement(N0, [0, 1])))
    assert [type(refusal.step) for refusal in site.verdict.refused] == [Move, Place]
    assert site.grant("a").placement == a_placement(N0, [0], HALF)


def test_moving_the_same_slice_twice_frees_its_first_place_once() -> None:
    """The second move starts where the first ended; else two others would fit where one does."""
    site = slice_on(slice_on(two_nodes(), "a", N0, 0), "b", N0, 0)
    for job in ("c", "d"):
        site.submit(job, a_request(1, compute=500, memory=40_000))
    site.check(
        move("a", a_placement(N1, [0], HALF)),
        move("a", a_placement(N1, [1], HALF)),
        place("c", a_placement(N0, [0], HALF)),
        place("d", a_placement(N0, [0], HALF)),
    )
    assert site.holding == ["a", "b", "c"]
    assert site.row("n1")["left"][0] == [1000, 81_559, 1000], "where it was in between is free again"
    assert excess(site.frozen) == {}


def test_a_move_there_and_back_is_the_identity_on_the_columns() -> None:
    site = slice_on(two_nodes(), "a", N0, 0)
    before = (site.row("n0"), site.row("n1"))
    site.check(move("a", a_placement(N1, [0], HALF)), move("a", a_placement(N0, [0], HALF)))
    assert (site.row("n0"), site.row("n1")) == before


MOVES: list[tuple[str, Callable[[WorldBuilder], object], str]] = [
    ("it ended", lambda site: site.ended("a"), "does not hold"),
    ("its processes are still ending", lambda site: site.stopping("a"), "does not hold"),
    ("its owner gave it up", lambda site: site.cancel("a"), "does not hold"),
    ("its node is away", lambda site: site.lose("n0"), "can't be moved"),
    ("its card is gone", lambda site: site.node("n0", ["n0-gX", "n0-g1"]), "can't be moved"),
    ("its node is closed", lambda site: site.drain("n0"), "can't be moved"),
    ("the other place is gone", lambda site: site.lose("n1"), "gone"),
    ("the other place is taken", lambda site: site.submit("k").granted("k", a_placement(N1, [0])), "no room"),
]


@pytest.mark.parametrize(("happens", "reason"), [pytest.param(*row[1:], id=row[0]) for row in MOVES])
def test_a_move_is_refused_when_meanwhile(happens: Callable[[WorldBuilder], object], reason: str) -> None:
    site = slice_on(two_nodes(), "a", N0, 0)
    happens(site)
    before = site.frozen
    site.check(move("a", a_placement(N1, [0], HALF)))
    assert reason in reasons(site)[0]
    assert same_world(before, site.frozen)


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(move("a", a_placement(N1, [0], HALF), member=1), id="a member it has not"),
        pytest.param(move("a", a_placement(N1, [0], HALF), member=-1), id="a member counted from the end"),
        pytest.param(move("a", a_placement(N1, [0], HALF), attempt=2), id="an attempt to come"),
        pytest.param(move("nobody", a_placement(N1, [0], HALF)), id="a job nobody knows"),
        pytest.param(place("nobody", a_placement(N1, [0])), id="a place for a job nobody knows"),
        pytest.param(place("w", Placement(node_id("nowhere"))), id="a node nobody knows"),
        pytest.param(place("w", Placement(N0.id, (CardId("n1-g0"),), HALF)), id="a card of another node"),
        pytest.param(place("w", a_placement(N0, [1, 1], HALF)), id="one card named twice"),
        pytest.param(move("a", a_placement(N0, [1, 1], HALF)), id="a move to one card twice"),
    ],
)
def test_nonsense_is_refused_not_raised(step: Move | Place) -> None:
    site = slice_on(two_nodes(), "a", N0, 0).submit("w")
    before = site.frozen
    site.check(step)
    assert len(site.verdict.refused) == 1
    assert same_world(before, site.frozen)


def test_a_closed_node_takes_not_even_a_job_that_needs_nothing() -> None:
    site = two_nodes().submit("idle", a_request(0)).drain("n0")
    site.check(place("idle", a_cpu_placement(N0)))
    assert site.holding == []
    site.check(place("idle", a_cpu_placement(N1)))
    assert site.holding == ["idle"]


def test_looking_over_is_noted() -> None:
    site = two_nodes().later(5).check(Tidy(4_000))
    assert site.verdict.events == (Tidied(5, 4_000),)
    assert site.frozen.tally.tidied == 4_000


@pytest.mark.parametrize(
    ("late", "held"), [(False, False), (True, True)], ids=["the plan knew", "the plan was made before"]
)
def test_room_beside_a_slice_that_is_kept_is_given_only_by_a_plan_that_knew_of_it(
    late: bool, held: bool
) -> None:
    half = a_placement(N0, [0], HALF)
    site = two_nodes().submit("kept", a_request(1, compute=500)).submit("j", a_request(1, compute=500))
    before = site.frozen
    site.happen(Reserved(site.at, JobId("kept"), (half,), 0, 9_000, firm=True))
    site.check(place("j", half), seen=before if late else None)
    assert ("kept for job kept" in "".join(reasons(site))) is held


def test_a_whole_card_that_is_kept_firmly_is_given_to_nobody_else() -> None:
    site = two_nodes().submit("kept").submit("j")
    site.happen(Reserved(site.at, JobId("kept"), (a_placement(N0, [0]),), 0, 9_000, firm=True))
    site.check(place("j", a_placement(N0, [0])))
    assert "kept for job kept" in reasons(site)[0]
    site.check(place("kept", a_placement(N0, [0])))
    assert site.verdict.refused == ()
