"""How wide elastic jobs may be, as far as quotas, the money of the month and the cap of spot work go.

A job waits for what it needs at its narrowest (`charging.at_least`). What it takes beyond that, at its start
or while it runs, is weighed like any other start: against what its queue owns, may borrow and may ever have,
against what its queues have left to spend, and for spot work against what others are expected to leave.
The book of the pass holds back what others wait for within their own nominal, so nobody grows into that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from msgspec.structs import replace

from aliquot.core.accounts import ask_of
from aliquot.core.budget import Budgets
from aliquot.core.charging import Flavour, amounts_of, flavours_of, narrowed
from aliquot.core.grants import Placement
from aliquot.core.inventory import CardModel
from aliquot.core.jobs import Job
from aliquot.core.lengths import as_charged, at_width
from aliquot.core.pace import as_granted, width_of
from aliquot.core.queueing.quota import Charge, available, charge_of, fits
from aliquot.core.queueing.tree import UNBOUNDED
from aliquot.core.queues import CARDS, quotas_of
from aliquot.core.records import Asked, Frozen, JobRecord
from aliquot.core.room.reclaim import reclaim_right
from aliquot.core.spotting import Spotting
from aliquot.core.standing import Standing
from aliquot.core.steps import SpotRoom
from aliquot.core.tide import asked_milli
from aliquot.core.units import FULL

Gives = Callable[[JobRecord], int]
"""The width down to which a running elastic job may be narrowed for others."""

May = Callable[[int, Charge], bool]
"""Whether jobs of the queue with this leaf may be made to give up so much."""


Mark = tuple[int, int, SpotRoom | None]
"""Points to roll back to: of the book of quotas, of budgets, of spot work."""


class Growth:
    """Widths under what limits them in one pass, in its books. `standing` None: there are no quotas."""

    def __init__(
        self, world: Frozen, standing: Standing | None, spotting: Spotting, budgets: Budgets | None
    ) -> None:
        is_limited = standing is not None and any(quotas_of(queue) for queue in standing.settings.queues)
        self._world, self._standing = world, standing if is_limited else None
        self._spotting, self._budgets = spotting, budgets

    def within(self, record: JobRecord, model: str) -> Job:
        """The waiting job of `record` on cards of `model` ("": any that will do).

        An elastic one with the widths it may have now; its narrowest stays.
        """
        job = narrowed(record.job, model)
        if job.elastic is None:
            return job
        narrowest, *wider = job.elastic.widths
        widest = narrowest
        for width in wider:
            if not self._may_start(record, job, width, model):
                break
            widest = width
        return _up_to(job, widest)

    def exact(
        self, record: JobRecord, flavour: Flavour, placements: Sequence[Placement]
    ) -> tuple[JobRecord, Flavour]:
        """The job of `record` that starts on `placements`, and its charge; an elastic one at its width."""
        started = at_width(record, width_of(record.job, placements))
        if self._standing is None or record.job.elastic is None:
            return started, flavour
        return started, flavour._replace(charge=self._charge(asked_for(self._world, record.job, placements)))

    def circles(self) -> tuple[int | None, ...]:
        """Among whom widths are shared out: all first (None), then the jobs of each queue, by its leaf."""
        if self._standing is None:
            return (None,)
        leaves = (self._standing.leaf(self._world.jobs[job].job.queue) for job in self._world.elastic)
        return (None, *dict.fromkeys(leaves))

    def is_of(self, job: Job, leaf: int | None) -> bool:
        """Whether `job` is of the circle of `leaf`."""
        return leaf is None or self._standing is None or self._standing.leaf(job.queue) == leaf

    def room(self, leaf: int | None) -> int:
        """Whole cards that a circle may take of quota beyond what it has, as far as one queue of it may."""
        standing = self._standing
        if standing is None or CARDS not in standing.tree.slot:
            return UNBOUNDED
        slot = standing.tree.slot[CARDS]
        leaves = self.circles()[1:] if leaf is None else (leaf,)
        free = (available(standing.book, each, slot) for each in leaves if each is not None)
        return max(free, default=0) // FULL

    def lender(self, leaf: int | None) -> Gives:
        """In the circle of a queue all may be given; among all, as much as queues have beyond their own."""
        return self._narrowest if leaf is not None else partial(self._lends, self._is_borrowed)

    def lender_to(self, record: JobRecord) -> Gives:
        """For the waiting job of `record`: all in its own queue, of others what it has a right to."""
        standing = self._standing
        if standing is None:
            return self._narrowest
        taker = standing.leaf(record.job.queue), standing.flavours(record.job)[0].charge

        def may(leaf: int, charge: Charge) -> bool:
            return leaf == taker[0] or reclaim_right(standing.book, taker, (leaf, charge)) is not None

        return partial(self._lends, may)

    def open_widths(self, running: Sequence[tuple[JobRecord, int]]) -> list[tuple[int, ...]]:
        """The widths at which each running elastic job could go on; none is below the width beside it.

        All is counted as if all were as narrow as that: only `take` says what is left in the end.
        """
        mark = self.mark()
        for record, least in running:
            self._shift(record, self._at(record, least), least, self._model(record))
        found = [self._open(record, least) for record, least in running]
        self.rollback(mark)
        return found

    def take(self, record: JobRecord, placements: Sequence[Placement]) -> bool:
        """Whether the running job of `record` may hold `placements` instead; then it is charged so."""
        width, model = width_of(record.job, placements), _model_of(_models(self._world, placements))
        if not self._fits(record, asked_for(self._world, record.job, placements), width, model):
            return False
        self.change(record, placements)
        return True

    def change(self, record: JobRecord, placements: Sequence[Placement]) -> None:
        """It holds `placements` instead of what it has, if anything."""
        width, model = width_of(record.job, placements), _model_of(_models(self._world, placements))
        self._shift(record, asked_for(self._world, record.job, placements), width, model)

    def mark(self) -> Mark:
        """A point to roll back to."""
        book = 0 if self._standing is None else self._standing.book.mark()
        return book, 0 if self._budgets is None else self._budgets.mark(), self._spotting.mark()

    def rollback(self, mark: Mark) -> None:
        """Undo everything since `mark`."""
        book, spent, spot = mark
        if self._standing is not None:
            self._standing.book.rollback(book)
        if self._budgets is not None:
            self._budgets.rollback(spent)
        self._spotting.rollback(spot)

    @property
    def again_ms(self) -> int | None:
        """When what money forbids now may be allowed, though nothing happens."""
        return None if self._budgets is None else self._budgets.again_ms

    def _may_start(self, record: JobRecord, job: Job, width: int, model: str) -> bool:
        """Whether a waiting job, as narrowed to `model`, may have `width`."""
        standing, sized = self._standing, replace(job.sized(width), elastic=None)
        if standing is not None:
            rates, names = standing.settings.rates, standing.names
            first = flavours_of(sized, standing.kinds, standing.tree, rates, names)[0]
            if not fits(standing.book, standing.leaf(job.queue), first.charge):
                return False
        afford = self._budgets is None or self._budgets.may_widen(record, width, model, None)
        return afford and self._spotting.has_room(job, asked_milli(sized))

    def _narrowest(self, record: JobRecord) -> int:
        assert record.job.elastic is not None
        return record.job.elastic.widths[0]

    def _lends(self, may: May, record: JobRecord) -> int:
        """The width of a running elastic job once all is taken that `may` be, one step after the other."""
        if self._standing is None:
            return self._narrowest(record)
        least, mark, leaf = self._width(record), self.mark(), self._standing.leaf(record.job.queue)
        assert record.job.elastic is not None
        has = dict(self._charge(record.asked))
        for width in reversed([width for width in record.job.elastic.widths if width < least]):
            left = dict(self._charge(self._at(record, width)))
            charge = tuple((slot, amount - left.get(slot, 0)) for slot, amount in has.items())
            if not may(leaf, charge):
                break
            self._standing.book.remove(leaf, charge)
            least, has = width, left
        self.rollback(mark)
        return least

    def _is_borrowed(self, leaf: int, charge: Charge) -> bool:
        """Whether all from `leaf` up to the pool borrow something of it."""
        assert self._standing is not None
        tree, drawn = self._standing.tree, self._standing.book.drawn
        slots = [slot for slot, _ in charge if slot in tree.named[leaf]]
        path = tree.paths[leaf][:-1]
        return any(all(drawn[node][slot] > tree.shared[node][slot] for node in path) for slot in slots)

    def _open(self, record: JobRecord, least: int) -> tuple[int, ...]:
        job, model = record.job, self._model(record)
        assert job.elastic is not None
        found = []
        for width in (width for width in job.elastic.widths if width >= least):
            if width > self._width(record) and not self._fits(record, self._at(record, width), width, model):
                break
            found.append(width)
        return tuple(found)

    def _width(self, record: JobRecord) -> int:
        return width_of(record.job, self._placements(record))

    def _placements(self, record: JobRecord) -> list[Placement]:
        return [grant.placement for grant in self._world.grants[record.job.id]]

    def _model(self, record: JobRecord) -> str:
        """The model of the cards it has; "" where they are of several, or there are none."""
        return _model_of(_models(self._world, self._placements(record)))

    def _at(self, record: JobRecord, width: int) -> tuple[Asked, ...]:
        """What it would be charged for at `width`, on cards of the model it has."""
        members = record.job.sized(width).members
        return ask_of(members, (_models(self._world, self._placements(record))[0],) * len(members))

    def _shift(self, record: JobRecord, asked: tuple[Asked, ...], width: int, model: str) -> None:
        """It is charged for `asked`, and runs at `width`, instead of what it has, if anything."""
        if self._standing is not None:
            leaf = self._standing.leaf(record.job.queue)
            self._standing.book.remove(leaf, self._charge(record.asked))
            self._standing.book.add(leaf, self._charge(asked))
        if self._budgets is not None and asked != record.asked:
            self._budgets.widen(record, width, model, _held(record))
        self._spotting.hold(record.job, _milli_more(record, width))

    def _fits(self, record: JobRecord, asked: tuple[Asked, ...], width: int, model: str) -> bool:
        """Whether a running job may have what `asked` is more than what it is charged for."""
        if self._budgets is not None and not self._budgets.may_widen(record, width, model, _held(record)):
            return False
        if not self._spotting.has_room(record.job, _milli_more(record, width)):
            return False
        if self._standing is None:
            return True
        before = dict(self._charge(record.asked))
        more = ((slot, amount - before.get(slot, 0)) for slot, amount in self._charge(asked))
        charge = tuple((slot, amount) for slot, amount in more if amount > 0)
        return fits(self._standing.book, self._standing.leaf(record.job.queue), charge)

    def _charge(self, asked: tuple[Asked, ...]) -> Charge:
        assert self._standing is not None
        tree, rates = self._standing.tree, self._standing.settings.rates
        return charge_of(tree, amounts_of(asked, tree, rates, self._standing.names))


def _held(record: JobRecord) -> JobRecord | None:
    """The job of `record` at the width it is charged for; None: it holds nothing."""
    return as_charged(record, record.asked) if record.asked else None


def _milli_more(record: JobRecord, width: int) -> int:
    """Milli-cards that it holds more at `width` than it does."""
    held = _held(record)
    return asked_milli(at_width(record, width).job) - (0 if held is None else asked_milli(held.job))


def asked_for(world: Frozen, job: Job, placements: Sequence[Placement]) -> tuple[Asked, ...]:
    """What `job` is charged for on `placements`."""
    return ask_of(as_granted(job, placements).members, _models(world, placements))


def _models(world: Frozen, placements: Sequence[Placement]) -> tuple[CardModel | None, ...]:
    """The model of the cards of each; None where there are none."""
    found = []
    for placement in placements:
        node = world.nodes[placement.node]
        cards = world.kinds[node.kind].cards
        found.append(cards[node.index_of[placement.cards[0]]] if placement.cards else None)
    return tuple(found)


def _model_of(models: Sequence[CardModel | None]) -> str:
    """The name of the only one; "" where there are others, or none."""
    names = {"" if model is None else model.name for model in models}
    return names.pop() if len(names) == 1 else ""


def _up_to(job: Job, widest: int) -> Job:
    """`job` at `widest` or less."""
    assert job.elastic is not None
    count = job.elastic.widths.index(widest) + 1
    if count == len(job.elastic.widths):
        return job
    asked = len(job.members) if len(job.members) > 1 else job.members[0].cards
    elastic = replace(
        job.elastic, widths=job.elastic.widths[:count], speeds_milli=job.elastic.speeds_milli[:count]
    )
    return replace(job.sized(min(asked, widest)), elastic=elastic)
