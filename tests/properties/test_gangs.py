"""Gangs and nearness, against brute force: no placement breaks a wish or a minimum, a required wish is met
whenever some domain can hold the gang, and slices are as even as can be."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
from hypothesis import given
from hypothesis import settings as no_deadline
from hypothesis import strategies as st

from aliquot.core.balance import spread_slices
from aliquot.core.inventory import Node
from aliquot.core.jobs import Job, Request, gang_of
from aliquot.core.memo import Memo
from aliquot.core.placement.cells import I32
from aliquot.core.placement.fills import among
from aliquot.core.placement.placer import request_of
from aliquot.core.seating import seat_all
from aliquot.core.settings import Settings
from aliquot.core.siting import Desk
from aliquot.core.wishes import Level, Wish, domain_of, find_breach
from tests.support.build import a_job, a_node, a_request
from tests.support.planning import carried_out, planned, settings
from tests.support.worlds import WorldBuilder

HOW = settings()
BRIEF = Settings(engine="python")
RACKS = st.lists(
    st.tuples(st.integers(0, 1), st.lists(st.integers(0, 4), min_size=1, max_size=4)), max_size=4
)
LEVELS = st.sampled_from([Level.NODE, Level.RACK, Level.BLOCK])
WISHES = st.builds(
    Wish,
    required=st.none() | LEVELS,
    preferred=st.none() | LEVELS,
    slice=st.just(1),
) | st.builds(Wish, balanced=LEVELS, slice=st.integers(1, 3), over=st.integers(1, 3))


def a_site(racks: list[tuple[int, list[int]]]) -> WorldBuilder:
    """Racks of nodes with so many cards, each in one of two blocks; a node of unknown rack besides."""
    site = WorldBuilder().node(a_node("lost", 4))
    for rack, (block, sizes) in enumerate(racks):
        for number, cards in enumerate(sizes):
            site.node(a_node(f"r{rack}-{number}", cards, rack=f"r{rack}", block=f"b{block}"))
    return site


def homes_of(site: WorldBuilder, name: str) -> list[Node]:
    """The node of each member."""
    return [site.world.nodes[grant.placement.node].node for grant in site.world.grants[site.job(name).job.id]]


@given(RACKS, st.lists(st.tuples(st.integers(1, 5), st.integers(1, 3), WISHES), min_size=1, max_size=4))
def test_what_is_placed_keeps_its_wish(
    racks: list[tuple[int, list[int]]], asked: list[tuple[int, int, Wish]]
) -> None:
    """All the way: plan, commit (which refuses nothing), fold."""
    site = a_site(racks)
    for at, (members, cards, wish) in enumerate(asked):
        site.submit(f"j{at}", [a_request(cards)] * members, minimum=1, wish=wish)
    carried_out(site, HOW)
    for name in site.holding:
        assert find_breach(site.job(name).job.wish, (), homes_of(site, name)) is None


@given(
    RACKS,
    st.lists(
        st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 2), st.none() | WISHES), min_size=1
    ),
    st.none() | WISHES,
    st.integers(1, 8),
)
def test_groups_keep_their_minima_and_wishes(
    racks: list[tuple[int, list[int]]],
    asked: list[tuple[int, int, int, Wish | None]],
    outer: Wish | None,
    minimum: int,
) -> None:
    parts = [
        (f"g{at}", [a_request(cards)] * many, min(least, many), wish)
        for at, (many, least, cards, wish) in enumerate(asked[:3])
    ]
    members, groups = gang_of(parts)
    wish = None if outer is None or outer.balanced is not None else outer
    site = a_site(racks)
    site.submit("gang", members, groups=groups, minimum=min(minimum, len(members)), wish=wish)
    carried_out(site, HOW)
    if site.holding:
        homes = homes_of(site, "gang")
        assert len(homes) >= min(minimum, len(members))
        assert find_breach(wish, groups, homes) is None
        for group, (_, _, least, _) in zip(groups, parts, strict=True):
            assert len(group.among(len(homes))) >= (least or 0)


@given(RACKS, st.integers(1, 6), st.integers(1, 4), LEVELS)
def test_required_is_met_whenever_a_domain_can_hold_all(
    racks: list[tuple[int, list[int]]], members: int, cards: int, level: Level
) -> None:
    site = a_site(racks)
    site.submit("gang", [a_request(cards)] * members, wish=Wish(required=level))
    room: dict[tuple[str, ...], int] = {}
    for record in site.world.nodes.values():
        domain = domain_of(record.node, level)
        if domain is not None:
            room[domain] = room.get(domain, 0) + len(record.node.cards) // cards
    carried_out(site, HOW)
    assert (site.holding == ["gang"]) is any(held >= members for held in room.values())
    if site.holding:
        tight = min(held for held in room.values() if held >= members)
        home = domain_of(homes_of(site, "gang")[0], level)
        assert home is not None
        assert room[home] == tight


@given(RACKS, st.lists(st.tuples(st.integers(1, 3), st.integers(1, 2)), min_size=1, max_size=3))
def test_groups_find_racks_whenever_there_are_some(
    racks: list[tuple[int, list[int]]], asked: list[tuple[int, int]]
) -> None:
    """Brute force over the rack of every group: whole nodes' worth of single cards, so that rooms add up."""
    parts = [
        (f"g{at}", [a_request(1)] * many, None, Wish(required=Level.RACK))
        for at, (many, _) in enumerate(asked)
    ]
    members, groups = gang_of(parts)
    site = a_site(racks).submit("gang", members, groups=groups)
    rooms = [sum(sizes) for _, sizes in racks]
    possible = any(
        all(
            sum(many for rack, (many, _) in zip(chosen, asked, strict=True) if rack == at) <= room
            for at, room in enumerate(rooms)
        )
        for chosen in product(range(len(rooms)), repeat=len(asked))
    )
    carried_out(site, HOW)
    assert (site.holding == ["gang"]) is possible


