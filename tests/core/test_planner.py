"""The planner: who goes first, all or nothing, what may pass what, and when to look again."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from aliquot.control.encode import encode_json
from aliquot.core.planner import Memo
from aliquot.core.settings import Discipline
from aliquot.core.steps import Gate, Place, Wait
from aliquot.core.topology.wiring import pcie
from tests.support.build import L40S, a_node, a_request, card_id
from tests.support.planning import carried_out, gates, nodes_of, placements, planned, settings, why
from tests.support.worlds import WorldBuilder

STRICT = settings(discipline=Discipline.STRICT)
BEST_EFFORT = settings()


def test_nothing_waits_and_nothing_is_planned() -> None:
    decided = planned(WorldBuilder().node("n", 8))
    assert (decided.steps, decided.wake_ms) == ((), None)


def test_priority_first_then_first_come() -> None:
    site = WorldBuilder().node("n", 2).submit("early").later(5).submit("late").later(5)
    site.submit("urgent", priority=10).submit("urgent-too", priority=10)
    decided = carried_out(site)
    assert [step.job for step in decided.steps] == ["urgent", "urgent-too", "early", "late"]
    assert gates(decided) == {"early": Gate.FIT, "late": Gate.FIT}


def test_without_priorities_only_the_time_of_submission_counts() -> None:
    site = WorldBuilder().node("n", 1).submit("early").later(5).submit("urgent", priority=10)
    decided = carried_out(site, settings(by_priority=False))
    assert [step.job for step in decided.steps] == ["early", "urgent"]
    assert list(placements(decided)) == ["early"]


def test_strict_order_blocks_what_stands_behind_the_first_that_does_not_fit() -> None:
    site = WorldBuilder().node("n", 4).submit("first", cards=2).submit("wide", cards=4).submit("small")
    decided = carried_out(site, STRICT)
    assert list(placements(decided)) == ["first"]
    assert gates(decided) == {"wide": Gate.FIT, "small": Gate.ORDER}


def test_best_effort_lets_the_small_pass_the_wide() -> None:
    site = WorldBuilder().node("n", 4).submit("first", cards=2).submit("wide", cards=4).submit("small")
    decided = carried_out(site, BEST_EFFORT)
    assert list(placements(decided)) == ["first", "small"]
    assert gates(decided) == {"wide": Gate.FIT}


def test_a_strict_queue_looks_past_a_job_that_a_node_has_just_refused() -> None:
    """A back-off is the node's doing: it holds nobody else up."""
    site = WorldBuilder().node("n", 4).submit("refused").submit("next")
    carried_out(site, STRICT)
    site.refused("refused").refused("next", reason="x").submit("fresh")
    decided = planned(site, STRICT)
    assert gates(decided) == {"refused": Gate.BACKOFF, "next": Gate.BACKOFF}
    assert list(placements(decided)) == ["fresh"]


def test_a_refused_job_backs_off_and_the_plan_says_when_to_look_again() -> None:
    site = WorldBuilder().node("n", 4).submit("job")
    carried_out(site)
    site.later(100).refused("job")
    due = site.job("job").not_before_ms
    assert due > site.at
    decided = planned(site)
    assert (gates(decided), decided.wake_ms) == ({"job": Gate.BACKOFF}, due)
    site.later(due - site.at)
    assert list(placements(planned(site))) == ["job"]


def test_the_earliest_back_off_is_the_time_to_wake() -> None:
    site = WorldBuilder().node("n", 4).submit("one").submit("two")
    carried_out(site)
    site.refused("one").later(700).refused("two")
    assert planned(site).wake_ms == site.job("one").not_before_ms


# --- gangs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("members", [(3, 5), (5, 3)], ids=["small one first", "large one first"])
@pytest.mark.parametrize("nodes", [(5, 3), (3, 5)], ids=["large node first", "small node first"])
def test_b15_parts_of_3_and_5_find_nodes_with_3_and_5_in_any_order(
    members: tuple[int, int], nodes: tuple[int, int]
) -> None:
    site = WorldBuilder()
    for number, free in enumerate(nodes):
        site.node(f"n{number}", free)
    site.submit("gang", [a_request(cards) for cards in members])
    (there,) = placements(carried_out(site)).values()
    assert [len(cards) for _, cards in there] == list(members), "placements come in the members' order"
    assert site.free_cards == 0


