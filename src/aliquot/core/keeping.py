"""Room that is kept for waiting jobs, during one pass.

A firm keep was made by stopping others: nobody else takes it. A soft one is a backfill shadow: closed to jobs
that would still run when it is needed, open to those that are over by then, and to those before its job in
line. On the draft a keep is a booking of whatever of it is free now, so that no scorer needs to know of it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence

from aliquot.core.grants import NOTHING, GrantState, Placement, Seat, bits
from aliquot.core.horizon import Ahead, Horizon
from aliquot.core.ids import JobId
from aliquot.core.jobs import Job, Request
from aliquot.core.lengths import length_by
from aliquot.core.meeting import find_meeting
from aliquot.core.records import JobRecord, Kept, seat_of
from aliquot.core.room.shadow import FAR
from aliquot.core.siting import Desk, Seated
from aliquot.core.slices import Vector
from aliquot.core.steps import Reserve, Unreserve

Try = Callable[[], list[Seated] | None]
KEPT_FOR_MS = 600_000
"""What was cleared for a job is kept for it this long beyond the grace; then it is anybody's."""
REFRESH_MS = 60_000
"""A reservation that stands is worked out anew after this long: room may be free earlier by now."""


class _Hold:
    """One keep as it is on the draft: its seats, and what of them is booked to keep others off."""

    def __init__(self, job: JobId, seats: tuple[Seat, ...], from_ms: int, *, firm: bool) -> None:
        self.job, self.seats, self.from_ms, self.firm = job, seats, from_ms, firm
        self.passed = False  # its job has had its turn in this pass
        self.blocked: list[Seat] = []


