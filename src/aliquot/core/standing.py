"""A queue tree with its book and its waiting jobs, kept equal to the worlds it is shown.

A cache: all of it follows from the world, the settings and the time. Showing it the next world costs what
changed, not what there is.
"""

from __future__ import annotations

from heapq import heappop, heappush

from aliquot.core.charging import Flavour, Names, amounts_of, at_least, flavours_of, names_of
from aliquot.core.decay import Account, level_at
from aliquot.core.ids import JobId
from aliquot.core.jobs import Job
from aliquot.core.lengths import length_by
from aliquot.core.lines import compare_lines
from aliquot.core.promise import due_ms, last_start_ms
from aliquot.core.queueing.lineup import Lineup
from aliquot.core.queueing.order import Aging, Tier, Waiting, size_of
from aliquot.core.queueing.quota import Book, Charge, Shortage, charge_of, find_shortage
from aliquot.core.queueing.tree import QueueTree, grow_tree, home_of
from aliquot.core.queues import Discipline, Resource
from aliquot.core.records import Asked, Frozen, JobRecord, QueueKey
from aliquot.core.settings import Backfill, Settings

_MINUTE = 60_000
_NO_END = 2**60


class Standing:
    """A queue tree with its book and lineup, kept equal to the worlds it is shown."""

    def __init__(self, world: Frozen, settings: Settings, capacity: dict[Resource, int]) -> None:
        order = settings.order
        self.settings, self.kinds = settings, world.kinds
        self.capacity = capacity
        self._length = length_by(settings)
        self._by_size = order.by_size or (settings.backfill is not None and settings.backfill.by_size)
        self.spenders = tuple(queue for queue in settings.queues if queue.budget_cents is not None)
        self.tree: QueueTree = grow_tree(settings.queues, capacity)
        self.book, self._idle = Book(self.tree), Book(self.tree)  # `_idle` stays empty
        self.names: Names = names_of(world.kinds, self.tree)
        self.lineup = Lineup(self.tree, Aging(order.aging_ms, order.aging_ceiling))
        self.now = 0
        self._usage: dict[tuple[str, str], Asked] = {}
        self._lines: dict[str, tuple[QueueKey, ...]] = {}
        self._firm: frozenset[JobId] = frozenset()
        self._flavours: dict[object, tuple[Flavour, ...]] = {}
        self._groups: dict[object, int] = {}
        self._ways: dict[object, int] = {}
        self._never: dict[tuple[int, Charge], Shortage | None] = {}
        self._homes: dict[str, int] = {}
        self._overdue: list[tuple[int, JobId]] = []
        self._levels: dict[int, tuple[Account, int, int]] = {}

    def sync(self, world: Frozen, now: int) -> None:
        """Show it `world` as it is at `now`, which is not before the last time."""
        self.now = now
        self._sync_usage(world)
        self._sync_waiting(world)
        while self._overdue and self._overdue[0][0] <= now:
            job = heappop(self._overdue)[1]
            waiting, record = self.lineup.jobs.get(job), world.jobs.get(job)
            if waiting is not None and record is not None:
                overdue = self._is_overdue(record.job)
                if overdue is not waiting.overdue:
                    self.lineup.enter(waiting._replace(overdue=overdue))
        self.lineup.begin(self.book, now, self._past(world))

    def leaf(self, queue: str) -> int:
        """The node that holds jobs of `queue`."""
        if queue not in self._homes:
            self._homes[queue] = home_of(self.tree, queue)
        return self._homes[queue]

    def flavours(self, job: Job) -> tuple[Flavour, ...]:
        """The ways to charge `job`, which waits."""
        job = at_least(job)
        found = self._flavours.get(job.members)
        if found is None:
            if len(self._flavours) > 1 << 14:
                self._flavours.clear()
            found = flavours_of(job, self.kinds, self.tree, self.settings.rates, self.names)
            self._flavours[job.members] = found
        return found

    def shortage_when_idle(self, leaf: int, charge: Charge) -> Shortage | None:
        """What `charge` would lack in `leaf` if nothing ran at all."""
        key = (leaf, charge)
        if key not in self._never:
            if len(self._never) > 1 << 14:
                self._never.clear()
            self._never[key] = find_shortage(self._idle, leaf, charge)
        return self._never[key]

    def _sync_usage(self, world: Frozen) -> None:
        changed = [(key, asked) for key, asked in world.usage.items() if self._usage.get(key) is not asked]
        if len(world.usage) != len(self._usage) + sum(key not in self._usage for key, _ in changed):
            changed += [(key, Asked(key[1], 0, 0)) for key in self._usage if key not in world.usage]
        for key, asked in sorted(changed, key=lambda entry: entry[0]):
            old = self._usage.pop(key, None)
            leaf = self.leaf(key[0])
            if old is not None:
                self.book.remove(leaf, self._charge(old))
            if asked.milli or asked.mib:
                self._usage[key] = asked
                self.book.add(leaf, self._charge(asked))
        self.book.settle()

    def _charge(self, asked: Asked) -> tuple[tuple[int, int], ...]:
        return charge_of(self.tree, amounts_of([asked], self.tree, self.settings.rates, self.names))

    def _sync_waiting(self, world: Frozen) -> None:
        firm = frozenset(kept.job for kept in world.kept if kept.firm)
        for job in sorted(firm ^ self._firm):
            waiting, record = self.lineup.jobs.get(job), world.jobs.get(job)
            if waiting is not None and record is not None:  # one that started on its keep may be over by now
                self.lineup.enter(waiting._replace(tier=_tier(record.job, firm)))
        self._firm = firm
        changed = [queue for queue, line in world.waiting.items() if self._lines.get(queue) is not line]
        for queue in [queue for queue in self._lines if queue not in world.waiting]:
            for key in self._lines.pop(queue):
                self.lineup.leave(key[3])
        for queue in sorted(changed):
            before, after = self._lines.get(queue, ()), world.waiting[queue]
            self._lines[queue] = after
            gone, come = compare_lines(before, after)
            for key in gone:
                self.lineup.leave(key[3])
            for key in come:
                self._enter(world.jobs[key[3]])

    def _enter(self, record: JobRecord) -> None:
        job, settings = record.job, self.settings
        leaf = self.leaf(job.queue)
        in_turn = self.tree.discipline[leaf] is Discipline.STRICT
        flavours = self.flavours(job)
        overdue = self._is_overdue(job)
        self.lineup.enter(
            Waiting(
                job.id,
                leaf,
                flavours[0].charge,
                job.submitted_ms,
                job.seq,
                job.priority if settings.by_priority else 0,
                _tier(job, self._firm),
                self._size(record) if self._by_size else 0,
                overdue,
                self._groups.setdefault(_likeness(job, settings), len(self._groups)),
                in_turn,
                self._ways.setdefault(flavours, len(self._ways)),
            )
        )

    def _is_overdue(self, job: Job) -> bool:
        """Whether it is by now; it is looked at again once that changes."""
        rules = self.settings.backfill
        if rules is None:
            return False
        changes = [at for at in _turning_points(job, rules) if at > self.now]
        if changes:
            heappush(self._overdue, (min(changes), job.id))
        return overdue_at(job, rules, self.now)

    def _size(self, record: JobRecord) -> int:
        length = self._length(record)
        if length is None:
            return _NO_END
        cards = sum(request.cards for request in record.job.members)
        return size_of(length * max(1, cards))

    def _past(self, world: Frozen) -> list[int]:
        """[nodes] decayed usage, as it was at the last full minute; of inner nodes the sum of those below."""
        levels = [0] * len(self.tree.names)
        half_life = self.settings.order.half_life_ms
        if not half_life:
            return levels
        minute = self.now // _MINUTE * _MINUTE
        for at, (queue, account) in enumerate(sorted(world.past.items(), key=lambda entry: entry[0])):
            known = self._levels.get(at)
            if known is None or known[0] is not account or known[1] != minute:
                known = (account, minute, level_at(account, minute, half_life))
                self._levels[at] = known
            for node in self.tree.paths[self.leaf(queue)]:
                levels[node] += known[2]
        return levels