def test_b15_three_parts_on_two_nodes() -> None:
    site = WorldBuilder().node("five", 5).node("three", 3)
    site.submit("gang", [a_request(3), a_request(3), a_request(2)])
    assert sorted(nodes_of(carried_out(site))["gang"]) == ["five", "five", "three"]
    assert site.free_cards == 0


def test_a_gang_gets_all_or_nothing_and_leaves_no_trace() -> None:
    site = WorldBuilder().node("n", 8)
    site.submit("gang", [a_request(5), a_request(4)]).submit("after", cards=8)
    decided = carried_out(site)
    assert gates(decided) == {"gang": Gate.FIT}
    assert list(placements(decided)) == ["after"], "the five cards tried for the gang are free again"


def test_what_was_refused_beside_half_a_gang_is_asked_again_when_the_half_is_gone() -> None:
    part = a_request(1)
    site = WorldBuilder().node("n", 2).submit("gang", [part, part, part]).submit("single", part)
    assert list(placements(carried_out(site))) == ["single"]


def test_a_gang_mixes_cards_slices_and_processors() -> None:
    site = WorldBuilder().node("n", 2).node(a_node("cpu", 0, cpu=8_000))
    site.submit("gang", [a_request(0, cpu=100_000 - 36_000), a_request(1, compute=300), a_request(1)])
    there = placements(carried_out(site))["gang"]
    assert [len(cards) for _, cards in there] == [0, 1, 1]
    assert there[1][1] != there[2][1]


def test_same_input_same_plan_byte_for_byte() -> None:
    def decide() -> bytes:
        site = WorldBuilder().nodes(5, cards=8)
        for number in range(12):
            site.submit(f"j{number}", [a_request(1 + number % 4)] * (1 + number % 3), priority=number % 2)
        return encode_json(planned(site))

    assert decide() == decide()


# --- slices and whole cards ------------------------------------------------------------------------------


def pieces(site: WorldBuilder, compute: int, *, distinct: bool, cards: int = 4) -> list[str]:
    request = replace(a_request(cards, compute=compute), distinct=distinct)
    site.submit("slices", request)
    ((_, found),) = placements(carried_out(site))["slices"]
    return found


def test_b19_slices_on_distinct_cards() -> None:
    site = WorldBuilder().node("n", 8)
    assert len(set(pieces(site, 250, distinct=True))) == 4


def test_b19_slices_packed_on_as_few_cards_as_will_do() -> None:
    site = WorldBuilder().node("n", 8)
    assert len(pieces(site, 250, distinct=False)) == 1
    assert site.row("n")["left"][0][0] == 0, "four quarters are one card"


def test_b19_packing_spreads_again_where_no_card_has_room_for_all() -> None:
    site = WorldBuilder().node("n", 2).submit("one", a_request(1, compute=300))
    carried_out(site)
    site.submit("two", a_request(1, compute=600))
    carried_out(site, settings("spread"))
    assert len(pieces(site, 200, distinct=False)) == 2, "700 and 400 milli are left: two each"


def test_b21_a_slice_with_all_the_compute_keeps_others_off_the_card() -> None:
    site = WorldBuilder().node("n", 2)
    site.submit("exclusive", a_request(1, memory=2_000, compute=1_000)).submit(
        "slice", a_request(1, memory=2_000)
    )
    there = placements(carried_out(site))
    assert there["exclusive"] != there["slice"]
    site.submit("whole", a_request(1))
    assert gates(carried_out(site)) == {"whole": Gate.FIT}


