"""An attempt under way in virtual time: how far it is, at which speed, and when it will be over.

Its speed may change while it runs, as others come to its cards and go. Work is counted in thousandths of a
millisecond, so that any number of changes leaves the end where the speeds put it, to the millisecond.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from aliquot.core.events import Outcome
from aliquot.core.grants import Placement
from aliquot.core.ids import CardId, JobId
from aliquot.core.units import FULL

Cards = frozenset[CardId]


class Running(msgspec.Struct, frozen=True):
    """An attempt under way: until when, at which speed, and what was left to do when that was reckoned.

    `rest_milli`: thousandths of a ms of work beside `work_left_ms`. Where the speed has changed, `begun_ms`
    is when it began to make progress, and `saved_milli` the work that was left at its last checkpoint before
    the change, in thousandths of a ms.
    """

    attempt: int
    placements: tuple[Placement, ...]
    since_ms: int
    work_left_ms: int | None
    speed_milli: int
    ends_ms: int | None
    outcome: Outcome = Outcome.SUCCEEDED  # at the end
    rest_milli: int = 0
    begun_ms: int | None = None
    saved_milli: int | None = None

    @property
    def cards(self) -> Cards:
        """All it is on."""
        return frozenset(card for place in self.placements for card in place.cards)


def at_speed(running: Running, speed_milli: int, now: int, checkpoint_ms: int | None) -> Running:
    """The same from `now` on at another speed; it makes a checkpoint each `checkpoint_ms` of running."""
    if running.work_left_ms is None:
        return replace(running, since_ms=max(now, running.since_ms), speed_milli=speed_milli)
    since = max(now, running.since_ms)  # it may still be getting back to where it was
    left = left_milli(running, since)
    ends = since + -(-left // speed_milli)
    begun = running.since_ms if running.begun_ms is None else running.begun_ms
    return replace(
        running,
        since_ms=since,
        work_left_ms=left // FULL,
        rest_milli=left % FULL,
        speed_milli=speed_milli,
        ends_ms=ends,
        begun_ms=begun,
        saved_milli=saved_milli(running, since, checkpoint_ms),
    )


def left_milli(running: Running, at: int) -> int:
    """Work that is left at `at`, in thousandths of a ms, of an attempt that ends some time."""
    assert running.work_left_ms is not None
    ran = max(0, at - running.since_ms)
    return max(0, running.work_left_ms * FULL + running.rest_milli - ran * running.speed_milli)


def saved_milli(running: Running, at: int, checkpoint_ms: int | None) -> int:
    """What is left, in thousandths of a ms, for one that goes on from its last checkpoint before `at`."""
    assert running.work_left_ms is not None
    begun = running.since_ms if running.begun_ms is None else running.begun_ms
    first = (
        running.work_left_ms * FULL + running.rest_milli
        if running.saved_milli is None
        else running.saved_milli
    )
    if not checkpoint_ms or at <= begun:
        return first
    last = begun + (at - begun) // checkpoint_ms * checkpoint_ms
    return first if last < running.since_ms or last == begun else left_milli(running, last)


class Abreast:
    """Who runs on which cards, of those that may share them."""

    def __init__(self) -> None:
        self._on: dict[Cards, dict[JobId, None]] = {}

    def enter(self, job: JobId, cards: Cards) -> Sequence[JobId]:
        """`job` runs on `cards`; all who do now."""
        self._on.setdefault(cards, {})[job] = None
        return tuple(self._on[cards])

    def leave(self, job: JobId, cards: Cards) -> Sequence[JobId]:
        """It does not any more; who still does."""
        there = self._on.get(cards, {})
        there.pop(job, None)
        if not there:
            self._on.pop(cards, None)
        return tuple(there)
