"""Who goes next in a pass: the waiting jobs one after the other, and what quota says to each.

`TreeTurns` is the tournament over the queue tree, with quotas; without queues see `queueless`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Protocol

from aliquot.core.budget import Budgets, sooner
from aliquot.core.charging import Flavour
from aliquot.core.ids import JobId
from aliquot.core.queueing.order import Tier, Waiting, place_in_queue, tier_of
from aliquot.core.queueing.quota import available, fits, is_room, lacking_node
from aliquot.core.queueing.tree import ROOT, UNBOUNDED
from aliquot.core.queues import Discipline, quotas_of
from aliquot.core.records import Frozen, JobRecord
from aliquot.core.standing import Standing
from aliquot.core.steps import Lack

MayPass = Callable[[JobId | None, Hashable], bool]
"""Whether a job of this likeness needs no turn; None: whether that is sure of all of them."""


class Turns(Protocol):
    """The waiting jobs of one pass, in order. Each that `first` gives is answered by one call."""

    def first(self) -> JobRecord | None:
        """Who goes next; None at the end of the pass."""

    def flavour(self, record: JobRecord) -> Flavour | Lack:
        """How the job of `record` is charged, or what its queue lacks."""

    def first_flavour(self, record: JobRecord) -> Flavour:
        """How it is charged where quota does not choose."""

    def other_flavours(self, record: JobRecord, flavour: Flavour) -> Sequence[Flavour]:
        """Further ways to charge it that there is quota for, where `flavour` finds no room."""

    def admit(self, record: JobRecord, flavour: Flavour) -> None:
        """It starts."""

    def promise(self, record: JobRecord, flavour: Flavour) -> None:
        """Room is made for it: charged like a start, but those behind it in a strict queue still wait."""

    def charge(self, record: JobRecord, flavour: Flavour) -> None:
        """It starts after all, though it had its answer: its queue is charged."""

    def hold(self, record: JobRecord) -> bool:
        """It waits for what its nominal promises; what others borrowed of that is not lent again.

        False, and no answer, where nothing is promised.
        """

    def leave(self, record: JobRecord) -> None:
        """It waits, told so without being looked at: for those behind it that is no different."""

    def pass_over(self, record: JobRecord) -> None:
        """It keeps waiting; the next may try."""

    def pass_over_alike(self, record: JobRecord) -> None:
        """It keeps waiting, and so do those like it."""

    def pass_over_charged(self, record: JobRecord) -> None:
        """It keeps waiting for quota, and so do those of its queue that quota has no other answer for."""

    def drop(self, record: JobRecord, may_pass: MayPass) -> None:
        """Nobody like it that `may_pass` has a turn any more, but the first of strict queues. No answer."""

    def restore(self) -> None:
        """Those that were dropped have their turn again, as far as it has not come yet."""

    def close(self, record: JobRecord) -> None:
        """It keeps waiting, and so do all behind it in its queue."""

    def is_strict(self, record: JobRecord) -> bool:
        """Whether those behind it wait for it."""

    def likeness(self, record: JobRecord) -> tuple[Hashable, bool]:
        """Equal for jobs that ask alike; and whether it may not be put off (`standing.is_overdue`)."""

    @property
    def budgets(self) -> Budgets | None:
        """Money for the month; None where there are no queues."""

    @property
    def is_closed(self) -> bool:
        """Whether what `first` gives has no turn any more."""


class TreeTurns:
    """The tournament over the queue tree."""

    is_closed = False

    def __init__(self, world: Frozen, standing: Standing) -> None:
        self._jobs, self.standing = world.jobs, standing
        self.budgets = Budgets(standing, world, standing.now)
        self._lineup, self._book = standing.lineup, standing.book
        settings = standing.settings
        skips = settings.backfill is None or settings.backfill.pass_blocked
        self._strict = settings.discipline is Discipline.STRICT or not skips
        self._holds = False
        named = {queue.name for queue in settings.queues if quotas_of(queue)}
        self._quotas = bool(named)
        self._promises = [name.removesuffix("/*") in named for name in standing.tree.names]
        self._found: dict[tuple[int, int, Tier], Flavour | Lack] = {}  # by queue and ways, of one book
        self._left: dict[int, dict[int, int]] = {}  # what each queue may still take, by slot
        self._found_in = -1

    def first(self) -> JobRecord | None:
        """Who goes next."""
        waiting = self._lineup.first()
        return None if waiting is None else self._jobs[waiting.id]

    def flavour(self, record: JobRecord) -> Flavour | Lack:
        """The first of its flavours that fits its quota, and that the money of the month is enough for."""
        found = self._in_quota(record)
        if self.budgets.is_empty or isinstance(found, Lack):
            return found
        lack = self.budgets.lack_of(record, found.model)
        if lack is None:
            return found
        leaf = self._lineup.jobs[record.job.id].leaf
        for other in self.standing.flavours(record.job):  # cards of another model may cost less
            if fits(self._book, leaf, other.charge):
                also = self.budgets.lack_of(record, other.model)
                if also is None:
                    return other
                lack = sooner(lack, also)
        return lack

    def _in_quota(self, record: JobRecord) -> Flavour | Lack:
        """As `_weigh`, which says the same of all charged alike in one queue until something is charged."""
        waiting = self._lineup.jobs[record.job.id]
        if self._found_in != self._book.version:
            self._found.clear()
            self._left.clear()
            self._found_in = self._book.version
        key = (waiting.leaf, waiting.ways, waiting.tier)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._weigh(record, waiting)
        return found

    def _weigh(self, record: JobRecord, waiting: Waiting) -> Flavour | Lack:
        """The first of its flavours that fits its quota.

        Capacity is the placer's business: where only the pool itself is full, the job may still ask for room.
        """
        flavours = self.standing.flavours(record.job)
        if not self._quotas:
            return flavours[0]
        lacking: list[tuple[int, int]] = []  # of each flavour, the slot and the amount that are too much
        for flavour in flavours:
            lack = self._too_much(waiting.leaf, flavour)
            if lack is None:
                return flavour
            lacking.append(lack)
        node, slot, need, have, most = self._never(waiting.leaf, flavours) or self._later(waiting, lacking[0])
        tree = self.standing.tree
        if most is None and self._is_mere_room(node, slot, waiting):
            return flavours[0]
        may_borrow = node == ROOT or tree.headroom[node][slot] > 0  # if it were not lent already
        beyond = may_borrow and tier_of(self._book, waiting) is Tier.BORROWING
        return Lack(tree.resources[slot], need, have, tree.names[node], beyond, most=most)

    def lack_of_loan(self, record: JobRecord) -> Lack | None:
        """What its queue, whose own is used up, can't borrow now, as all that the pool lends is in use.

        None: its own nominal covers it, or so much may still be borrowed, or a limit is in the way
        (`flavour` tells it).
        """
        waiting = self._lineup.jobs[record.job.id]
        if isinstance(self._in_quota(record), Lack) or tier_of(self._book, waiting) is not Tier.BORROWING:
            return None
        lacking = [self._too_much(waiting.leaf, each) for each in self.standing.flavours(record.job)]
        if not self._quotas or lacking[0] is None or not all(lacking):
            return None
        node, slot, need, have, _ = self._later(waiting, lacking[0])
        tree = self.standing.tree
        return Lack(tree.resources[slot], need, have, tree.names[node], borrows=True)

    def _later(self, waiting: Waiting, lack: tuple[int, int]) -> tuple[int, int, int, int, int | None]:
        """Who is short of the amount now: node, slot, need, have; and no limit for ever."""
        have = self._left[waiting.leaf][lack[0]]
        return lacking_node(self._book, waiting.leaf, lack[0], have), *lack, have, None

    def _never(
        self, leaf: int, flavours: tuple[Flavour, ...]
    ) -> tuple[int, int, int, int, int | None] | None:
        """As `_later`, with the most that the quotas of `leaf` could give, where nothing running is too much.

        None: one of `flavours` they can. More cards than there are is the placer's to tell; what a pool lost
        with its nodes may return.
        """
        tree = self.standing.tree
        found = [self.standing.shortage_when_idle(leaf, flavour.charge) for flavour in flavours]
        first = found[0]
        if tree.scarce or first is None or not all(found):
            return None
        slot = tree.slot[first.resource]
        has = self.standing.capacity.get(first.resource, UNBOUNDED)
        if first.node == ROOT and first.need > tree.entitled[ROOT][slot] >= has:
            return None
        return first.node, slot, first.need, available(self._book, leaf, slot), first.have

    def _too_much(self, leaf: int, flavour: Flavour) -> tuple[int, int] | None:
        """The first (slot, amount) of the charge that is more than `leaf` may still take; mere room last."""
        left = self._left.setdefault(leaf, {})
        room: tuple[int, int] | None = None
        for slot, amount in flavour.charge:
            have = left.get(slot)
            if have is None:
                have = left[slot] = available(self._book, leaf, slot)
            if amount > have:
                if not is_room(self._book, leaf, lacking_node(self._book, leaf, slot, have), slot):
                    return slot, amount
                room = room or (slot, amount)
        return room

    def _is_mere_room(self, node: int, slot: int, waiting: Waiting) -> bool:
        """Whether the pool is only full: it lends all it has, and nobody with a better claim waits."""
        held_for_others = self._holds and tier_of(self._book, waiting) > Tier.OWN
        return is_room(self._book, waiting.leaf, node, slot) and not held_for_others

    def first_flavour(self, record: JobRecord) -> Flavour:
        """The first way to charge it."""
        return self.standing.flavours(record.job)[0]

    def other_flavours(self, record: JobRecord, flavour: Flavour) -> Sequence[Flavour]:
        """Those of other models that its quota and the money of the month are enough for, in their order."""
        if not flavour.model:
            return ()
        leaf = self._lineup.jobs[record.job.id].leaf
        return [
            other
            for other in self.standing.flavours(record.job)
            if other is not flavour
            and fits(self._book, leaf, other.charge)
            and (self.budgets.is_empty or self.budgets.lack_of(record, other.model) is None)
        ]

    def admit(self, record: JobRecord, flavour: Flavour) -> None:
        """It starts: its queue is charged in the book of this pass."""
        waiting = self._lineup.jobs[record.job.id]
        alike = waiting.charge == flavour.charge
        self._lineup.admit(waiting if alike else waiting._replace(charge=flavour.charge))
        self.budgets.take(record, flavour.model)

    def promise(self, record: JobRecord, flavour: Flavour) -> None:
        """It will start: charged as if it did. Under a strict policy the next has room made too, in order."""
        self.admit(record, flavour)
        if self.is_strict(record) and not self._strict:
            self._lineup.close(self._lineup.jobs[record.job.id])

    def charge(self, record: JobRecord, flavour: Flavour) -> None:
        """In the book of this pass."""
        self._book.add(self._lineup.jobs[record.job.id].leaf, flavour.charge)
        self.budgets.take(record, flavour.model)

    def hold(self, record: JobRecord) -> bool:
        """Only what its own nominal covers is held; the pool itself promises nothing."""
        waiting = self._lineup.jobs[record.job.id]
        if not self._is_promised(waiting):
            return False
        self._lineup.hold(waiting)
        self._holds = True
        return True

    def leave(self, record: JobRecord) -> None:
        """The next of another queue where its own is strict, else of its own."""
        if self.is_strict(record):
            self.close(record)
        elif not self.hold(record):
            self.pass_over(record)

    def pass_over(self, record: JobRecord) -> None:
        """The next of its queue."""
        self._lineup.pass_over(self._lineup.jobs[record.job.id])

    def pass_over_alike(self, record: JobRecord) -> None:
        """The next of its queue that differs."""
        self._lineup.pass_over_alike(self._lineup.jobs[record.job.id])

    def pass_over_charged(self, record: JobRecord) -> None:
        """The next of its queue that is charged otherwise, or has a higher priority."""
        self._lineup.pass_over_charged(self._lineup.jobs[record.job.id])

    def drop(self, record: JobRecord, may_pass: MayPass) -> None:
        """Nobody of its group that is overdue as it is, but who is to have what its own nominal covers."""

        def passes(waiting: Waiting, alike: bool) -> bool:
            holds = self._promises[waiting.leaf] and self._lineup.tier(waiting) is Tier.OWN
            return not holds and may_pass(None if alike else waiting.id, (waiting.group, waiting.overdue))

        if not self._strict:  # the line knows only queues that are strict by themselves
            self._lineup.drop(self._lineup.jobs[record.job.id], passes)

    def restore(self) -> None:
        """Nobody is dropped any more."""
        self._lineup.restore()

    def close(self, record: JobRecord) -> None:
        """The next of another queue. What its own nominal covers is held for it, as in any other queue."""
        waiting = self._lineup.jobs[record.job.id]
        if self._is_promised(waiting):
            self._book.add(waiting.leaf, waiting.charge)
            self._holds = True
        self._lineup.close(waiting)

    def _is_promised(self, waiting: Waiting) -> bool:
        """Whether its queue names quotas, and it would be within them."""
        return self._promises[waiting.leaf] and self._lineup.tier(waiting) is Tier.OWN

    def is_strict(self, record: JobRecord) -> bool:
        """As its queue says, else as the policy says."""
        leaf = self._lineup.jobs[record.job.id].leaf
        own = self.standing.tree.discipline[leaf]
        return self._strict if own is None else own is Discipline.STRICT

    def queue_of(self, record: JobRecord) -> list[JobId]:
        """Those who wait in the queue of `record`, in its order."""
        now, aging, leaf = self._lineup.now, self._lineup.aging, self._lineup.jobs[record.job.id].leaf
        own = [waiting for waiting in self._lineup.jobs.values() if waiting.leaf == leaf]
        own.sort(key=lambda waiting: place_in_queue(waiting, now, aging))
        return [waiting.id for waiting in own]

    def likeness(self, record: JobRecord) -> tuple[Hashable, bool]:
        """As it stands in line."""
        waiting = self._lineup.jobs[record.job.id]
        return waiting.group, waiting.overdue