def test_under_a_whole_card_policy_a_slice_takes_a_card_for_itself() -> None:
    whole = settings("spread", shared=False)
    site = (
        WorldBuilder()
        .node("n", 2)
        .submit("a", a_request(1, memory=2_000))
        .submit("b", a_request(1, memory=2_000))
    )
    decided = carried_out(site, whole)
    first, second = (step.placements[0] for step in decided.steps if isinstance(step, Place))
    assert (first.whole, first.cards != second.cards, first.vector.compute) == (True, True, 1000)
    assert site.submit("c", a_request(1, memory=2_000)).free_cards == 0
    assert gates(carried_out(site, whole)) == {"c": Gate.FIT}
    assert gates(
        carried_out(
            WorldBuilder().node(a_node("n", 1, model=L40S)).submit("big", a_request(1, memory=46_069)), whole
        )
    )


def test_whole_cards_and_slices_share_a_site() -> None:
    site = WorldBuilder().node("n", 4)
    site.submit("slice", a_request(1, compute=500)).submit("whole", cards=3).submit(
        "second", a_request(1, compute=500)
    )
    there = placements(carried_out(site))
    assert there["slice"] == there["second"]
    assert site.free_cards == 0


# --- splitting over nodes --------------------------------------------------------------------------------


def test_a_job_that_may_scatter_is_split_where_policy_lets_it() -> None:
    site = WorldBuilder().nodes(2, cards=4).submit("wide", a_request(8, cpu=8_000, host=16_000), scatter=True)
    assert gates(planned(site)) == {"wide": Gate.FIT}
    decided = carried_out(site, settings(scatter=True))
    (step,) = decided.steps
    assert isinstance(step, Place)
    assert [(len(part.cards), part.cpu, part.host) for part in step.placements] == [(4, 4_000, 8_000)] * 2


def test_it_is_split_into_as_few_pieces_as_fit_and_only_if_it_may() -> None:
    how = settings(scatter=True)
    site = (
        WorldBuilder().node("a", 3).node("b", 3).submit("stays", cards=6).submit("six", cards=6, scatter=True)
    )
    decided = carried_out(site, how)
    assert gates(decided) == {"stays": Gate.FIT}
    assert [len(cards) for _, cards in placements(decided)["six"]] == [3, 3]


def test_a_node_that_has_all_cards_beats_splitting() -> None:
    site = WorldBuilder().nodes(2, cards=4).node("big", 8).submit("job", cards=8, scatter=True)
    assert nodes_of(carried_out(site, settings(scatter=True))) == {"job": ["big"]}


# --- crowds and faults -----------------------------------------------------------------------------------


def test_b12_fifty_jobs_and_five_free_cards() -> None:
    site = WorldBuilder().node("n", 5)
    for number in range(50):
        site.submit(f"j{number:02}")
    decided = carried_out(site)
    assert list(placements(decided)) == [f"j{number:02}" for number in range(5)]
    assert len(gates(decided)) == 45
    taken = [card for there in placements(decided).values() for _, cards in there for card in cards]
    assert len(set(taken)) == 5
    for number in range(5):
        site.started(f"j{number:02}").ended(f"j{number:02}")
    assert list(placements(carried_out(site))) == [f"j{number:02}" for number in range(5, 10)]


def test_b09_what_a_lost_node_had_is_not_planned_with() -> None:
    site = WorldBuilder().nodes(2, cards=4).submit("job", cards=4)
    carried_out(site)
    lost = site.grant("job").placement.node.name
    other = {"n0": "n1", "n1": "n0"}[lost]
    site.started("job").lose(lost).submit("next", cards=4).submit("third", cards=4)
    decided = carried_out(site)
    assert nodes_of(decided) == {"next": [other]}
    assert gates(decided)["third"] is Gate.FIT


def test_b10_a_faulty_card_is_not_handed_out_and_a_drained_node_takes_nothing() -> None:
    site = WorldBuilder().node("n", 4).node("drained", 4).faulty("n", "n-g0", "n-g2").drain("drained")
    site.submit("pair", cards=2).submit("third")
    decided = carried_out(site)
    assert placements(decided) == {"pair": [("n", ["n-g1", "n-g3"])]}
    assert gates(decided) == {"third": Gate.FIT}
    site.faulty("n", "n-g0")
    assert placements(carried_out(site)) == {"third": [("n", ["n-g2"])]}


