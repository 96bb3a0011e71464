"""Co-location: a waiting job goes to the cards of others where nothing free fits and it is predicted to pay.

All of them have said that they may share, and what each does with a card; `together` predicts their speeds.
The company that gains most by the newcomer takes it in, if it gains more than the policy asks for, nobody
falls below the speed it can live with, and whoever has to be over by some time still will be, at that speed
all along. Cards on which room is kept for somebody take nobody in, so that a reservation is not put off for
ever.

Where jobs may be stopped for others, a newcomer is nobody whom those could not stop who may stop the others:
it goes when they go. When one ends, the others have the cards to themselves and nothing moves.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from aliquot.core.grants import Seat
from aliquot.core.hosting import companies, guests_of, invite, without_cards
from aliquot.core.ids import CardId, JobId, NodeId
from aliquot.core.jobs import Job
from aliquot.core.records import Frozen, JobRecord
from aliquot.core.room.tenants import victim_cost
from aliquot.core.settings import Colocation, Preemption
from aliquot.core.siting import Desk
from aliquot.core.speed import duration_ms
from aliquot.core.steps import Company, Evict, Place, Reserve, Step
from aliquot.core.together import SEATS, Together, predict_speeds

Kept = Container[tuple[NodeId, CardId]]
Fixed = Callable[[JobId], bool]
Layout = tuple[int, ...]


class Joined(NamedTuple):
    """The step, who shares, and what the newcomer takes of the machines, which is booked on the draft."""

    place: Place
    hosts: tuple[JobId, ...]
    seats: tuple[Seat, ...]


class _Offer(NamedTuple):
    """A company that would take the job in; smaller sorts first: the most gained, then the eldest."""

    gain_milli: int
    at: int
    company: Company


class Joining:
    """Who may share with whom in one plan; nobody where the policy does not say so."""

    def __init__(self, desk: Desk, now: int) -> None:
        self._desk, self._now = desk, now
        self._open: dict[Layout, list[tuple[JobId, ...]]] | None = None
        self._in_vain: set[tuple[object, ...]] = set()

    def join(self, record: JobRecord, job: Job, steps: Sequence[Step], is_fixed: Fixed) -> Joined | None:
        """Cards of others for the job of `record`, asked for as `job`; None where it should not share any.

        `steps` of this plan so far may keep room for others; who `is_fixed` is stopped or changed by them.
        """
        rules = self._desk.settings.colocation
        alike = (job.members, job.together, job.queue, job.priority, job.spot, job.stop, job.bound)
        if rules is None or not job.may_share or alike in self._in_vain:
            return None
        groups = [
            (at, group)
            for at, group in enumerate(self._groups().get(_layout(job), ()))
            if not any(map(is_fixed, group))
        ]
        kept = self._kept_for_others(job.id, steps) if groups else set()
        offers = [
            offer for at, group in groups if (offer := self._offer(at, group, job, rules, kept)) is not None
        ]
        for offer in sorted(offers, key=lambda offer: (-offer.gain_milli, offer.at)):
            joined = self._seat(record, job, offer.company)
            if joined is not None:
                return joined
        self._in_vain.add(alike)
        return None

    def again_ms(self, steps: Sequence[Step]) -> int | None:
        """At once, where somebody found no company and one who may share starts by `steps` of this plan."""
        jobs = self._desk.world.jobs
        starts = any(isinstance(step, Place) and jobs[step.job].job.may_share for step in steps)
        return self._now if self._in_vain and starts else None

    def _groups(self) -> dict[Layout, list[tuple[JobId, ...]]]:
        """Companies by how many cards they hold on how many nodes."""
        if self._open is None:
            self._open = {}
            for group in companies(self._desk.world):
                places = self._desk.world.grants[group[0]]
                layout = tuple(sorted(len(grant.placement.cards) for grant in places))
                self._open.setdefault(layout, []).append(group)
        return self._open

    def _kept_for_others(self, job: JobId, steps: Sequence[Step]) -> set[tuple[NodeId, CardId]]:
        """Cards on which room is kept, or was so far in this plan."""
        kept = [(keep.job, keep.placements) for keep in self._desk.world.kept]
        kept += [(step.job, step.placements) for step in steps if isinstance(step, Reserve)]
        return {
            (place.node, card)
            for holder, placements in kept
            if holder != job
            for place in placements
            for card in place.cards
        }

    def _offer(
        self, at: int, group: tuple[JobId, ...], job: Job, rules: Colocation, kept: Kept
    ) -> _Offer | None:
        world = self._desk.world
        records = [world.jobs[member] for member in group]
        if len(group) >= min(rules.most, SEATS) or not all(self._yields(job, other.job) for other in records):
            return None
        held = [grant.placement for grant in world.grants[group[0]]]
        if any((place.node, card) in kept for place in held for card in place.cards):
            return None
        profiles = tuple(_profile(other.job) for other in records)
        before = predict_speeds(profiles)
        speeds = predict_speeds((*profiles, _profile(job)))
        if before is None or speeds is None or sum(speeds) - sum(before) <= rules.least_gain_milli:
            return None
        since = [*(other.granted_ms for other in records), self._now]
        jobs = [*(other.job for other in records), job]
        if not all(map(_keeps_its_bounds, jobs, speeds, since)):
            return None
        return _Offer(sum(speeds) - sum(before), at, Company((*group, job.id), speeds, sum(before)))

    def _yields(self, guest: Job, host: Job) -> bool:
        """Whether those who may stop `host` may stop `guest` too."""
        settings = self._desk.settings
        if settings.preemption is None:
            return True
        if guest.spot != host.spot:
            return guest.spot
        firmer = host.stop.preemptible and not guest.stop.preemptible
        higher = settings.by_priority and guest.priority > host.priority
        return not (firmer or higher or (settings.queues and guest.queue != host.queue))

    def _seat(self, record: JobRecord, job: Job, company: Company) -> Joined | None:
        """Book what the job needs beside the cards; None where a machine has not got it."""
        desk = self._desk
        parts = invite(desk.world, company.jobs[:-1], job)
        if parts is None:
            return None
        mark = desk.mark()
        seats: list[Seat] = []
        for request, part in zip(job.members, parts, strict=True):
            there = desk.world.nodes[part.node]
            option, shape = desk.memo.options(request)[0]
            mask = sum(1 << there.index_of[card] for card in part.cards)
            seat = desk.seat_at(option, shape, there.row, mask)._replace(vector=part.vector, whole=False)
            if not desk.draft.fits(without_cards(seat)):
                desk.rollback(mark)
                return None
            desk.book(without_cards(seat))
            seats.append(seat)
        placements = tuple(desk.placement(seat) for seat in seats)
        place = Place(record.job.id, record.attempt, placements, company=company)
        return Joined(place, company.jobs[:-1], tuple(map(without_cards, seats)))


def with_guests(
    world: Frozen, victims: Sequence[Evict], rules: Preemption, now: int, is_fixed: Fixed
) -> tuple[Evict, ...]:
    """`victims`, and then those who share their cards and go with them; who `is_fixed` is stopped already."""
    found: dict[JobId, Evict] = {}
    for victim in victims:
        for job in guests_of(world, victim.job):
            if not is_fixed(job):
                record = world.jobs[job]
                cost = victim_cost(record, now, rules) or 0
                found[job] = replace(victim, job=job, attempt=record.attempt, cost_ms=cost)
    return (*victims, *found.values())


def _layout(job: Job) -> Layout:
    return tuple(sorted(request.cards for request in job.members))


def _profile(job: Job) -> Together:
    assert job.together is not None, "whoever shares has said so"
    return job.together


def _keeps_its_bounds(job: Job, speed_milli: int, since_ms: int) -> bool:
    """Whether `job` can live with the speed, and is over in time at it; without an estimate nobody knows."""
    bound = job.bound
    if bound.speed_floor_milli is not None and speed_milli < bound.speed_floor_milli:
        return False
    if bound.finish_by_ms is None:
        return True
    return (
        job.estimate_ms is not None
        and since_ms + duration_ms(job.estimate_ms, speed_milli) <= bound.finish_by_ms
    )
