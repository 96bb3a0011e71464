"""Who holds what, as far as he might be stopped for another: columns that are kept from plan to plan.

A cache outside the world. A job is read again when its record or its grants are others, and a row when one of
its jobs was; what stopping somebody costs follows from the columns and the time. Numbers of tenants are given
out as they come free, so nothing may depend on their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np

from aliquot.core.grants import Grant, Placement, Seat
from aliquot.core.ids import GrantId, JobId
from aliquot.core.placement.cells import I64
from aliquot.core.queueing.quota import Charge
from aliquot.core.queueing.tree import QueueTree
from aliquot.core.records import Asked, JobRecord

SINCE, EVERY, RESTART, EXTRA, MILLI, FIXED, KIND, AT_MS, SEQ, CARDS, PARTED = range(11)
"""Columns of tenants: since when it runs, every when it is saved, ms of a restart, ms for earlier evictions,
milli-cards, cost if that is fixed (else -1), number of its kind (-1: nobody), ms and number of submission,
cards it holds in all, 1 where it is a part of a job.
"""

TENANT, MASK, COMPUTE, MEMORY, BANDWIDTH, CPU, HOST = range(7)
"""Columns of what is held on a row, one line for each seat; those of one tenant side by side."""

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
        self._lines: dict[int, tuple[tuple[int, tuple[int, ...]], ...]] = {}  # of each: row, what it holds
        self._room: list[int] = []
        self._end = 0
        self._free: list[int] = []

    @property
    def columns(self) -> I64:
        """[columns, tenants] of all."""
        if self._fresh:
            self._columns[:, list(self._fresh)] = np.array(list(self._fresh.values()), np.int64).T
            self._fresh.clear()
        return self._columns

    def add(self, job: JobId, parts: Sequence[tuple[Tenant, Terms]]) -> None:
        """A job that might be stopped, as its parts in their order."""
        numbers: list[int] = []
        for one, terms in parts:
            at = self._free.pop() if self._free else self._new()
            self.all[at] = one
            seats = one.seats
            self._lines[at] = tuple(
                (seat.row, (at, seat.mask, *seat.vector, seat.cpu, seat.host)) for seat in seats
            )
            cards = sum(seat.mask.bit_count() for seat in one.seats)
            kind = self.kinds.of(one)
            self._fresh[at] = (*terms, kind, *one.submitted, cards, len(parts) > 1)
            if numbers:
                self.before[at] = numbers[-1]
            numbers.append(at)
        self.numbers[job] = tuple(numbers)

    def drop(self, job: JobId) -> list[int]:
        """It is not to be stopped any more; the rows where it held something."""
        rows: dict[int, None] = {}
        for at in self.numbers.pop(job, ()):
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

    def lay(self, row: int, jobs: Iterable[JobId]) -> None:
        """Write anew what `jobs`, in this order, hold on `row`."""
        lines: list[tuple[int, ...]] = []
        for job in jobs:
            for at in self.numbers.get(job, ()):
                lines += [line for there, line in self._lines[at] if there == row]
        self._make_room(row, len(lines))
        start = int(self.start[row])
        self.count[row] = len(lines)
        if lines:
            self.held[start : start + len(lines)] = lines

    def widen(self, rows: int) -> None:
        """There are so many rows."""
        missing = rows - len(self._room)
        if missing > 0:
            self.start = np.append(self.start, np.zeros(missing, np.int64))
            self.count = np.append(self.count, np.zeros(missing, np.int64))
            self._room += [0] * missing

    def _new(self) -> int:
        at = len(self.all)
        self.all.append(None)
        if at == self._columns.shape[1]:
            more = np.full((self._columns.shape[0], at), -1, np.int64)
            self._columns = np.concatenate((self._columns, more), axis=1)
        return at

    def _make_room(self, row: int, lines: int) -> None:
        """A row that outgrows its lines gets others at the end."""
        if lines <= self._room[row]:
            return
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
        self.residents: list[tuple[GrantId, ...]] = []

    def follow(
        self,
        changed: Iterable[int],
        now: Sequence[tuple[GrantId, ...]],
        others: Iterable[JobId],
        read: Callable[[JobId], list[int]],
    ) -> None:
        """Read the jobs of rows that have changed, and `others`; then lay those rows, and all they touch.

        `now` are the residents of all rows; `read` takes a job in and gives the rows that it touches.
        """
        rows: dict[int, None] = {}
        jobs = dict.fromkeys(others)
        for row in changed:
            rows[row] = None
            jobs.update(dict.fromkeys(held.job for held in self.residents[row]))
            jobs.update(dict.fromkeys(held.job for held in now[row]))
            self.residents[row] = now[row]
        for job in jobs:
            touched = read(job)
            if touched:
                rows.update(dict.fromkeys(touched))
        for row in rows:
            self.roll.lay(row, dict.fromkeys(held.job for held in self.residents[row]))