def test_a_node_that_comes_back_is_planned_with_again() -> None:
    memo = Memo()
    site = WorldBuilder().node("n", 4).submit("job", cards=4).lose("n")
    assert gates(carried_out(site, memo=memo)) == {"job": Gate.FIT}
    site.node("n", 4)
    assert nodes_of(carried_out(site, memo=memo)) == {"job": ["n"]}


# --- what it says ----------------------------------------------------------------------------------------


def test_what_can_never_fit_is_told_from_what_has_to_wait() -> None:
    site = WorldBuilder().node("n", 8).submit("now", cards=8)
    carried_out(site)
    site.submit("later", cards=8).submit("never", cards=9).submit("too-big", a_request(1, memory=200_000))
    assert why(site, "later").gate is Gate.FIT
    assert why(site, "never").gate is Gate.NEVER
    assert why(site, "too-big").gate is Gate.NEVER


def test_a_gang_that_asks_for_more_cards_than_there_are_can_never_start() -> None:
    site = WorldBuilder().node("a", 4).node("b", 4).submit("gang", [a_request(4)] * 3)
    assert why(site, "gang").gate is Gate.NEVER


def test_a_job_held_by_the_order_alone_has_no_reasons() -> None:
    site = WorldBuilder().node("n", 4).submit("wide", cards=5).submit("small")
    assert (why(site, "small").gate, why(site, "small").reasons) == (Gate.ORDER, ())


def test_only_the_job_to_explain_names_a_runner_up() -> None:
    site = WorldBuilder().nodes(2, cards=2).submit("a").submit("b")
    decided = planned(site, explained=site.job("b").job.id)
    first, second = decided.steps
    assert isinstance(first, Place)
    assert isinstance(second, Place)
    assert first.runner_up is None
    assert second.runner_up is not None
    assert second.runner_up.score >= second.score - 1e-9
    assert second.runner_up.node != second.placements[0].node


def test_explaining_changes_nothing_else() -> None:
    site = WorldBuilder().nodes(3, cards=2).submit("a").submit("b").submit("c", cards=2)
    plain = planned(site)
    told = planned(site, explained=site.job("b").job.id)
    bare = [replace(step, runner_up=None) if isinstance(step, Place) else step for step in told.steps]
    assert bare == list(plain.steps)


def test_a_plan_changes_nothing_it_was_given() -> None:
    site = WorldBuilder().node("n", 4).submit("job", cards=4)
    seen = site.frozen
    before = seen.chunks[0].idle.tobytes()
    assert placements(planned(site))
    assert seen.chunks[0].idle.tobytes() == before
    assert site.waiting == ["job"]


def test_waits_carry_no_reasons_until_somebody_asks() -> None:
    """A plan of thousands must not pay for sentences that nobody reads."""
    decided = planned(WorldBuilder().node("n", 1).submit("job", cards=2))
    (wait,) = decided.steps
    assert isinstance(wait, Wait)
    assert wait.reasons == ()


def test_a_second_chatty_job_of_one_card_hangs_on_another_uplink() -> None:
    """Two switches of two cards each at 24 GB/s: two jobs of 15 GB/s would share an uplink and stall."""
    site = WorldBuilder().node(a_node("n", 4, wiring=pcie(4, 2, 4)))
    site.submit("first", a_request(1, traffic=15_000)).submit("second", a_request(1, traffic=15_000))
    placed = placements(carried_out(site))
    switch = {card_id("n", slot): slot // 2 for slot in range(4)}
    assert {switch[cards[0]] for ((_, cards),) in placed.values()} == {0, 1}


def test_a_chatty_job_of_one_card_goes_to_a_node_whose_uplink_is_free() -> None:
    site = (
        WorldBuilder().node(a_node("a", 2, wiring=pcie(2, 2, 2))).node(a_node("b", 2, wiring=pcie(2, 2, 2)))
    )
    site.submit("first", a_request(1, traffic=15_000)).submit("second", a_request(1, traffic=15_000))
    assert sorted(nodes_of(carried_out(site)).values()) == [["a"], ["b"]]
