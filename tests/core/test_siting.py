"""Seats on a draft: what is booked where, what is given back, and cards that nothing can use any more."""

from __future__ import annotations

from aliquot.core.memo import Memo
from aliquot.core.siting import Desk
from aliquot.core.steps import Shortfall
from aliquot.core.topology.wiring import pcie
from tests.support.build import a_node, a_request
from tests.support.planning import carried_out, gates, placements, settings, shortfalls, why
from tests.support.worlds import WorldBuilder

HOW = settings()


def a_desk(site: WorldBuilder) -> Desk:
    return Desk(site.frozen, HOW, Memo())


def test_a_seat_is_on_the_draft_only() -> None:
    site = WorldBuilder().node("n", 2)
    desk = a_desk(site)
    assert desk.seat(a_request(2)) is not None
    assert desk.seat(a_request(1)) is None
    assert site.free_cards == 2


def test_going_back_makes_room_and_shows_it_to_the_scorers() -> None:
    desk = a_desk(WorldBuilder().node("n", 2).node("m", 2))
    one = a_request(1)
    assert desk.seat(one) is not None
    mark = desk.mark()
    assert [desk.seat(one) is not None for _ in range(4)] == [True, True, True, False]
    desk.rollback(mark)
    assert [desk.seat(one) is not None for _ in range(4)] == [True, True, True, False]


def test_marks_may_be_nested() -> None:
    desk = a_desk(WorldBuilder().node("n", 3))
    one = a_request(1)
    outer = desk.mark()
    desk.seat(one)
    inner = desk.mark()
    desk.seat(one)
    desk.rollback(inner)
    desk.rollback(outer)
    assert desk.seat(a_request(3)) is not None


def test_releasing_forgets_what_was_refused() -> None:
    desk = a_desk(WorldBuilder().node("n", 1))
    one = a_request(1)
    seated = desk.seat(one)
    assert seated is not None
    assert desk.seat(one) is None
    desk.release(seated.seat)
    assert desk.seat(one) is not None


def test_a_desk_leaves_no_trace_in_the_memo_it_used() -> None:
    site, memo = WorldBuilder().node("n", 2), Memo()
    for _ in range(3):
        desk = Desk(site.frozen, HOW, memo)
        assert desk.seat(a_request(2)) is not None


# --- host resources --------------------------------------------------------------------------------------


def two_sockets(**how: int) -> WorldBuilder:
    return WorldBuilder().node(a_node("n", 4, numa=2, wiring=pcie(4, 2, 2), **how))


def test_cpu_and_memory_are_booked_on_the_numa_node_of_the_cards() -> None:
    site = two_sockets(cpu=16_000, host=64_000).faulty("n", "n-g0", "n-g1")
    site.submit("job", a_request(2, cpu=4_000, host=8_000))
    carried_out(site, HOW)
    assert site.grant("job").placement.numa == ((1, 4_000, 8_000),)
    assert site.row("n")["numa_cpu"][:2] == [8_000, 4_000]


def test_what_the_near_numa_node_lacks_comes_from_the_other() -> None:
    site = two_sockets(cpu=16_000, host=64_000).submit("job", a_request(2, cpu=12_000, host=8_000))
    carried_out(site, HOW)
    assert site.grant("job").placement.numa == ((0, 8_000, 8_000), (1, 4_000, 0))


def test_a_set_on_both_sockets_takes_even_shares() -> None:
    site = two_sockets(cpu=16_000, host=64_000).submit("job", a_request(4, cpu=8_000, host=8_000))
    carried_out(site, HOW)
    assert site.grant("job").placement.numa == ((0, 4_000, 4_000), (1, 4_000, 4_000))


def test_where_numa_is_unknown_nothing_is_booked_on_it() -> None:
    site = WorldBuilder().node("n", 2).submit("job", a_request(1, cpu=4_000, host=8_000))
    carried_out(site, HOW)
    assert site.grant("job").placement.numa == ()
    assert site.row("n")["cpu"] == 60_000


def test_cards_without_cpu_are_stranded_and_the_reason_says_so() -> None:
    site = WorldBuilder().node(a_node("n", 4, cpu=8_000)).submit("greedy", a_request(1, cpu=7_500))
    carried_out(site, HOW)
    site.submit("job", a_request(1, cpu=1_000))
    assert "job" in gates(carried_out(site, HOW))
    assert site.free_cards == 3
    assert shortfalls(why(site, "job", HOW)) == {Shortfall.CPU: (1, 1_000, 500)}


def test_a_job_without_cards_is_kept_off_what_cards_need_where_there_is_a_choice() -> None:
    site = WorldBuilder().node("gpu", 8).node(a_node("cpu", 0, cpu=8_000, host=64_000))
    site.submit("batch", a_request(0, cpu=4_000, host=8_000))
    assert placements(carried_out(site, HOW))["batch"] == [("cpu", [])]


def test_a_whole_card_is_booked_entirely_and_a_slice_in_what_it_asked_for() -> None:
    site = (
        WorldBuilder().node("n", 2).submit("whole", a_request(1)).submit("slice", a_request(1, memory=8_156))
    )
    carried_out(site, HOW)
    assert site.grant("whole").placement.vector == (1_000, 81_559, 1_000)
    assert site.grant("slice").placement.vector == (100, 8_156, 100)
