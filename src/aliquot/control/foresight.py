"""What a loop's watcher knows of the future: expected starts, how right they were, and what that promises.

It sees every event, learns how long jobs run and how much longer than guessed they waited, and after a turn
guesses for those who were submitted in it and still wait. It changes nothing: without it every run is the
same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Final, NamedTuple
from zlib import crc32

import numpy as np

from aliquot.control.experience import (
    Experience,
    Guessed,
    Under,
    decode_experience,
    decode_guesses,
    encode_experience,
    encode_guesses,
)
from aliquot.control.futures import Futures
from aliquot.control.predicting import Budget, Guess, predict
from aliquot.core.events import Ended, Event, Evicting, Granted, JobCancelled, JobSubmitted, Outcome
from aliquot.core.ids import JobId
from aliquot.core.jobs import Bound, Job
from aliquot.core.memo import Memo
from aliquot.core.promise import Promise, least_speed, promise_of
from aliquot.core.queueing.neighbours import Like, Neighbours
from aliquot.core.queueing.outlook import (
    Expected,
    Interval,
    Outlook,
    PredictedStart,
    Sight,
    Unsaid,
    Verified,
)
from aliquot.core.queueing.truth import Truth
from aliquot.core.records import Frozen
from aliquot.core.settings import Settings
from aliquot.core.turning import line_up
from aliquot.core.units import FULL
from aliquot.core.world import World

LEARNT: Final = 20_000
"""Turns that an explanation may spend on guesses for earlier jobs; then it goes on with what it knows."""

QUICK: Final = Budget(most=32, most_even=0)
"""For the many guesses of a long run: from this many waiting jobs on, counts will do where they can."""

FUTURES: Final = 4
"""Where estimates are wrong, so many ways in which what runs and waits may end are looked at."""

BLIND_FUTURES: Final = 8
"""The same where some have no estimate."""

OWN: Final = 0.3
"""Of the part of its neighbours that a job outruns so much is drawn for it alone, the rest for its kind."""

_SPREAD: Final = 2654435761

MakeBudget = Callable[[], Budget]


class InLine(NamedTuple):
    """Places count from 1: among all who wait, and among those of the same queue."""

    position: int
    waiting: int
    queue_position: int
    queue_waiting: int


class Foresight:
    """Watches one loop. Call `look` after every turn; ask `expect` between turns.

    `budget` is for each look, `asked` for each answer of `expect` (None: the same). `allowance`: turns that
    looks may take in all (None: no limit); then newcomers are not guessed for any more. `note` is given the
    guesses that are said of newcomers, for `hear` after a restart.
    """

    def __init__(
        self,
        settings: Settings,
        budget: MakeBudget = lambda: QUICK,
        *,
        asked: MakeBudget | None = None,
        allowance: int | None = None,
        note: Callable[[bytes], object] = lambda guesses: None,
    ) -> None:
        self.settings = settings
        self.verified = Verified()
        self.is_stale = False
        self._budget, self._asked = budget, budget if asked is None else asked
        self._allowance, self._note = allowance, note
        self._outlook = Outlook()
        self._fresh: dict[JobId, None] = {}
        self._looked_for: dict[JobId, int | None] = {}  # by a look under way; when they started meanwhile
        self._said: dict[JobId, tuple[Interval | None, int]] = {}
        self._truth, self._neighbours = Truth(), Neighbours()
        self._now = 0
        self._is_taught = False  # it has begun with what is on record
        self._is_blind = False  # some job came without a word
        self._runs: dict[JobId, Under] = {}

    def resume(self, world: World) -> None:
        """Go on from `world`, the newest: who waits in it and was not guessed for is so at the next look."""
        if not self._is_taught:
            self._begin_with(world)
        waiting = [key[3] for key in world.freeze().pending]
        for job in self._said.keys() - set(waiting):
            del self._said[job]
            self._outlook.forget(job)
        self.is_stale = True
        self._fresh = dict.fromkeys(job for job in waiting if job not in self._said)
        self._is_blind |= any(record.job.estimate_ms is None for record in world.jobs.values())

    def recall(self, experience: bytes | None, world: World) -> bool:
        """Know what was kept with `world`; None: nothing was. False where it cannot be read."""
        known = None if experience is None else decode_experience(experience)
        if known is None:
            self._begin_with(world)
            return experience is None
        self._is_taught = True
        self._truth.recall(known.truth)
        self._neighbours.recall(known.neighbours)
        self._outlook.recall(known.outlook)
        self.verified.recall(known.verified)
        self._said = {job: (interval, since) for job, interval, since in known.said}
        self._runs, self._is_blind = dict(known.runs), known.is_blind
        return True

    def hear(self, guesses: bytes) -> None:
        """Guesses that were said before the next events."""
        for guess in decode_guesses(guesses):
            self._said[guess.job] = (guess.interval, guess.at)
            self._outlook.begin(guess.job, guess.sight, guess.at)
            run = self._runs.get(guess.job)
            if run is not None:
                self._met(guess.job, run.since)

    def experience(self) -> bytes:
        """All that is known, for `recall`."""
        said = [(job, interval, since) for job, (interval, since) in self._said.items()]
        known = Experience(
            self._truth.image(), self._neighbours.image(), self._outlook.image(), self.verified.image(),
            said, self._runs, self._is_blind,
        )  # fmt: skip  # in its order
        return encode_experience(known)

    def see(self, events: Sequence[Event], world: World) -> None:
        """Learn from what has happened."""
        self.is_stale = True
        for event in events:
            self._now = event.at
            match event:
                case JobSubmitted():
                    self._fresh[event.job.id] = None
                    self._is_blind |= event.job.estimate_ms is None
                case Granted():
                    self._granted(event, world)
                case JobCancelled():
                    self._forget(event.job)
                case Evicting():
                    self._stopped(event.job)
                case Ended():
                    self._ended(event)

    def look(self, world: World, now: int) -> None:
        """Guess for those who came in the last turn and still wait."""
        self._now = now
        fresh = self.take_fresh(world)
        if fresh and self._allowance != 0:
            budget = self._budget()
            if self._allowance is not None:
                budget = budget._replace(turns=min(budget.turns, self._allowance))
            found = predict(world, self.settings, now, fresh, budget, self.estimate, self.futures)
            if self._allowance is not None:
                self._allowance = max(0, self._allowance - found.turns)
            self.begin(found.starts, now)

    def take_fresh(self, world: World) -> tuple[JobId, ...]:
        """Those who came since this was last asked and still wait; what has happened by now is known then."""
        fresh = tuple(job for job in self._fresh if job in world.jobs and job not in world.grants)
        self._fresh.clear()
        self._looked_for = dict.fromkeys(fresh)
        self.is_stale = False
        return fresh

    def expect(self, world: World, now: int, jobs: Collection[JobId]) -> dict[JobId, Expected]:
        """When each of the waiting `jobs` is expected to start."""
        self._now = now
        found = predict(world, self.settings, now, jobs, self._asked(), self.estimate, self.futures)
        return {job: self.expected(found.starts.get(job), now, is_cut=found.is_cut) for job in jobs}

    def promise(self, job: Job, now: int, expected: Expected | None) -> Promise | None:
        """What can be said of the bounds of a waiting job; None where it has none."""
        return promise_of(job, now, expected, least_speed(job)) if job.bound != Bound() else None

    def kept(self, job: Job, started_ms: int) -> Promise | None:
        """The same of one that has started."""
        return self.promise(job, started_ms, Expected.exactly(started_ms))

    def report(self) -> PredictedStart:
        """How right the intervals were."""
        return self.verified.report()

    def estimate(self, job: Job) -> int | None:
        """The user's word, else what jobs like it needed in the middle, else its limit; None: unknown.

        Of a job that runs without a word: of those that ran at least as long as it has by now.
        """
        if job.estimate_ms is not None:
            return job.estimate_ms
        run = self._runs.get(job.id)
        ran = 0 if run is None else max(0, self._now - run.since)
        middle = self._neighbours.lengths(_like(job), job.seq, ran, (0.5,), self._now)[0]
        return _shorter(middle, job.limit_ms)

    @property
    def futures(self) -> Futures | None:
        """In which ways jobs may end; None where what is said of all of them was right so far."""
        return None if self._truth.is_exact and not self._is_blind else self.lengths

    def lengths(self, job: Job, ran_ms: int) -> tuple[int | None, ...]:
        """How long a job that has run for `ran_ms` may run in all, in each future; None: nobody knows.

        Which length falls into which future depends on the job alone, and all parts of the range are drawn.
        Neighbours mostly run long in the same futures, for they are alike.
        """
        count = BLIND_FUTURES if self._is_blind else FUTURES
        own = job.seq * _SPREAD % 2**32 / 2**32
        if job.estimate_ms is None:
            like = _like(job)
            first = crc32(f"{like.cards} {like.queue}".encode()) / 2**32 + OWN * own
            drawn = [(first + future / count) % 1 for future in range(count)]
            found = self._neighbours.lengths(like, job.seq, ran_ms, drawn, self._now)
            return tuple(_shorter(length, job.limit_ms) for length in found)
        told = job.estimate_ms
        if self._truth.is_exact:
            return (told if told > ran_ms else None,) * count
        milli = [(int(1000 * own) + 1000 * future // count) % 1000 for future in range(count)]
        return tuple(self._truth.length(told, ran_ms, one) for one in milli)

    def begin(self, guesses: dict[JobId, Guess], now: int) -> None:
        """These guesses were made at `now` for those last taken: what becomes of them is watched.

        Of who was given up meanwhile nothing is learnt; who has started did so after the guess.
        """
        said = [
            Guessed(job, sight, self._outlook.interval(sight, now), now)
            for job, guess in guesses.items()
            if job in self._looked_for
            for sight in [self._sight(guess, now)]
        ]
        for guess in said:
            self._said[guess.job] = (guess.interval, now)
            self._outlook.begin(guess.job, guess.sight, now)
            started = self._looked_for[guess.job]
            if started is not None:
                self._met(guess.job, started)
        if said:
            self._note(encode_guesses(said))

    def expected(self, guess: Guess | None, now: int, *, is_cut: bool) -> Expected:
        """A guess made at `now` as an interval; None: none was found, with `is_cut` for want of time."""
        if guess is None:
            return Expected(unsaid=Unsaid.TOO_FAR if is_cut else Unsaid.NO_END)
        seen = len(self._outlook)
        found = self._outlook.interval(self._sight(guess, now), now)
        if found is None:
            return Expected(guess.at_ms, guess.method, seen=seen)
        low, middle, high = (now + wait for wait in found)
        held, jobs = self.verified.held_milli, len(self.verified)
        return Expected(guess.at_ms, guess.method, None, low, middle, high, held, jobs, seen)

    def _sight(self, guess: Guess, now: int) -> Sight:
        """What is wrong with each word is a matter of its own and evens out over many jobs, so futures drawn
        from words are too much alike for their outer levels to mean anything.
        """
        seen = Sight(guess.at_ms - now, guess.length_ms, guess.cards, guess.waiting)
        if not self._is_blind or guess.low_ms is None or guess.high_ms is None:
            return seen
        return seen._replace(low_ms=guess.low_ms - now, high_ms=guess.high_ms - now)

    def _granted(self, event: Granted, world: World) -> None:
        self._fresh.pop(event.job, None)
        if event.job in self._looked_for:
            self._looked_for[event.job] = event.at
        self._met(event.job, event.at)
        record = world.jobs.get(event.job)
        if record is not None:
            self._began(record.job, event.at)

    def _met(self, job: JobId, at: int) -> None:
        """It started, so that it is known how right what was said of it was."""
        said = self._said.pop(job, None)
        if said is not None:
            interval, since = said
            self._outlook.end(job, at)
            self.verified.note(interval, at - since)

    def _begin_with(self, world: World) -> None:
        """All that is known is what runs."""
        self._is_taught = True
        for job in sorted(world.grants):
            record = world.jobs[job]
            self._began(record.job, record.granted_ms)

    def _began(self, job: Job, at: int) -> None:
        self._runs[job.id] = Under(job.estimate_ms, at)
        self._neighbours.start(job.id, _like(job), job.seq, at)

    def _stopped(self, job: JobId) -> None:
        self._runs.pop(job, None)
        self._neighbours.forget(job)

    def _ended(self, event: Ended) -> None:
        """Who failed or was lost says nothing of how long such jobs run; who succeeded does."""
        run = self._runs.get(event.job)
        if run is not None and event.outcome is Outcome.SUCCEEDED:
            self._neighbours.end(event.job, event.at)
            if run.told_ms is not None:
                self._truth.learn(run.told_ms, event.at - run.since)
        self._stopped(event.job)

    def _forget(self, job: JobId) -> None:
        self._fresh.pop(job, None)
        self._looked_for.pop(job, None)
        self._stopped(job)
        if self._said.pop(job, None) is not None:
            self._outlook.forget(job)


def find_places(world: Frozen, settings: Settings, now: int, memo: Memo) -> dict[JobId, InLine]:
    """Where each waiting job stands, in the order that a plan made now looks at them."""
    order = line_up(memo.standing.turns(world, settings, now))
    counts = Counter(world.jobs[job].job.queue for job in order)
    seen: Counter[str] = Counter()
    places = {}
    for at, job in enumerate(order, start=1):
        queue = world.jobs[job].job.queue
        seen[queue] += 1
        places[job] = InLine(at, len(order), seen[queue], counts[queue])
    return places


def busy_share(world: Frozen) -> int | None:
    """Milli of the cards that may be used on which something is booked; None where there are none."""
    usable = sum(int(np.bitwise_count(chunk.usable).sum()) for chunk in world.chunks)
    idle = sum(int(np.bitwise_count(chunk.usable & chunk.idle).sum()) for chunk in world.chunks)
    return FULL * (usable - idle) // usable if usable else None


def _shorter(length: int | None, limit: int | None) -> int | None:
    """A length within a limit; the limit where the length is unknown."""
    return limit if length is None else length if limit is None else min(length, limit)


def _like(job: Job) -> Like:
    return Like(job.user, job.queue, sum(request.cards for request in job.members))
