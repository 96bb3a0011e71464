"""Who could share whose cards: the conditions that the planner and commit hold alike, and what is booked
then.

A newcomer gets exactly the cards of a company or of a job alone, never more or fewer, if all of them may
share, the cards are what it asked for, and the memory that all have declared fits. Whether it pays is the
planner's business (`joining`).
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from aliquot.core.company import divide
from aliquot.core.grants import NOTHING, Grant, GrantState, Placement, Seat
from aliquot.core.ids import JobId
from aliquot.core.inventory import Card, Node, accepts
from aliquot.core.jobs import Job, Link, Request
from aliquot.core.lifecycle import Phase
from aliquot.core.records import Frozen
from aliquot.core.slices import resolve_ask
from aliquot.core.steps import Company
from aliquot.core.together import SEATS, predict_speeds
from aliquot.core.topology.sets import refuse_set

_UNDER_WAY = frozenset({Phase.STARTING, Phase.RUNNING})


def companies(world: Frozen) -> Iterator[tuple[JobId, ...]]:
    """Every set of jobs that a newcomer could join, those alone too, eldest first, in the order of ids."""
    for job in sorted(world.grants):
        group = world.company.get(job, (job,))
        if group[0] == job and all(_may_host(world, member) for member in group):
            yield group


def invite(world: Frozen, hosts: tuple[JobId, ...], guest: Job) -> tuple[Placement, ...] | None:
    """The parts of the cards of `hosts` that the members of `guest` would get; None where it may not come.

    Only cards: what it needs of the host machines has to be looked for by the caller.
    """
    together = guest.together
    apart = len(guest.members) > 1 and (guest.spread or guest.is_sited)
    if together is None or not guest.may_share or apart or not 1 <= len(hosts) < SEATS:
        return None
    if world.company.get(hosts[0], hosts[:1]) != hosts or not all(_may_host(world, host) for host in hosts):
        return None
    held = {host: tuple(grant.placement for grant in world.grants[host]) for host in hosts}
    places = _seats_for(world, held[hosts[0]], guest)
    if places is None:
        return None
    memories = {host: _memory(world, host) for host in hosts} | {guest.id: together.memory_mib}
    for place in held[hosts[0]]:
        if sum(memories.values()) > _usable_mib(world, place):
            return None
    return divide({**held, guest.id: places}, memories)[guest.id]


def company_of(world: Frozen, job: JobId) -> Company | None:
    """Who shares the cards of `job` now, and how fast each is by that; None where it has them to itself."""
    jobs = world.company.get(job, ())
    profiles = [together for other in jobs if (together := world.jobs[other].job.together) is not None]
    speeds = predict_speeds(tuple(profiles)) if profiles else None
    before = predict_speeds(tuple(profiles[:-1])) if profiles else None
    return None if speeds is None or before is None else Company(jobs, speeds, sum(before))


def divided_cards(world: Frozen) -> dict[int, int]:
    """Row -> the cards that are divided among a company: a part that comes back there is nobody else's."""
    masks: dict[int, int] = {}
    for job in world.company:
        for grant in world.grants[job]:
            if grant.seat is not None:
                masks[grant.seat.row] = masks.get(grant.seat.row, 0) | grant.seat.mask
    return masks


def as_units(world: Frozen) -> Frozen:
    """`world` as it looks to those who stop jobs: who shares cards goes with the first who is there.

    That one holds the cards whole, the others only what they have of the machine beside; for what one of them
    alone would give back nobody but its company can use.
    """
    if not world.company:
        return world
    grants = world.grants.mutate()
    for group in set(world.company.values()):
        first = next((job for job in group if world.jobs[job].phase in _UNDER_WAY), group[0])
        total = divide({first: _placements(world, first)}, {first: 0}, _left_by(world, group, first))
        for job in group:
            parts = total[first] if job == first else tuple(map(_without_cards, _placements(world, job)))
            grants[job] = tuple(map(_as_held, world.grants[job], parts))
    return replace(world, grants=grants.finish())


def guests_of(world: Frozen, job: JobId) -> tuple[JobId, ...]:
    """Who goes when `job` is stopped: those who share its cards, if it is the first of them who is there."""
    group = world.company.get(job, (job,))
    there = [other for other in group if world.jobs[other].phase in _UNDER_WAY]
    return tuple(there[1:]) if there and there[0] == job else ()


def without_cards(seat: Seat) -> Seat:
    """What a newcomer takes of the ledger: its part of the host machine. The cards are booked as they are."""
    return seat._replace(mask=0, vector=NOTHING, whole=False)


def _may_host(world: Frozen, job: JobId) -> bool:
    record, grants = world.jobs[job], world.grants.get(job, ())
    if not record.job.may_share or record.phase not in _UNDER_WAY or record.cancelled:
        return False
    return all(
        grant.seat is not None
        and grant.state is not GrantState.ORPHANED
        and grant.seat.row not in world.strained
        for grant in grants
    )


def _seats_for(world: Frozen, places: tuple[Placement, ...], guest: Job) -> tuple[Placement, ...] | None:
    """A place of `places` for each member of `guest`, widest first, nothing booked; None: they differ."""
    members, free = guest.members, sorted(places, key=lambda place: -len(place.cards))
    order = sorted(range(len(members)), key=lambda at: (-members[at].cards, at))
    if len(members) != len(places):
        return None
    found: dict[int, Placement] = {}
    for at, place in zip(order, free, strict=True):
        if not _serves(world.nodes[place.node].node, place, members[at]):
            return None
        found[at] = Placement(place.node, place.cards, NOTHING)
    return tuple(found[at] for at in range(len(members)))


def _serves(node: Node, place: Placement, request: Request) -> bool:
    cards = _cards(node, place)
    if len(cards) != request.cards:
        return False
    for card in cards:
        if (
            not accepts(request.profile, card.model)
            or resolve_ask(request.ask, card.model.usable_mib) is None
        ):
            return False
    if request.link is not Link.REQUIRED or request.cards < 2:
        return True
    mask = sum(1 << at for at, card in enumerate(node.cards) if card in cards)
    return node.wiring is not None and refuse_set(node.wiring, mask, len(cards), require_nvlink=True) is None


def _cards(node: Node, place: Placement) -> list[Card]:
    return [card for card in node.cards if card.uuid in place.cards]


def _usable_mib(world: Frozen, place: Placement) -> int:
    """Of the smallest of its cards."""
    return min(card.model.usable_mib for card in _cards(world.nodes[place.node].node, place))


def _memory(world: Frozen, job: JobId) -> int:
    together = world.jobs[job].job.together
    assert together is not None, "whoever shares has said so"
    return together.memory_mib


def _placements(world: Frozen, job: JobId) -> tuple[Placement, ...]:
    return tuple(grant.placement for grant in world.grants[job])


def _left_by(world: Frozen, group: tuple[JobId, ...], first: JobId) -> list[Placement]:
    return [place for job in group if job != first for place in _placements(world, job)]


def _without_cards(place: Placement) -> Placement:
    return replace(place, cards=(), vector=NOTHING, whole=False)


def _as_held(grant: Grant, part: Placement) -> Grant:
    seat = grant.seat
    if seat is not None:
        seat = seat._replace(vector=part.vector, whole=part.whole) if part.cards else without_cards(seat)
    return replace(grant, placement=part, seat=seat)
