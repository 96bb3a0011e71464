"""What blocks the widest waiting request: cards that are free but scattered, too few of them, or its turn."""

from __future__ import annotations

from collections.abc import Iterable

from aliquot.core.inventory import Profile
from aliquot.core.report.gauges import Sums
from aliquot.core.report.machines import Machines


class Piece:
    """So many whole cards of one kind on one node; one object for all that are equal.

    It is blocked while it is the widest that waits and free cards suffice, but on too many nodes.
    """

    __slots__ = ("blocked_ms", "cards", "free_ms", "profile")

    def __init__(self, cards: int, profile: Profile) -> None:
        self.cards, self.profile = cards, profile
        self.blocked_ms: int | None = None  # blocked since
        self.free_ms = -1  # no more blocked since, having been so for some time

    def unblock(self, at: int) -> None:
        """It is blocked no more; an instant does not count."""
        if self.blocked_ms is not None and at > self.blocked_ms:
            self.free_ms = at
        self.blocked_ms = None

    def blocks(self, since: int, at: int) -> bool:
        """Whether it was blocked for some time between `since` and `at`, which is now."""
        return self.free_ms > since or (self.blocked_ms is not None and at > max(since, self.blocked_ms))


class Scatter:
    """Follows the pieces that wait and the cards that are free. Set `stale` where free cards changed."""

    def __init__(self, machines: Machines, sums: Sums) -> None:
        self.stale = False
        self._machines, self._sums = machines, sums
        self._waiting: dict[Piece, int] = {}  # how many jobs wait for it
        self._order: list[Piece] | None = None  # those that wait, widest first
        self._possible: dict[Piece, bool] = {}  # whether some node could ever hold it
        self._kinds = 0  # of nodes, when that was looked at
        self._waited = False  # whether a wide member waited when that was last looked at
        self._blocked: Piece | None = None

    def count(self, pieces: Iterable[Piece], change: int) -> None:
        """A job that needs `pieces` waits (1), or waits no more (-1)."""
        for piece in pieces:
            before = self._waiting.get(piece, 0)
            if before + change:
                self._waiting[piece] = before + change
            else:
                del self._waiting[piece]
            if not before or not before + change:
                self._order = None
                self.stale = True

    def settle(self, at: int) -> None:
        """After free cards or waiting members changed: what blocks the widest of them from `at` on."""
        if not self.stale or not (self._waiting or self._waited):
            return
        self.stale = False
        sums = self._sums
        piece, width, free, fits = self._widest()
        scattered = width > 0 and not fits and free >= width
        sums.blocked_cards.put(free if scattered else 0, at)
        sums.scattered.put(int(scattered), at)
        sums.crowded.put(int(width > 0 and not fits and free < width), at)
        sums.held_back.put(int(width > 0 and fits), at)
        self._waited = width > 0
        self._block(piece if scattered else None, at)

    def _block(self, piece: Piece | None, at: int) -> None:
        if piece is self._blocked:
            return
        if self._blocked is not None:
            self._blocked.unblock(at)
        if piece is not None:
            piece.blocked_ms = at
        self._blocked = piece

    def _widest(self) -> tuple[Piece | None, int, int, bool]:
        """The widest waiting member that some node could ever hold: it, its cards, the free ones, fits."""
        if self._order is None:
            self._order = sorted(self._waiting, key=lambda piece: -piece.cards)
        best: tuple[Piece | None, int, int, bool] = (None, 0, 0, False)
        for piece in self._order:
            if piece.cards < best[1]:
                break
            if self._could_fit(piece):
                free, fits = self._machines.free_for(piece.cards, piece.profile)
                if best[0] is None or (not fits and free > best[2]):
                    best = (piece, piece.cards, free, fits)
        return best

    def _could_fit(self, piece: Piece) -> bool:
        machines = self._machines
        if self._kinds != machines.kinds:
            self._kinds = machines.kinds
            self._possible.clear()
        known = self._possible.get(piece)
        if known is None:
            known = self._possible[piece] = machines.ever_fits(piece.cards, piece.profile)
        return known