class Keeper:
    """All keeps of one pass."""

    def __init__(self, desk: Desk, now: int) -> None:
        self._desk, self._now = desk, now
        self._rules = desk.settings.backfill
        self._length = length_by(desk.settings)
        self._holds: dict[JobId, _Hold] = {}
        self._old: dict[JobId, Kept] = {kept.job: kept for kept in desk.world.kept}
        self._refused: set[tuple[object, ...]] = set()
        self._started: list[tuple[JobRecord, tuple[Seat, ...]]] = []
        self._horizon: Horizon | None = None
        self._reserved = self._early = 0
        self.state = 0  # grows whenever what is kept, or open to whom, changes
        self._hopeless: dict[tuple[object, ...], bool] = {}  # by what is asked, of one state
        self._hopeless_in = (-1, -1)
        self._openings: tuple[int, list[int]] = (-1, [])
        for kept in desk.world.kept:
            seats = _seats_of(kept, desk)
            if seats is not None and not _is_past(kept, now):
                self._put(_Hold(kept.job, seats, kept.from_ms, firm=kept.firm))

    @property
    def is_empty(self) -> bool:
        """Whether nothing is kept."""
        return not self._holds

    def expired(self) -> list[Unreserve]:
        """Keeps that are over: their time has passed, or what was kept is gone."""
        return [Unreserve(job) for job in self._old if job not in self._holds]

    def holds(self, job: JobId) -> bool:
        """Whether something is kept for `job`."""
        return job in self._holds

    def openings(self, record: JobRecord) -> int:
        """A number that is equal, as long as `state` is, for jobs that may use the same of others' keeps."""
        if self._openings[0] != self.state:
            ends = [hold.from_ms for hold in self._holds.values() if not hold.firm and hold.passed]
            self._openings = (self.state, sorted(ends))
        return bisect_left(self._openings[1], self._over(record)) if self._openings[1] else 0

    def is_firm(self, job: JobId) -> bool:
        """Whether room was made for `job`."""
        hold = self._holds.get(job)
        return hold is not None and hold.firm

    def try_kept(self, record: JobRecord) -> tuple[Seat, ...] | None:
        """The seats kept for the job of `record`, booked for it now, or None where they are not free yet."""
        hold = self._holds[record.job.id]
        mark = self._desk.mark()
        self._unblock([hold])
        for seat in hold.seats:
            if not self._desk.draft.fits(seat):
                self._desk.rollback(mark)
                return None
            self._desk.book(seat)
        del self._holds[record.job.id]
        self.state += 1
        self._desk.remember(mark)
        return hold.seats

    def is_ending(self, record: JobRecord) -> bool:
        """Whether somebody who holds a part of what is kept for the job of `record` is being stopped."""
        world = self._desk.world
        return any(
            world.grants[held.job][held.member].state is GrantState.TERMINATING
            for seat in self._holds[record.job.id].seats
            for held in world.residents.get(seat.row, ())
        )

    def drop(self, job: JobId) -> Unreserve:
        """Nothing is kept for `job` any more."""
        hold = self._holds.pop(job)
        self.state += 1
        self._unblock([hold])
        self._refused.clear()
        return Unreserve(job)

    def try_open(self, record: JobRecord, seat_all: Try) -> list[Seated] | None:
        """Seats for the job of `record` on what it may use of others' keeps; the draft as before if None."""
        opened = self._open_to(record)
        if not opened:
            return None
        job = record.job
        key = (job.members, job.groups, job.wish, tuple(hold.job for hold in opened))
        if key in self._refused:
            return None
        mark = self._desk.mark()
        before = [(hold, list(hold.blocked)) for hold in opened]
        self._unblock(opened)
        seated = seat_all()
        if seated is None:
            self._desk.rollback(mark)
            for hold, blocked in before:
                hold.blocked = blocked
            self._refused.add(key)
            return None
        for hold in opened:
            self._block(hold)
        self._desk.remember(mark)
        return seated

    def note_started(self, record: JobRecord, seats: Iterable[Seat]) -> None:
        """A job was placed: what was kept for it is open, and others count with its end."""
        hold = self._holds.pop(record.job.id, None)
        if hold is not None:
            self.state += 1
            self._unblock([hold])
            self._refused.clear()
        if self._rules is None:
            return
        seats = tuple(seats)
        if self._horizon is None:
            self._started.append((record, seats))
        else:
            self._horizon.add(record, seats)

    def keep_firmly(self, record: JobRecord, seats: tuple[Seat, ...], from_ms: int, until_ms: int) -> Reserve:
        """Keep `seats`, which are being cleared for the job of `record`."""
        if record.job.id in self._holds:
            self.drop(record.job.id)
        hold = _Hold(record.job.id, seats, from_ms, firm=True)
        hold.passed = True
        self._put(hold)
        return Reserve(record.job.id, self._placements(seats), from_ms, until_ms, firm=True)

    def reserve(self, record: JobRecord, members: tuple[Request, ...], *, overdue: bool) -> Reserve | None:
        """A shadow for a job that does not fit now, if it is entitled to one.

        One that stands is kept as it is for a while; the step is None where nothing changes. `shadow_of`
        says what holds.
        """
        job = record.job.id
        if not self.may_reserve(overdue=overdue):
            return None
        self._reserved += 1
        self._early += not overdue
        hold, old = self._holds.get(job), self._old.get(job)
        fresh = old is not None and self._now - old.made_ms < REFRESH_MS
        if hold is not None and fresh and hold.from_ms > self._now and self._still_free(hold):
            hold.passed = True
            self.state += 1
            return None
        if hold is not None:
            self._unblock([hold])
            del self._holds[job]
            self.state += 1
        behind = [other for other in self._holds.values() if not other.firm and not other.passed]
        self._unblock(behind)
        ahead = self._look_ahead(record, members)
        if ahead is not None:
            new = _Hold(job, ahead.seats, ahead.at, firm=False)
            new.passed = True
            self._put(new)
        for other in behind:
            self._block(other)
        if ahead is None:
            return None
        return Reserve(job, self._placements(ahead.seats), ahead.at)

    def may_reserve(self, *, overdue: bool) -> bool:
        """Whether one more job would get a reservation in this pass."""
        rules = self._rules
        if rules is None or self._reserved >= rules.reservations:
            return False
        return overdue or self._early < rules.first

    def is_hopeless(self, job: Job, seat_all: Try) -> bool:
        """Whether jobs like `job` could not start in this pass even if no shadow were kept from them."""
        soft = [hold for hold in self._holds.values() if not hold.firm]
        if not soft:
            return True
        state = (self._desk.state, self.state)
        if state != self._hopeless_in:
            self._hopeless.clear()
            self._hopeless_in = state
        key = (job.members, job.groups, job.wish, job.spread, job.minimum, job.elastic, job.scatter)
        if key not in self._hopeless:
            self._hopeless[key] = self._is_hopeless(soft, seat_all)
        return self._hopeless[key]

    def _is_hopeless(self, soft: list[_Hold], seat_all: Try) -> bool:
        mark = self._desk.mark()
        before = [(hold, hold.blocked) for hold in soft]
        self._unblock(soft)
        seated = seat_all()
        self._desk.rollback(mark)
        for hold, blocked in before:
            hold.blocked = blocked
        return seated is None

    def shadow_of(self, job: JobId) -> int | None:
        """When the job is expected to start, in ms, where it has a reservation."""
        hold = self._holds.get(job)
        return None if hold is None else hold.from_ms

    def lapsed(self) -> list[Unreserve]:
        """Shadows of jobs that had no right to one in this pass any more; call at its end."""
        gone = [hold for hold in self._holds.values() if not hold.firm and not hold.passed]
        return [self.drop(hold.job) for hold in gone if hold.job in self._old]

    def _still_free(self, hold: _Hold) -> bool:
        """Whether no job before it in line took a part of it in this pass, or has it reserved now."""
        if any(self._overlap(hold, other) for other in self._holds.values() if other.passed):
            return False
        mark = self._desk.mark()
        blocked = list(hold.blocked)
        self._unblock([hold])
        again = [part for seat in hold.seats if (part := self._free_part(seat)) is not None]
        self._desk.rollback(mark)
        hold.blocked = blocked
        return again == blocked

    @staticmethod
    def _overlap(hold: _Hold, other: _Hold) -> bool:
        return hold is not other and any(
            mine.row == theirs.row and mine.mask & theirs.mask
            for mine in hold.seats
            for theirs in other.seats
        )

    def _look_ahead(self, record: JobRecord, members: tuple[Request, ...]) -> Ahead | None:
        if self._horizon is None:
            self._horizon = Horizon(self._desk, self._now)
            for started, seats in self._started:
                self._horizon.add(started, seats)
            self._started.clear()
        self._horizon.clear_shut()
        for hold in self._holds.values():
            if not hold.firm and not hold.passed:
                continue  # its job stands behind: it will look for another place
            other = self._length(self._desk.world.jobs[hold.job])
            until = FAR if other is None else max(self._now, hold.from_ms) + max(1, other)
            self._horizon.shut(hold.seats, hold.blocked, until)
        if record.job.is_sited:
            return find_meeting(self._horizon, self._desk, record, members)
        return self._horizon.earliest(record, members)

    def _open_to(self, record: JobRecord) -> list[_Hold]:
        """Soft keeps that the job may use: those of jobs behind it, and those needed only when it is over."""
        if not self._holds:
            return []
        over = self._over(record)
        return [
            hold
            for hold in self._holds.values()
            if not hold.firm and (not hold.passed or over <= hold.from_ms)
        ]

    def _over(self, record: JobRecord) -> int:
        """When the job of `record` is over if it starts now, even at a multiple of its estimate."""
        estimate, rules = self._length(record), self._rules
        if estimate is None or rules is None:
            return FAR + 1
        return self._now + estimate * rules.doubt_milli // 1000

    def _put(self, hold: _Hold) -> None:
        self.state += 1
        self._holds[hold.job] = hold
        self._block(hold)

    def _block(self, hold: _Hold) -> None:
        hold.blocked = []
        for seat in hold.seats:
            part = self._free_part(seat)
            parts = [] if part is None else [part]
            for piece in (*parts, *(self._rests(seat) if hold.firm and seat.whole else ())):
                self._desk.draft.book(piece)
                hold.blocked.append(piece)
        if hold.blocked:
            self._desk.show()

    def _rests(self, seat: Seat) -> list[Seat]:
        """What is left of the cards of `seat` that somebody still holds a slice of: commit closes it too."""
        chunk, place = self._desk.draft.ledger.readable(seat.row)
        usable, idle = self._desk.draft.open_cards(seat.row)
        shared = bits(seat.mask & usable & ~idle)
        left = [(card, Vector(*map(int, chunk.left[place][card]))) for card in shared]
        return [Seat(seat.row, 1 << card, rest) for card, rest in left if any(rest)]

    def _unblock(self, holds: Sequence[_Hold]) -> None:
        self._desk.release_all([part for hold in holds for part in hold.blocked])
        for hold in holds:
            hold.blocked = []

    def _free_part(self, seat: Seat) -> Seat | None:
        """What of `seat` nobody holds now. Cards that are partly held are left to their holders."""
        desk = self._desk
        if not desk.draft.can_release(seat):
            return None
        chunk, place = desk.draft.ledger.readable(seat.row)
        usable, idle = desk.draft.open_cards(seat.row)
        mask = seat.mask & (idle if seat.whole else usable)
        if not seat.whole:
            for card in bits(mask):
                compute, memory, bandwidth = chunk.left[place, card].tolist()
                if compute < seat.vector[0] or memory < seat.vector[1] or bandwidth < seat.vector[2]:
                    mask &= ~(1 << card)
        cpu = min(seat.cpu, max(0, int(chunk.cpu[place])))
        host = min(seat.host, max(0, int(chunk.host[place])))
        if not mask and not cpu and not host:
            return None
        vector = Vector(*seat.vector) if mask else NOTHING
        return Seat(seat.row, mask, vector, seat.whole, cpu, host)

    def _placements(self, seats: tuple[Seat, ...]) -> tuple[Placement, ...]:
        return tuple(self._desk.placement(seat) for seat in seats)


def _seats_of(kept: Kept, desk: Desk) -> tuple[Seat, ...] | None:
    """Where `kept` is now; None where a part of it is gone or takes no work."""
    seats = []
    for placement in kept.placements:
        record = desk.world.nodes.get(placement.node)
        seat = None if record is None or not record.up or record.drained else seat_of(placement, record)
        if seat is None:
            return None
        seats.append(seat)
    return tuple(seats)


def _is_past(kept: Kept, now: int) -> bool:
    return kept.until_ms is not None and kept.until_ms <= now
