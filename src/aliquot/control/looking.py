"""Foresight beside a live loop: a thread that looks ahead now and then, and never holds the loop up.

The loop hands it a picture of the world, which costs a few handles or, where the plan itself is to be played
forward, one copy. It works on that for a bounded time; who is not reached by then is unknown. What it has
found replaces what it had found before, and nothing is changed in place.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from aliquot.control.foresight import Foresight, InLine, busy_share, find_places
from aliquot.control.predicting import Budget, Prediction, is_countable, predict_from, twin_of
from aliquot.core.events import Event
from aliquot.core.ids import JobId
from aliquot.core.image import WorldImage, image_of
from aliquot.core.jobs import Job
from aliquot.core.memo import Memo
from aliquot.core.promise import Crowding, Promise, crowding_of
from aliquot.core.queueing.outlook import Expected, Unsaid
from aliquot.core.records import Frozen
from aliquot.core.settings import Settings
from aliquot.core.world import World

LOOK_S: Final = 0.2  # of work on each part of a look; what is not found by then is unknown
APART_MS: Final = 2000  # between two looks, so that they cost little however much happens
ASKED_MS: Final = 100  # the same where somebody waits for an answer
REST: Final = 40  # times as long as the last look took: where thousands wait, looks are rarer
ASKED_REST: Final = 4
TURNS: Final = 500
LOADING_MS: Final = 200  # until it is asked again whether looking ahead is loaded
COUNTED: Final = 1000  # waiting jobs, the first in line; there is no time for those behind them
MOST: Final = 100  # waiting jobs, from which on there is no time for more than counts


class Seen(NamedTuple):
    """What a look at `at_ms` has found: of every waiting job its start and its place, bounds in danger."""

    at_ms: int = 0
    table: Mapping[JobId, Expected] = MappingProxyType({})
    promises: Mapping[JobId, Promise] = MappingProxyType({})
    places: Mapping[JobId, InLine] = MappingProxyType({})
    crowding: Crowding | None = None


class _View(NamedTuple):
    """A world between two turns. `image` is there where it may be played forward; `fresh` are newcomers."""

    frozen: Frozen
    image: WorldImage | None
    settings: Settings
    now: int
    fresh: tuple[JobId, ...]
    may_count: bool  # whether what counting needs is loaded

    def copy(self) -> World:
        """The same world, to play with."""
        assert self.image is not None, "it is counted or nobody waits"
        return twin_of(self.image, self.settings)


class Lookout:
    """Call `see` with what is recorded and `look` between turns. `seen` is what is known, from any thread.

    A mistake in looking ahead is kept in `failure`; jobs go on all the same. Before `start` a look is made at
    once, by its caller. `clock`: seconds of work done in the thread that asks. `is_ready`: whether what
    counting needs is loaded; asked once somebody waits. Until it says so, the plan is played forward, and who
    is too far for that, or one of too many, is not looked for. `on_look` is called after each. `counted`: so
    many of those who wait are looked at, where counts have to do. `foresight`: one that has learnt already.
    """

    def __init__(
        self,
        settings: Settings,
        world: World,
        clock: Callable[[], float] = time.thread_time,
        is_ready: Callable[[], bool] = lambda: True,
        on_look: Callable[[], None] = lambda: None,
        counted: int = COUNTED,
        foresight: Foresight | None = None,
    ) -> None:
        self.foresight = foresight or Foresight(settings)
        self.foresight.resume(world)
        self.seen = Seen()
        self.failure: Exception | None = None
        self._clock, self._is_ready, self._on_look = clock, is_ready, on_look
        self._counted = counted
        self._looked: int | None = None
        self._took_ms = 0
        self._is_asked = False
        self._settings = self._memo_for = settings
        self._memo = Memo()  # its own: the loop's changes meanwhile
        self._lock = threading.Lock()  # of what is learnt
        self._due = threading.Condition()
        self._view: _View | None = None
        self._is_busy = self._is_over = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Look in a thread of its own from now on."""
        self._thread = threading.Thread(target=self._run, name="aliquot-lookout", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Look no more; a look under way is not waited for."""
        with self._due:
            self._is_over = True
            self._due.notify()

    def see(self, events: Sequence[Event], world: World) -> None:
        """Learn from what has happened."""
        with self._lock:
            self.foresight.see(events, world)

    def experience(self) -> bytes:
        """All that was learnt, as it is kept; from any thread."""
        with self._lock:
            return self.foresight.experience()

    def go_by(self, settings: Settings) -> None:
        """Other settings from now on."""
        self._settings = settings
        with self._lock:
            self.foresight.settings, self.foresight.is_stale = settings, True

    def ask(self) -> None:
        """Somebody waits for the next look, which may then be sooner; from any thread."""
        self._is_asked = True

    def look(self, world: World, now: int) -> int | None:
        """Look again where something has happened; in how many ms to come back.

        None where all is known, and while a look is under way: `on_look` is called at its end.
        """
        if self._is_busy or not self.foresight.is_stale:
            return None
        apart = max(APART_MS, self._took_ms * REST)
        if self._is_asked:
            apart = max(ASKED_MS, self._took_ms * ASKED_REST)
        if self._looked is not None and 0 <= now - self._looked < apart:
            return apart - (now - self._looked)
        frozen = world.freeze()
        is_counted = len(frozen.pending) > MOST and is_countable(frozen)
        may_count = not frozen.pending or self._is_ready()
        if is_counted and not may_count:
            return LOADING_MS
        self._looked, self._is_asked = now, False
        with self._lock:
            fresh = self.foresight.take_fresh(world)
            self.foresight.is_stale = not may_count  # then there will be more to see
        image = None if is_counted or not frozen.pending else image_of(world)
        view = _View(frozen, image, self._settings, now, fresh, may_count)
        if self._thread is None:
            self._look_safely(view)
            return None
        with self._due:
            self._view, self._is_busy = view, True
            self._due.notify()
        return None

    # --- in the thread -----------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            with self._due:
                self._due.wait_for(lambda: self._view is not None or self._is_over)
                view, self._view = self._view, None
            if view is None or self._is_over:
                return
            self._look_safely(view)
            self._is_busy = False
            with contextlib.suppress(Exception):  # whoever listens is gone
                self._on_look()

    def _look_safely(self, view: _View) -> None:
        began = self._clock()
        try:
            self.seen = self._look(view)
        except Exception as error:  # what is expected is then unknown, which is no reason to stop serving
            self.failure, self.seen = error, Seen(view.now)
        self._took_ms = int((self._clock() - began) * 1000)

    def _look(self, view: _View) -> Seen:
        frozen, settings, now = view.frozen, view.settings, view.now
        if self._memo_for is not settings:
            self._memo, self._memo_for = Memo(), settings
        places = find_places(frozen, settings, now, self._memo)
        waiting = sorted((key[3] for key in frozen.pending), key=lambda job: _position(places, job))
        counted = self._counted if view.may_count else 0
        budget = Budget(TURNS, self._spent_from_now(), MOST, counted)
        with self._lock:
            futures = None if self.foresight.futures is None else self._lengths
        found = predict_from(frozen, view.copy, settings, now, waiting, budget, self._estimate, futures)
        table = self._table(waiting, found, now)
        said = {job: self.foresight.promise(frozen.jobs[job].job, now, table[job]) for job in waiting}
        promises = {job: promise for job, promise in said.items() if promise is not None}
        last = self.seen.crowding
        since = None if last is None else last.since_ms
        crowding = crowding_of(busy_share(frozen), since, now, tuple(promises.values()))
        self._begin(view.fresh, found, now)
        return Seen(now, table, promises, places, crowding)

    def _table(self, waiting: Sequence[JobId], found: Prediction, now: int) -> dict[JobId, Expected]:
        """First in line first; where there is no time for an interval, nothing is said."""
        is_spent = self._spent_from_now()
        is_over = False
        table = {}
        for job in waiting:
            guess = found.starts.get(job)
            if guess is not None and (is_over := is_over or is_spent()):
                table[job] = Expected(unsaid=Unsaid.TOO_FAR)
                continue
            with self._lock:
                table[job] = self.foresight.expected(guess, now, is_cut=found.is_cut)
        return table

    def _begin(self, fresh: Sequence[JobId], found: Prediction, now: int) -> None:
        """Learn later how right the guesses for newcomers were, as far as there is time to make them."""
        is_spent = self._spent_from_now()
        for job in fresh:
            if job in found.starts and not is_spent():
                with self._lock:
                    self.foresight.begin({job: found.starts[job]}, now)

    def _estimate(self, job: Job) -> int | None:
        with self._lock:
            return self.foresight.estimate(job)

    def _lengths(self, job: Job, ran_ms: int) -> tuple[int | None, ...]:
        with self._lock:
            return self.foresight.lengths(job, ran_ms)

    def _spent_from_now(self) -> Callable[[], bool]:
        end = self._clock() + LOOK_S
        return lambda: self._clock() >= end


def _position(places: Mapping[JobId, InLine], job: JobId) -> int:
    place = places.get(job)
    return len(places) if place is None else place.position
