"""How many cards spot work may hold: those that other work is not expected to want within the horizon.

Starts are capped, and growth. Where the forecast rises above what spot work holds already, nobody is stopped
for that: who needs the room stops as many as it needs, by the rules of preemption.
"""

from __future__ import annotations

from msgspec.structs import replace

from aliquot.core.charging import at_least
from aliquot.core.ids import JobId
from aliquot.core.jobs import Job
from aliquot.core.lengths import as_charged
from aliquot.core.records import Frozen, NodeRecord
from aliquot.core.settings import SpotCap
from aliquot.core.steps import Gate, SpotRoom, Wait
from aliquot.core.tide import BIN_MS, asked_milli, high_tide
from aliquot.core.units import FULL


class Spotting:
    """What spot work may still take in one plan; all there is where the policy has no cap."""

    def __init__(self, world: Frozen, rules: SpotCap | None, now: int) -> None:
        self._world, self._rules, self._now = world, rules, now
        self._room: SpotRoom | None = None
        self._refused = False

    def hold_back(self, job: Job) -> Wait | None:
        """The wait of a spot job that finds no room in what spot work may hold; None where it may start.

        An elastic one needs it for its narrowest width.
        """
        if self._rules is None or not job.spot or self.has_room(job, asked_milli(at_least(job))):
            return None
        return Wait(job.id, Gate.SPOT, room=self._room)

    def has_room(self, job: Job, milli: int) -> bool:
        """Whether `job` may hold so many milli-cards more."""
        if self._rules is None or not job.spot or milli <= 0:
            return True
        if self._room is None:
            self._room = self._look(self._rules)
        fits = self._room.held_milli + milli <= self._room.most_milli
        self._refused |= not fits
        return fits

    def start(self, job: Job) -> None:
        """`job` starts, as wide as it is."""
        self.hold(job, asked_milli(job))

    def hold(self, job: Job, milli: int) -> None:
        """`job` holds so many milli-cards more from now on; less where that is below 0."""
        if self._rules is not None and job.spot:
            room = self._look(self._rules) if self._room is None else self._room
            self._room = replace(room, held_milli=room.held_milli + milli)

    def mark(self) -> SpotRoom | None:
        """A point to roll back to."""
        return self._room

    def rollback(self, mark: SpotRoom | None) -> None:
        """Undo everything since `mark`."""
        self._room = mark

    def _look(self, rules: SpotCap) -> SpotRoom:
        world = self._world
        capacity = sum(map(_usable_milli, world.nodes.values()))
        wanted = high_tide(world.tide, self._now, rules.horizon_ms, rules.quantile_milli)
        held = sum(_held_milli(world, job) for job in world.grants)
        return SpotRoom(max(0, capacity - wanted), held, capacity, rules.horizon_ms)

    @property
    def again_ms(self) -> int | None:
        """When the forecast is another one even if nothing happens; None where nobody waits for that."""
        return (self._now // BIN_MS + 1) * BIN_MS if self._refused else None


def _usable_milli(record: NodeRecord) -> int:
    is_open = record.up and not record.drained
    return FULL * (len(record.node.cards) - len(record.faulty)) if is_open else 0


def _held_milli(world: Frozen, job: JobId) -> int:
    record = world.jobs[job]
    if not record.job.spot:
        return 0
    return asked_milli(as_charged(record, record.asked).job)
