"""Cards that windows close to the job whose turn it is, on one desk.

The rule is Slurm's: a job must not start where it would still be when a window begins that does not let it
in. Its end is reckoned from its time limit, which is kept; without one from its estimate, which may be wrong:
then it is still there when the window begins. Unknown never ends, so such a job starts in front of no window.
The one exception: where the window stops what still runs there, and the job may be stopped and goes on from a
checkpoint, it loses next to nothing and starts.

Jobs differ in their ends, so they differ in what is closed to them. A desk is set to what is closed for the
job at hand; jobs that are alike in this follow each other without any change. What nothing closes costs
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from aliquot.core.draft import Shut
from aliquot.core.grants import Grant, Seat
from aliquot.core.ids import JobId
from aliquot.core.lengths import LengthOf, length_by, must_end
from aliquot.core.lifecycle import Phase
from aliquot.core.readiness import alike
from aliquot.core.records import Frozen, JobRecord
from aliquot.core.siting import Desk, Seated
from aliquot.core.steps import Cause, Evict, Fenced
from aliquot.core.windows import Closure, Part, Window, lets_in

Rows = Mapping[int, Shut]
_OPEN: Final[Rows] = {}
_RUNS: Final = frozenset({Phase.STARTING, Phase.RUNNING})


class Closing:
    """The windows of one pass that are not over."""

    def __init__(self, desk: Desk, now: int) -> None:
        self._desk, self._now = desk, now
        self._closures = [one for one in desk.world.closures if one.window.end_ms > now]
        self._length: LengthOf = length_by(desk.settings)
        self._rows: dict[tuple[int, ...], Rows] = {(): _OPEN}
        self._total: dict[tuple[int, ...], bool] = {(): False}
        self._blamed: dict[tuple[object, ...], tuple[int, ...]] = {}

    @property
    def is_empty(self) -> bool:
        """Whether there is no window that is not over."""
        return not self._closures

    def shut_for(self, record: JobRecord) -> None:
        """Close what the job of `record` must leave alone if it starts now, and nothing else."""
        if self._closures:
            self._desk.shut(self._rows_of(self._key(record)))

    def shut_all(self) -> None:
        """Close all that any window closes: for changes to jobs of which the end is not asked."""
        if self._closures:
            self._desk.shut(self._rows_of(tuple(range(len(self._closures)))))

    def open(self) -> None:
        """Close nothing."""
        if self._closures:
            self._desk.shut(_OPEN)

    def is_total(self, record: JobRecord) -> bool:
        """Whether every node is closed to the job of `record`."""
        if not self._closures:
            return False
        key = self._key(record)
        if key not in self._total:
            rows = self._rows_of(key)
            self._total[key] = all(row in rows and rows[row].whole for row in range(self._desk.world.rows))
        return self._total[key]

    def covers(self, record: JobRecord, host: JobId) -> bool:
        """Whether something that the running job `host` holds is closed to the job of `record`."""
        if not self._closures:
            return False
        rows = self._rows_of(self._key(record))
        seats = (grant.seat for grant in self._desk.world.grants.get(host, ()))
        return any(seat is not None and _is_in(seat, rows) for seat in seats)

    def blame(self, record: JobRecord, seat_all: Callable[[], Sequence[Seated] | None]) -> tuple[Fenced, ...]:
        """The windows without which the job of `record` would start now; the desk is left open.

        `seat_all` looks for its seats; jobs that are alike are looked at once.
        """
        key = self._key(record) if self._closures else ()
        if not key:
            return ()
        self.open()
        known = (key, alike(record.job))
        if known not in self._blamed:
            mark = self._desk.mark()
            seated = seat_all()
            self._desk.rollback(mark)
            seats = [] if seated is None else [one.seat for one in seated]
            self._blamed[known] = tuple(at for at in key if self._is_under(self._closures[at], seats))
        return tuple(self._fenced(self._closures[at], record) for at in self._blamed[known])

    def evictions(self) -> list[Evict]:
        """Who is stopped, since a window has begun that stops what is still there."""
        found: dict[JobId, Evict] = {}
        world = self._desk.world
        for closure in self._closures:
            grace = closure.window.grace_ms
            if grace is None or closure.window.start_ms > self._now:
                continue
            for grant in _residents(closure.parts, world):
                record = world.jobs[grant.id.job]
                if record.phase in _RUNS and not lets_in(closure.window, record.job):
                    step = Evict(record.job.id, record.attempt, Cause.RESERVATION, grace_ms=grace)
                    found.setdefault(record.job.id, step)
        return list(found.values())

    def wake_ms(self, *, waits: bool) -> int | None:
        """When something changes: a window begins that stops who is there, or ends while somebody `waits`."""
        times = [
            one.window.start_ms
            for one in self._closures
            if one.window.grace_ms is not None and one.window.start_ms > self._now
        ]
        if waits:
            times += [one.window.end_ms for one in self._closures]
        return min(times, default=None)

    def _key(self, record: JobRecord) -> tuple[int, ...]:
        """The windows that are closed to the job of `record`, by number."""
        length = must_end(record, self._length)
        over = None if length is None else self._now + max(1, length)
        return tuple(
            at
            for at, closure in enumerate(self._closures)
            if is_closed(closure.window, record, self._now, over)
        )

    def _rows_of(self, key: tuple[int, ...]) -> Rows:
        rows = self._rows.get(key)
        if rows is None:
            rows = shut_rows((self._closures[at] for at in key), self._desk.world)
            self._rows[key] = rows
        return rows

    def _is_under(self, closure: Closure, seats: Iterable[Seat]) -> bool:
        rows = shut_rows((closure,), self._desk.world)
        return any(_is_in(seat, rows) for seat in seats)

    def _fenced(self, closure: Closure, record: JobRecord) -> Fenced:
        window, length = closure.window, must_end(record, self._length)
        over = None if length is None else self._now + length
        nodes = tuple(part.node for part in closure.parts)
        return Fenced(window.name, window.reason, nodes, window.start_ms, window.end_ms, over)


class Fence:
    """What windows close to one job at any moment it might start, by row."""

    def __init__(self, record: JobRecord, world: Frozen, now: int, length: LengthOf) -> None:
        self._record, self._span = record, must_end(record, length)
        self._rows: dict[int, list[tuple[Window, Shut]]] = {}
        for closure in world.closures:
            if closure.window.end_ms > now and not lets_in(closure.window, record.job):
                for row, what in shut_rows((closure,), world).items():
                    self._rows.setdefault(row, []).append((closure.window, what))

    @property
    def is_empty(self) -> bool:
        """Whether nothing is ever closed to the job."""
        return not self._rows

    def closed(self, row: int, at_ms: int) -> Shut:
        """What of `row` the job must leave alone if it starts at `at_ms`."""
        over = None if self._span is None else at_ms + max(1, self._span)
        cards, whole = 0, False
        for window, what in self._rows.get(row, ()):
            if is_closed(window, self._record, at_ms, over):
                cards, whole = cards | what.cards, whole or what.whole
        return Shut(cards, whole)

    def ends(self, row: int) -> Iterator[int]:
        """When something of `row` is open again, in ms."""
        return (window.end_ms for window, _ in self._rows.get(row, ()))


def is_closed(window: Window, record: JobRecord, start_ms: int, over_ms: int | None) -> bool:
    """Whether the job of `record` may not start at `start_ms` under `window`; `over_ms` None: no end."""
    if window.end_ms <= start_ms or (over_ms is not None and over_ms <= window.start_ms):
        return False
    if lets_in(window, record.job):
        return False
    stop = record.job.stop
    may_stop = window.grace_ms is not None and stop.preemptible and stop.checkpoint_ms is not None
    return not (over_ms is None and may_stop and start_ms < window.start_ms)


def shut_rows(closures: Iterable[Closure], world: Frozen) -> dict[int, Shut]:
    """What `closures` close together, by row; nodes that are not there are left out."""
    rows: dict[int, Shut] = {}
    for closure in closures:
        for part in closure.parts:
            record = world.nodes.get(part.node)
            if record is None:
                continue
            before = rows.get(record.row, Shut(0))
            cards = sum(1 << record.index_of[card] for card in part.cards if card in record.index_of)
            rows[record.row] = Shut(before.cards | cards, before.whole or part.whole)
    return rows


def _is_in(seat: Seat, rows: Rows) -> bool:
    what = rows.get(seat.row)
    return what is not None and (what.whole or bool(what.cards & seat.mask))


def _residents(parts: Iterable[Part], world: Frozen) -> Iterable[Grant]:
    """Who holds something of `parts`."""
    for part in parts:
        record = world.nodes.get(part.node)
        for held in () if record is None else world.residents.get(record.row, ()):
            grant = world.grants[held.job][held.member]
            if part.whole or not set(part.cards).isdisjoint(grant.placement.cards):
                yield grant
