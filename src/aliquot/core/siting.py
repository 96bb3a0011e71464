"""A desk to plan at: a draft of the world, the scorers that look at it, and seats taken on it."""

from __future__ import annotations

from typing import NamedTuple

from aliquot.core.columns import MAX_EDGES
from aliquot.core.draft import Draft
from aliquot.core.grants import NOTHING, Placement, Seat, bits
from aliquot.core.jobs import Request
from aliquot.core.ledger import Handles
from aliquot.core.linking import Need
from aliquot.core.memo import Memo, need_of
from aliquot.core.numa import split_host
from aliquot.core.placement.placer import Choice
from aliquot.core.placement.shapes import Shape
from aliquot.core.reasons import can_never, find_reasons
from aliquot.core.records import Frozen
from aliquot.core.settings import Settings
from aliquot.core.slices import Vector
from aliquot.core.steps import Reason, RunnerUp, Term
from aliquot.core.units import FULL


class Seated(NamedTuple):
    """A seat taken on the draft, with the score that chose it."""

    seat: Seat
    score: float
    terms: tuple[Term, ...]
    runner_up: RunnerUp | None = None


class Mark(NamedTuple):
    """A point to go back to."""

    columns: Handles
    refused: frozenset[Request]
    shown: int


class Desk:
    """One plan's workplace. What it books is on the draft only."""

    def __init__(self, world: Frozen, settings: Settings, memo: Memo) -> None:
        self.world, self.settings, self.memo = world, settings, memo
        self.draft = Draft(world)
        self.placer, self._chooser = memo.prepare(world, settings)
        self.placer.sync(self.draft)
        self._refused: set[Request] = set()
        self._shown: list[int] = []  # rows that the scorers were shown, in order

    def seat(self, request: Request, *, explained: bool = False) -> Seated | None:
        """Take the best place for `request`, or None where nothing that is free fits.

        Within a plan room only shrinks (but for moves, which forget this), so what was refused stays so.
        """
        if request in self._refused:
            return None
        best = self._best(request)
        if best is None:
            self._refused.add(request)
            return None
        option, shape, choice = best
        runner_up = self._runner_up(shape) if explained else None
        seat = self.seat_at(option, shape, choice.row, choice.mask)
        self.book(seat)
        return Seated(seat, choice.loss, terms_of(choice), runner_up)

    def seat_apart(self, request: Request, rows: set[int], most: int) -> Seated | None:
        """As `seat`, but on a rack, else a node, that none of `rows` is on, if one of the best `most` is."""
        option, shape = self.memo.options(request)[0]
        best = self.placer.explain(shape, most)
        if not best:
            return None
        racks = {self._rack(row) for row in rows} - {""}
        choice = min(best, key=lambda choice: (choice.row in rows, self._rack(choice.row) in racks))
        seat = self.seat_at(option, shape, choice.row, choice.mask)
        self.book(seat)
        return Seated(seat, choice.loss, terms_of(choice))

    def seat_elsewhere(self, request: Request, barred: int) -> Seated | None:
        """As `seat`, on another row than `barred` and on none that is wholly idle."""
        option, shape = self.memo.options(request)[0]
        choice = self.placer.choose(shape, barred)
        if choice is None:
            return None
        chunk, place = self.draft.ledger.readable(choice.row)
        if int(chunk.idle[place]) == int(chunk.usable[place]):
            return None
        seat = self.seat_at(option, shape, choice.row, choice.mask)
        self.book(seat)
        return Seated(seat, choice.loss, terms_of(choice))

    def book(self, seat: Seat) -> None:
        """Take `seat` on the draft and show it to the scorers."""
        self.draft.book(seat)
        self._show()

    def release(self, seat: Seat) -> None:
        """Give `seat` back on the draft and show it to the scorers."""
        self.draft.release(seat)
        self._show()
        self._refused.clear()

    def mark(self) -> Mark:
        """A point to go back to."""
        return Mark(self.draft.mark(), frozenset(self._refused), len(self._shown))

    def rollback(self, mark: Mark) -> None:
        """Back to `mark`; what was refused since then was refused for room that is there again."""
        self.draft.rollback(mark.columns)
        self._refused = set(mark.refused)
        rows = list(dict.fromkeys(self._shown[mark.shown :]))
        del self._shown[mark.shown :]
        self.placer.refresh(self.draft, rows)

    def remember(self, mark: Mark) -> None:
        """What was refused at `mark` still is: since then no more than was given back was taken."""
        self._refused |= mark.refused

    def choose_cards(self, kind: int, free: int, count: int, need: Need) -> int:
        """Which `count` of the cards `free` of a node of `kind` a request gets; 0 where no set will do."""
        return self._chooser.choose(kind, free, count, (0,) * MAX_EDGES, need)[0]

    def capacity_milli(self) -> int:
        """All cards of all nodes that have ever joined, in milli-cards."""
        return FULL * sum(len(record.node.cards) for record in self.world.nodes.values())

    def reasons(self, request: Request) -> tuple[Reason, ...]:
        """Why `request` fits nowhere on the draft as it is."""
        option, shape = self.memo.options(request)[-1]
        return find_reasons(
            option, shape, self.draft.chunks, self.world.rows, self.world.kinds, self.world.strained
        )

    def never(self, request: Request) -> bool:
        """Whether no node could hold `request` even with nothing else on it."""
        kinds = self.world.kinds
        return all(can_never(option, shape, kinds) for option, shape in self.memo.options(request))

    def cards_for(self, request: Request) -> int:
        """Cards of the site, free or not, that may serve `request`."""
        eligible = self.memo.options(request)[0][1].eligible
        return sum(eligible[record.kind].bit_count() for record in self.world.nodes.values())

    def placement(self, seat: Seat) -> Placement:
        """`seat` in identities."""
        node = self.world.nodes[self.world.node_at[seat.row]].node
        cards = tuple(node.cards[at].uuid for at in bits(seat.mask))
        return Placement(node.id, cards, seat.vector, seat.whole, seat.cpu, seat.host, seat.numa, seat.edges)

    def seat_at(self, request: Request, shape: Shape, row: int, mask: int) -> Seat:
        """The seat of `request` on cards `mask` of `row`."""
        chunk, place = self.draft.ledger.readable(row)
        at = int(chunk.kind[place])
        kind = self.world.kinds[at]
        vector = NOTHING
        edges: tuple[tuple[int, int], ...] = ()
        if mask:
            # a whole card is booked entirely, whatever of it was asked for
            usable = kind.cards[bits(mask)[0]].usable_mib if shape.whole else 0
            vector = Vector(FULL, usable, FULL) if shape.whole else Vector(*shape.ask[at])
            edges = self._chooser.edges(at, mask, need_of(request))
        numa = split_host(chunk, place, kind, mask, request.cpu_milli, request.host_mib)
        return Seat(row, mask, vector, shape.whole, request.cpu_milli, request.host_mib, numa, edges)

    def _rack(self, row: int) -> str:
        return self.world.nodes[self.world.node_at[row]].node.rack

    def _show(self) -> None:
        """Show the scorers the rows that were just written."""
        rows = self.draft.take_touched()
        self.placer.refresh(self.draft, rows)
        self._shown += rows

    def _best(self, request: Request) -> tuple[Request, Shape, Choice] | None:
        """The first option that fits; among the shapes of one option the one of least loss."""
        found: tuple[Request, Shape, Choice] | None = None
        for option, shape in self.memo.options(request):
            if found is not None and found[0] is not option:
                break
            choice = self.placer.choose(shape)
            if choice is not None and (found is None or choice.loss < found[2].loss - 1e-9):
                found = (option, shape, choice)
        return found

    def _runner_up(self, shape: Shape) -> RunnerUp | None:
        best = self.placer.explain(shape, 2)
        if len(best) < 2:
            return None
        second = best[1]
        return RunnerUp(self.world.node_at[second.row], second.loss, terms_of(second))


def terms_of(choice: Choice) -> tuple[Term, ...]:
    """The terms of a choice as a step keeps them."""
    return tuple(Term(name, value) for name, value in choice.terms)
