"""Who holds what, as far as he might be stopped for another: columns that are kept from plan to plan.

A cache outside the world. The roster says whose record or grants are others: those jobs are read again, and
their rows; what stopping somebody costs follows from the columns and the time. Numbers of tenants are given
out as they come free, so nothing may depend on their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np

from aliquot.core.grants import Grant, Placement, Seat
from aliquot.core.ids import JobId
from aliquot.core.placement.cells import I64
from aliquot.core.queueing.quota import Charge
from aliquot.core.queueing.tree import QueueTree
from aliquot.core.records import Asked, JobRecord
from aliquot.core.roster import UNSEEN, Roster

SINCE, EVERY, RESTART, EXTRA, MILLI, FIXED, KIND, AT_MS, SEQ, CARDS, PARTED = range(11)
"""Columns of tenants: since when it runs, every when it is saved, ms of a restart, ms for earlier evictions,
milli-cards, cost if that is fixed (else -1), number of its kind (-1: nobody), ms and number of submission,
cards it holds in all, 1 where it is a part of a job.
"""

TENANT, MASK, COMPUTE, MEMORY, BANDWIDTH, CPU, HOST = range(7)
"""Columns of what is held on a row, one line for each seat; those of one tenant side by side."""

Line = tuple[int, int, int, int, int, int, int]

_NO_LINE: Final[Line] = (-1, 0, 0, 0, 0, 0, 0)
_FIRST: Final = 256
_SLACK: Final = 8


class Level(NamedTuple):
    """A job going on at a narrower width: `freed` is what it leaves beyond the level before, `rest` what it
    would leave if it were stopped then, `asked` what it is charged for, `placements` what it holds.
    """

    keep: int
    freed: tuple[Seat, ...]
    rest: tuple[Seat, ...]
    asked: tuple[Asked, ...]
    placements: tuple[Placement, ...]


class Tenant(NamedTuple):
    """A job that could be stopped for somebody; `seats` are those that would be free then.

    A job that can also go on narrower is several, one after the other, the widest first: each is what it
    gives up beyond the one before it, so taking one takes those before it too. `keep` is the width at which
    it then goes on (0: it is stopped), `charge` what it gives up in all so far, `part` what of that is new.
    """

    job: JobId
    cost: int
    seats: tuple[Seat, ...]
    priority: int = 0
    spot: bool = False
    submitted: tuple[int, int] = (0, 0)  # (ms, sequence number): of equals the later goes first
    leaf: int = 0
    charge: Charge = ()
    keep: int = 0
    part: Charge | None = None

    @property
    def given(self) -> Charge:
        """What is not charged any more beyond what the tenant before it gives."""
        return self.charge if self.part is None else self.part


class Terms(NamedTuple):
    """What the cost of a tenant follows from; `fixed` where it is known already."""

    since: int
    every: int
    restart: int
    extra: int
    milli: int
    fixed: int = -1


class Kinds:
    """Tenants alike in queue and charge (a group), priority, and whether they are spot work."""

    def __init__(self) -> None:
        self.groups: list[tuple[int, Charge]] = []
        self.group: list[int] = []
        self.priority: list[int] = []
        self.spot: list[bool] = []
        self._groups: dict[tuple[int, Charge], int] = {}
        self._kinds: dict[tuple[int, int, bool], int] = {}

    def of(self, one: Tenant) -> int:
        """The number of its kind."""
        group = self._groups.setdefault((one.leaf, one.charge), len(self.groups))
        if group == len(self.groups):
            self.groups.append((one.leaf, one.charge))
        kind = self._kinds.setdefault((group, one.priority, one.spot), len(self.group))
        if kind == len(self.group):
            self.group.append(group)
            self.priority.append(one.priority)
            self.spot.append(one.spot)
        return kind


class Roll:
    """All tenants by number, and what they hold by row."""

    def __init__(self) -> None:
        self.all: list[Tenant | None] = []
        self._columns: I64 = np.full((11, _FIRST), -1, np.int64)
        self._fresh: dict[int, tuple[int, ...]] = {}  # columns yet to be written, many at one go
        self.numbers: dict[JobId, tuple[int, ...]] = {}
        self.before: dict[int, int] = {}  # of a part of a job: the one that has to be taken before it
        self.kinds = Kinds()
        # held[start[row] : start[row] + count[row]] is what is held on a row
        self.held: I64 = np.zeros((_FIRST, 7), np.int64)
        self.start: I64 = np.zeros(0, np.int64)
        self.count: I64 = np.zeros(0, np.int64)
        self._grants: dict[JobId, Sequence[int]] = {}  # numbers of the roster
        # by these numbers: the line of what is given up whole, else the first part of its job
        self._line: dict[int, Line] = {}
        self._parted: dict[int, int] = {}
        # the same in columns, once `_stale` are written: tenant -1 where there is no line
        self._stale: dict[int, None] = {}
        self._lines: I64 = np.full((_FIRST, 7), -1, np.int64)
        self._is_parted = np.zeros(_FIRST, np.bool_)
        self._room: I64 = np.zeros(0, np.int64)
        self._end = 0
        self._free: list[int] = []

    @property
    def columns(self) -> I64:
        """[columns, tenants] of all."""
        if self._fresh:
            self._columns[:, list(self._fresh)] = np.array(list(self._fresh.values()), np.int64).T
            self._fresh.clear()
        return self._columns

    def add(
        self, job: JobId, parts: Sequence[tuple[Tenant, Terms]], grants: Sequence[int], *, is_whole: bool
    ) -> None:
        """A job that might be stopped, as its parts in their order.

        `grants`: the numbers that the roster has for them; where it `is_whole` they are those of its seats.
        """
        numbers: list[int] = []
        for one, terms in parts:
            at = self._free.pop() if self._free else self._new()
            self.all[at] = one
            cards = sum([seat.mask.bit_count() for seat in one.seats])
            kind = self.kinds.of(one)
            self._fresh[at] = (*terms, kind, *one.submitted, cards, len(parts) > 1)
            if numbers:
                self.before[at] = numbers[-1]
            numbers.append(at)
        self.numbers[job], self._grants[job] = tuple(numbers), grants
        for place, grant in enumerate(grants):
            self._stale[grant] = None
            if is_whole:
                self._line[grant] = _line_of(numbers[0], parts[0][0].seats[place])
            else:
                self._parted[grant] = numbers[0]

    def drop(self, job: JobId) -> list[int]:
        """It is not to be stopped any more; the rows where it held something."""
        rows: dict[int, None] = {}
        own = self.numbers.pop(job, ())
        for grant in self._grants.pop(job, ()):  # another may have the number of a grant by now
            if self._line.get(grant, _NO_LINE)[TENANT] in own:
                del self._line[grant]
                self._stale[grant] = None
            if self._parted.get(grant, -1) in own:
                del self._parted[grant]
                self._stale[grant] = None
        for at in own:
            one = self.all[at]
            assert one is not None
            rows.update(dict.fromkeys(seat.row for seat in one.seats))
            self.all[at] = None
            self._fresh.pop(at, None)
            self._columns[KIND, at] = -1
            self.before.pop(at, None)
            self._free.append(at)
        return list(rows)

    def reprice(self, job: JobId, costs: Iterable[int]) -> None:
        """Other fixed costs for its parts."""
        for at, cost in zip(self.numbers.get(job, ()), costs, strict=True):
            self.columns[FIXED, at] = cost

    def lay(self, rows: Sequence[int], roster: Roster) -> None:
        """Write anew what is held on `rows`, in the order of their residents, that of one tenant together."""
        self._write_grants(len(roster.held))
        place, grants = roster.on(rows)
        is_parted = np.zeros(len(rows), np.bool_)
        is_parted[place[self._is_parted[grants]]] = True
        lines = self._lines[grants]
        keep = (lines[:, TENANT] >= 0) & ~is_parted[place]
        place, lines = place[keep], lines[keep]
        key = place * len(self.all) + lines[:, TENANT]
        each, first, back = np.unique(key, return_index=True, return_inverse=True)
        if len(each) < len(key):
            order = np.argsort(first[back], kind="stable")
            place, lines = place[order], lines[order]
        every = np.array(rows, np.int64)
        plain = every[~is_parted]
        self._write(plain, np.bincount(place, minlength=len(rows))[~is_parted], lines)
        for row in every[is_parted].tolist():
            jobs = dict.fromkeys(held.job for held in roster.residents[row])
            own = (at for job in jobs for at in self.numbers.get(job, ()))
            found = [line for at in own for line in self._lines_on(row, at)]
            self._write(np.array([row]), np.array([len(found)]), np.array(found, np.int64))

    def _write(self, rows: I64, count: I64, lines: I64) -> None:
        for at in np.flatnonzero(count > self._room[rows]).tolist():
            self._make_room(int(rows[at]), int(count[at]))
        self.count[rows] = count
        self.held[lines_of(self.start[rows], count)] = lines

    def _lines_on(self, row: int, at: int) -> list[Line]:
        one = self.all[at]
        return [] if one is None else [_line_of(at, seat) for seat in one.seats if seat.row == row]

    def _write_grants(self, count: int) -> None:
        """Bring the columns by grant up to date, with room for `count` of them."""
        missing = count - len(self._lines)
        if missing > 0:
            missing = max(missing, len(self._lines))
            self._lines = np.concatenate((self._lines, np.full((missing, 7), -1, np.int64)))
            self._is_parted = np.append(self._is_parted, np.zeros(missing, np.bool_))
        if self._stale:
            stale = [*self._stale]
            self._lines[stale] = [self._line.get(grant, _NO_LINE) for grant in stale]
            self._is_parted[stale] = [grant in self._parted for grant in stale]
            self._stale.clear()

    def widen(self, rows: int) -> None:
        """There are so many rows."""
        missing = rows - len(self._room)
        if missing > 0:
            self.start = np.append(self.start, np.zeros(missing, np.int64))
            self.count = np.append(self.count, np.zeros(missing, np.int64))
            self._room = np.append(self._room, np.zeros(missing, np.int64))

    def _new(self) -> int:
        at = len(self.all)
        self.all.append(None)
        if at == self._columns.shape[1]:
            more = np.full((self._columns.shape[0], at), -1, np.int64)
            self._columns = np.concatenate((self._columns, more), axis=1)
        return at

    def _make_room(self, row: int, lines: int) -> None:
        """A row that outgrows its lines gets others at the end."""
        room = lines + lines // 4 + _SLACK
        if self._end + room > len(self.held):
            more = np.zeros((max(room, len(self.held)), 7), np.int64)
            self.held = np.concatenate((self.held, more))
        self.start[row], self._room[row] = self._end, room
        self._end += room


class Lodger(NamedTuple):
    """A job as it was when it was last read."""

    record: JobRecord
    grants: tuple[Grant, ...]
    shape: tuple[tuple[int, tuple[Seat, ...]], ...]  # of its parts: width that is kept, what is given up


class LodgersMemo:
    """The roll of the last plan, and from what it was made."""

    def __init__(self) -> None:
        self._forget(None, None)

    def know(self, tree: QueueTree | None, rules: object) -> None:
        """What follows is read under these queues and rules: under others nothing is known."""
        if tree is not self._tree or rules != self._rules:
            self._forget(tree, rules)

    def _forget(self, tree: QueueTree | None, rules: object) -> None:
        self._tree, self._rules = tree, rules
        self.roll = Roll()
        self.lodgers: dict[JobId, Lodger] = {}
        self.ending: dict[JobId, None] = {}
        self.changing: dict[JobId, None] = {}  # whose parts depend on the moment
        self.strained: frozenset[int] = frozenset()
        self.company: frozenset[JobId] = frozenset()
        self.nodes: object = None
        self.records: list[object] = []
        self._seen = UNSEEN
        self._jobs: list[JobId | None] = []  # by number of the roster: whose it was when it was last read

    def follow(
        self,
        roster: Roster,
        closed: Iterable[int],
        others: Iterable[JobId],
        read: Callable[[JobId], list[int]],
    ) -> None:
        """Read what has changed, and `others`; then lay `closed` rows and all that have changed.

        `read` takes a job in and gives the rows where that changes anything.
        """
        self._jobs += [None] * (len(roster.held) - len(self._jobs))
        fresh = roster.grants_since(self._seen)
        jobs = dict.fromkeys(others)
        jobs.update(dict.fromkeys(job for at in fresh if (job := self._jobs[at]) is not None))
        for at, held in zip(fresh, roster.names(fresh), strict=True):
            self._jobs[at] = None if held is None else held.job
        jobs.update(dict.fromkeys(job for at in fresh if (job := self._jobs[at]) is not None))
        changed = roster.rows_since(self._seen)
        rows = dict.fromkeys((*changed, *closed))
        self._seen = roster.reading
        for job in jobs:
            touched = read(job)
            if touched:
                rows.update(dict.fromkeys(touched))
        if rows:
            self.roll.lay([*rows], roster)


def _line_of(at: int, seat: Seat) -> Line:
    """What tenant `at` holds at `seat`, in the columns of what is held on a row."""
    _, mask, (compute, memory, bandwidth), _, cpu, host, _, _ = seat
    return (at, mask, compute, memory, bandwidth, cpu, host)


def lines_of(start: I64, count: I64) -> I64:
    """The numbers from each of `start` on, so many as `count` says of each, one after the other."""
    first = np.repeat(start - (np.cumsum(count) - count), count)
    found: I64 = np.arange(len(first)) + first
    return found