@given(st.lists(st.integers(0, 6), max_size=6), st.integers(1, 12), st.integers(1, 4))
def test_slices_are_as_even_as_can_be(room: list[int], slices: int, over: int) -> None:
    shares = spread_slices(room, slices, over)
    open_to = [least for least in room if least]
    if sum(open_to) < slices:
        assert shares is None
        return
    assert shares is not None
    many = len(shares)
    assert sum(share for _, share in shares) == slices
    assert all(1 <= share <= room[at] for at, share in shares)
    assert many == max(_fewest(open_to, slices), min(over, len(open_to), slices))
    best = min(
        max(split) - min(split)
        for chosen in combinations(open_to, many)
        for split in product(*(range(1, least + 1) for least in chosen))
        if sum(split) == slices
    )
    assert max(share for _, share in shares) - min(share for _, share in shares) == best


@given(RACKS, st.integers(1, 5), st.integers(1, 3), st.integers(1, 2), st.integers(1, 3))
def test_balanced_gangs_are_placed_as_even_as_can_be(
    racks: list[tuple[int, list[int]]], slices: int, each: int, cards: int, over: int
) -> None:
    site = a_site(racks)
    wish = Wish(balanced=Level.RACK, slice=each, over=over)
    site.submit("gang", [a_request(cards)] * (slices * each), wish=wish)
    room = [sum(size // cards for size in sizes) // each for _, sizes in racks]
    carried_out(site, HOW)
    shares = spread_slices(room, slices, over)
    assert (site.holding == ["gang"]) is (shares is not None)
    if shares is not None:
        homes = homes_of(site, "gang")
        counted: dict[str, int] = {}
        for home in homes[::each]:
            counted[home.rack] = counted.get(home.rack, 0) + 1
        assert sorted(counted.values()) == sorted(share for _, share in shares)


REQUESTS = st.builds(
    a_request,
    st.integers(0, 3),
    memory=st.none() | st.sampled_from([8_000, 20_000]),
    compute=st.none() | st.sampled_from([250, 500]),
    cpu=st.sampled_from([0, 8_000, 30_000]),
    host=st.sampled_from([0, 100_000]),
)


@no_deadline(deadline=None)  # the first example compiles
@given(st.lists(st.integers(0, 4), min_size=1, max_size=4), REQUESTS, REQUESTS, st.integers(0, 3))
def test_no_row_takes_more_than_is_counted(
    sizes: list[int], request: Request, other: Request, others: int
) -> None:
    """Seats are taken one after the other until none is left; single cards and whole ones reach the count."""
    if not (request.cards or request.cpu_milli or request.host_mib):
        return
    site = WorldBuilder()
    for at, cards in enumerate(sizes):
        site.node(a_node(f"n{at}", cards))
    desk = Desk(site.frozen, BRIEF, Memo())
    for _ in range(others):
        desk.seat(other)
    counted = int(desk.fills(request)[: len(sizes)].sum())
    _assert_twins_agree(desk, request, np.arange(len(sizes), dtype=np.int32))
    taken = 0
    while desk.seat(request) is not None:
        taken += 1
    assert taken <= counted
    if request.whole or request.cards <= 1:
        assert taken == counted


@given(RACKS, st.integers(2, 4), WISHES)
def test_a_search_that_fails_leaves_the_draft_as_it_was(
    racks: list[tuple[int, list[int]]], members: int, wish: Wish
) -> None:
    site = a_site(racks)
    desk = Desk(site.frozen, HOW, Memo())
    before = [chunk.left.copy() for chunk in desk.draft.chunks]
    job: Job = a_job("gang", [a_request(3)] * members, wish=wish)
    if seat_all(desk, job) is None:
        assert all((old == chunk.left).all() for old, chunk in zip(before, desk.draft.chunks, strict=True))


def _assert_twins_agree(desk: Desk, request: Request, rows: I32) -> None:
    """Compiled and plain say the same of `rows`."""
    cells, shape = desk.placer.board.cells, desk.memo.options(request)[0][1]
    asked, scores = request_of(shape, desk.placer.board.hardware), desk.placer.scored(shape).scores
    counts, picks = [], []
    for compiled in (False, True):
        one, out = among(compiled=compiled), np.zeros(cells.kind.shape[0], np.int64)
        one.count_fills(cells, asked, shape.host, rows, out)
        counts.append(out.tolist())
        picks += [
            one.pick_among(scores.loss, scores.exact, cells.host, shape.host, rows[at:]) for at in (0, 1)
        ]
    assert counts[0] == counts[1]
    assert picks[:2] == picks[2:]


def _fewest(rooms: list[int], slices: int) -> int:
    held = 0
    for many, one in enumerate(sorted(rooms, reverse=True), 1):
        held += one
        if held >= slices:
            return many
    raise AssertionError


STORY = st.lists(
    st.tuples(st.integers(1, 4), st.integers(1, 3), st.none() | WISHES, st.booleans()), min_size=1, max_size=8
)


@no_deadline(deadline=None, max_examples=40)  # the first example compiles
@given(RACKS, STORY, st.sampled_from(["best-fit", "future-packing", "spread"]))
def test_caches_and_kernels_change_no_plan(
    racks: list[tuple[int, list[int]]], story: list[tuple[int, int, Wish | None, bool]], policy: str
) -> None:
    """Jobs come, start and end: a warm memo, an empty one and the compiled kernels plan the same."""
    site, warm, fast = a_site(racks), Memo(), Memo()
    how, compiled = settings(policy), settings(policy, engine="numba")
    for at, (members, cards, wish, ends) in enumerate(story):
        site.submit(f"j{at}", [a_request(cards)] * members, minimum=1, wish=wish)
        decided = planned(site, how)
        assert decided == planned(site, how, memo=warm)
        assert decided == planned(site, compiled, memo=fast)
        site.check(*decided.steps)
        assert site.verdict.refused == ()
        if ends and site.holding:
            site.started(site.holding[0]).stopping(site.holding[0]).ended(site.holding[0])
