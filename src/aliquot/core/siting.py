"""A desk to plan at: a draft of the world, the scorers that look at it, and seats taken on it."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from aliquot.core.columns import MAX_EDGES
from aliquot.core.domains import Split
from aliquot.core.draft import Draft, Shut
from aliquot.core.grants import NOTHING, Placement, Seat, bits
from aliquot.core.jobs import Request
from aliquot.core.ledger import Handles
from aliquot.core.linking import Need
from aliquot.core.memo import Memo, need_of
from aliquot.core.numa import split_host
from aliquot.core.placement.cells import I32, I64
from aliquot.core.placement.placer import Choice, Placer
from aliquot.core.placement.shapes import Shape
from aliquot.core.reasons import can_never, find_reasons
from aliquot.core.records import Frozen
from aliquot.core.settings import Settings
from aliquot.core.slices import Vector
from aliquot.core.spreading import Kin, cards_held, copies_standing, fewest_rows
from aliquot.core.steps import Reason, RunnerUp, Term
from aliquot.core.units import FULL
from aliquot.core.wishes import Level


class Seated(NamedTuple):
    """A seat taken on the draft, with the score that chose it."""

    seat: Seat
    score: float
    terms: tuple[Term, ...]
    runner_up: RunnerUp | None = None


class Mark(NamedTuple):
    """A point to go back to."""

    columns: Handles
    refused: frozenset[Hashable]
    written: int  # rows until then
    state: int
    copies: tuple[tuple[str, Seat], ...]


class _Series(NamedTuple):
    """Places for members alike, one after the other; nothing is booked."""

    option: Request
    shape: Shape
    choices: list[Choice]


class Desk:
    """One plan's workplace. What it books is on the draft only."""

    def __init__(self, world: Frozen, settings: Settings, memo: Memo) -> None:
        self.world, self.settings, self.memo = world, settings, memo
        self.draft = Draft(world)
        self._placer, self._chooser = memo.prepare(world, settings)
        self._placer.sync(self.draft)
        self._refused: set[Hashable] = set()
        self._copies: tuple[tuple[str, Seat], ...] = ()  # seated on this draft: what each is a copy of
        self._standing: dict[str, tuple[Seat, ...]] | None = None
        self._closed: Mapping[int, Shut] = {}
        self._written: list[int] = []  # rows written on the draft, in order
        self._shown = 0  # how many of them the scorers have been shown
        self.state = 0  # a number of its own for every state of the draft; back at a mark it is the mark's
        self._states = 0

    @property
    def placer(self) -> Placer:
        """The scorers, who have seen all that is on the draft: they are shown it when they are asked."""
        if self._shown < len(self._written):
            self._placer.refresh(self.draft, self._written[self._shown :])
            self._shown = len(self._written)
        return self._placer

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

    def seat_within(self, request: Request, rows: I32) -> Seated | None:
        """As `seat`, on one of `rows`."""
        best = self._best(request, rows)
        if best is None:
            return None
        option, shape, choice = best
        seat = self.seat_at(option, shape, choice.row, choice.mask)
        self.book(seat)
        return Seated(seat, choice.loss, terms_of(choice))

    def seat_series(self, request: Request, rows: I32, most: int) -> list[Seated] | None:
        """As `seat_within`, `most` times or until nothing fits; None: it has to be asked one by one."""
        series = self._choose_series(request, rows, most)
        return None if series is None else self._book_series(series)

    def seat_all_series(self, asked: Sequence[tuple[Request, I32, int]]) -> list[list[Seated]] | None:
        """Of each (request, rows, how many) a series; no row may be in two of them. None as `seat_series`.

        None are taken, and nothing is booked, where one of them does not fit whole.
        """
        found = []
        for request, rows, many in asked:
            series = self._choose_series(request, rows, many)
            if series is None:
                return None
            if len(series.choices) < many:
                return []
            found.append(series)
        return [self._book_series(series) for series in found]

    def _choose_series(self, request: Request, rows: I32, most: int) -> _Series | None:
        options = self.memo.options(request)
        if len(options) > 1:
            return None
        choices = self.placer.choose_series(options[0][1], rows, most)
        return None if choices is None else _Series(*options[0], choices)

    def _book_series(self, series: _Series) -> list[Seated]:
        option, shape, choices = series
        seated = []
        for choice in choices:
            seat = self.seat_at(option, shape, choice.row, choice.mask)
            self.draft.book(seat)
            seated.append(Seated(seat, choice.loss, terms_of(choice)))
        if seated:
            self.show()
        return seated

    def split(self, level: Level) -> Split:
        """The rows by domain of `level`."""
        return self.memo.domains.of(self.world).split(level)

    def fills(self, request: Request) -> I64:
        """[rows and more] how many members that ask `request` each row could take now, or a bound from above.

        Not to be written; of another number of cards, or of cards of several models, the sum or the most.
        """
        options = self.memo.options(request)
        first = self.placer.fills(options[0][1])
        if len(options) == 1:
            return first
        total, most = first, first
        for (before, last), (option, shape) in itertools.pairwise(options):
            fresh = before is not option
            if fresh:
                total = np.zeros_like(first)
            # a kind whose cards are all alike has the same part in every shape of an option
            pairs = zip(shape.eligible, last.eligible, strict=True)
            other = np.array([*(fresh or mine != theirs for mine, theirs in pairs), False])
            total = total + np.where(other[self.placer.board.cells.kind], self.placer.fills(shape), 0)
            most = np.maximum(most, total)
        return most

    def is_refused(self, asked: Hashable) -> bool:
        """Whether `asked` was refused in this plan, and no more room has come since."""
        return bool(self._refused) and asked in self._refused

    def refuse(self, asked: Hashable) -> None:
        """There is no room for `asked`, nor will there be until something is given back."""
        self._refused.add(asked)

    def seat_apart(self, request: Request, kin: Kin, *, explained: bool = False) -> Seated | None:
        """As `seat`, on the rack, then the node, then the card that holds fewest of `kin`."""
        if request in self._refused:
            return None
        fits, racks = self._rows_for(request), self.split(Level.RACK)
        best = self._best(request, fewest_rows(racks, fits, kin)) if fits.shape[0] else None
        if best is None:
            self._refused.add(request)
            return None
        option, shape, choice = best
        runner_up = None
        if explained:
            others = fewest_rows(racks, fits[fits != choice.row], kin)
            runner_up = self._named(self.placer.choose_among(shape, others))
        choice = self._on_card_of_fewest(shape, choice, kin)
        seat = self.seat_at(option, shape, choice.row, choice.mask)
        self.book(seat)
        return Seated(seat, choice.loss, terms_of(choice), runner_up)

    def copies_of(self, what: str) -> tuple[Seat, ...]:
        """Where copies of `what` are that are to be kept apart, those seated in this plan too."""
        if self._standing is None:
            self._standing = copies_standing(self.world)
        return (*self._standing.get(what, ()), *(seat for of, seat in self._copies if of == what))

    def note_copies(self, what: str, seats: Iterable[Seat]) -> None:
        """`seats` were taken for a copy of `what`."""
        self._copies += tuple((what, seat) for seat in seats)

    def book(self, seat: Seat) -> None:
        """Take `seat` on the draft."""
        self.draft.book(seat)
        self.show()

    def release_all(self, seats: Sequence[Seat]) -> None:
        """Give `seats` back on the draft, copies of nothing, at one go."""
        for seat in seats:
            self.draft.release(seat)
        if seats:
            self.catch_up()

    def release(self, seat: Seat) -> None:
        """Give `seat` back on the draft."""
        self.draft.release(seat)
        self._copies = tuple(each for each in self._copies if each[1] is not seat)
        self.show()
        self._refused.clear()

    def shut(self, rows: Mapping[int, Shut]) -> None:
        """Close what `rows` says, and nothing else: what was closed before is open. Not between two marks."""
        if rows is self._closed:
            return
        opened = [row for row, what in self._closed.items() if rows.get(row) != what]
        for row in opened:
            self.draft.reopen(row)
        for row, what in rows.items():
            if self._closed.get(row) != what:
                self.draft.shut(row, what)
        if opened:
            self._refused.clear()
        self._closed = rows
        self.show()

    def catch_up(self) -> None:
        """Know what was written on the draft itself; what was refused may fit now."""
        self.show()
        self._refused.clear()

    def show(self) -> None:
        """The draft was written on: the scorers see it when they are asked the next time."""
        self._written += self.draft.take_touched()
        self._states += 1
        self.state = self._states

    def mark(self) -> Mark:
        """A point to go back to."""
        return Mark(self.draft.mark(), frozenset(self._refused), len(self._written), self.state, self._copies)

    def rollback(self, mark: Mark) -> None:
        """Back to `mark`; what was refused since then was refused for room that is there again."""
        self.draft.rollback(mark.columns)
        self._refused, self.state, self._copies = set(mark.refused), mark.state, mark.copies
        shown = dict.fromkeys(self._written[mark.written : self._shown])
        del self._written[mark.written :]
        if shown:
            self._placer.refresh(self.draft, shown)
            self._shown = mark.written

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
        row, mask, vector, whole, cpu, host, numa, edges = seat
        node = self.world.nodes[self.world.node_at[row]].node
        cards = tuple([node.cards[at].uuid for at in bits(mask)])
        return Placement(node.id, cards, vector, whole, cpu, host, numa, edges)

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
            vector = vector_of((FULL, usable, FULL) if shape.whole else shape.ask[at])
            edges = self._chooser.edges(at, mask, need_of(request)) if request.traffic_mbs else ()
        numa = split_host(chunk, place, kind, mask, request.cpu_milli, request.host_mib)
        return Seat(row, mask, vector, shape.whole, request.cpu_milli, request.host_mib, numa, edges)

    def _rows_for(self, request: Request) -> I32:
        """The rows, rising, where the first option of `request` that fits at all does; empty: none does."""
        for _, shapes in itertools.groupby(self.memo.options(request), lambda pair: pair[0]):
            rows = {row for _, shape in shapes for row in self.placer.feasible_rows(shape)}
            if rows:
                return np.array(sorted(rows), np.int32)
        return np.zeros(0, np.int32)

    def _on_card_of_fewest(self, shape: Shape, choice: Choice, kin: Kin) -> Choice:
        """`choice`, but of one shared card on the one that holds fewest of `kin`; of equals the best."""
        own, copies = (cards_held(choice.row, seats) for seats in kin)
        if shape.cards != 1 or shape.whole or not (own or copies):
            return choice
        cells = self.placer.board.cells
        kind, traffic = int(cells.kind[choice.row]), cells.traffic[choice.row].tolist()
        tries = []
        for card in bits(shape.eligible[kind]):
            at = self.placer.choice_at(shape, choice.row, card)
            if at is not None and self._chooser.choose(kind, 1 << card, 1, traffic, shape.need)[0]:
                tries.append(at)
        return min(tries, key=lambda at: (own[at.card], copies[at.card], at.loss), default=choice)

    def _best(self, request: Request, rows: I32 | None = None) -> tuple[Request, Shape, Choice] | None:
        """The first option that fits, on `rows` where given; of its shapes the one of least loss."""
        found: tuple[Request, Shape, Choice] | None = None
        for option, shape in self.memo.options(request):
            if found is not None and found[0] is not option:
                break
            choice = self.placer.choose(shape) if rows is None else self.placer.choose_among(shape, rows)
            if choice is not None and (found is None or choice.loss < found[2].loss - 1e-9):
                found = (option, shape, choice)
        return found

    def _runner_up(self, shape: Shape) -> RunnerUp | None:
        best = self.placer.explain(shape, 2)
        return self._named(best[1]) if len(best) == 2 else None

    def _named(self, choice: Choice | None) -> RunnerUp | None:
        return choice and RunnerUp(self.world.node_at[choice.row], choice.loss, terms_of(choice))


def terms_of(choice: Choice) -> tuple[Term, ...]:
    """The terms of a choice as a step keeps them."""
    return tuple([Term(name, value) for name, value in choice.terms])


@lru_cache(maxsize=1 << 12)
def vector_of(ask: tuple[int, int, int]) -> Vector:
    """`ask` as a vector: one for all who ask the same."""
    return Vector(*ask)