def _likeness(job: Job, settings: Settings) -> tuple[object, ...]:
    """Jobs for which this is equal are charged alike; where one finds no room, none does that asks for more.

    To ask for nearness is more. Where others may be stopped it is told apart: it says who can be.
    """
    near = () if settings.preemption is None else (job.groups, job.wish)
    return (job.members, job.elastic, job.least, job.together, bool(job.after), near)


def is_overdue(record: JobRecord, settings: Settings, now: int) -> bool:
    """Whether a job has waited so long that size no longer counts in its queue, or must not wait longer."""
    rules = settings.backfill
    return rules is not None and overdue_at(record.job, rules, now)


def overdue_at(job: Job, rules: Backfill, now: int) -> bool:
    """Whether `job` is out of patience, or its bounds are in danger: those that are lost press no more."""
    patience, due, lost = _turning_points(job, rules)
    return now >= patience or due <= now < lost


def _turning_points(job: Job, rules: Backfill) -> tuple[int, int, int]:
    """When `job` is out of patience, when its bounds are in danger, and when they can't be kept any more."""
    wide = len(job.members) > 1 or job.members[0].cards >= rules.wide_cards
    patience = job.submitted_ms + (rules.overdue_wide_ms if wide else rules.overdue_ms)
    due, last = due_ms(job), last_start_ms(job)
    return (patience, patience, patience) if due is None or last is None else (patience, due, last + 1)


def _tier(job: Job, firm: frozenset[JobId]) -> Tier:
    if job.id in firm:
        return Tier.RESERVED
    return Tier.SPOT if job.spot else Tier.OWN
