"""When waiting jobs would start if nobody else came and all ended as expected.

The present world is copied and played forward in virtual time, with the same loop, planner and commit as the
engine it was taken from; the world itself, its memo and its record are never touched. Where too many wait
for that, counts of free cards stand for the site, if all of them want whole cards. A guess, not a promise:
`foresight` makes intervals of guesses.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from aliquot.control.chains import chains_of, lasting, outlasting, starts_of
from aliquot.control.evenness import is_even
from aliquot.control.futures import EstimateOf, Futures, column, lengths_column, levels_of, play_futures
from aliquot.control.loop import Loop
from aliquot.core.columns import I64
from aliquot.core.events import Event, Granted, Outcome
from aliquot.core.forecast import Forecast, State
from aliquot.core.ids import JobId
from aliquot.core.image import WorldImage, image_of, world_of
from aliquot.core.jobs import Job
from aliquot.core.lengths import ends_at, length_by
from aliquot.core.lifecycle import Phase
from aliquot.core.pace import pace_of
from aliquot.core.queueing.outlook import Method
from aliquot.core.readiness import hold_back
from aliquot.core.records import Frozen, JobRecord
from aliquot.core.room.disciplines import FIFO, SKIP
from aliquot.core.room.shadow import FAR, expected_end
from aliquot.core.running import Running
from aliquot.core.settings import Backfill, Discipline, Settings
from aliquot.core.speed import FULL_SPEED
from aliquot.core.steps import Gate, Wait
from aliquot.core.workload import Offer, Scenario
from aliquot.core.world import World

if TYPE_CHECKING:
    from aliquot.core.room import counts

_BREATH: Final = 256  # jobs between two looks at the budget


class Budget(NamedTuple):
    """How far to look ahead: so many turns of the loop, or until `is_spent` says so.

    Where more than `most` wait, counts are taken at once instead of the plan, if they will do; of the first
    `counted` at most. `most_even` is the same where counts say what the plan says (None: as `most`).
    """

    turns: int = 500
    is_spent: Callable[[], bool] = lambda: False
    most: int = 500
    counted: int = 1_000_000
    most_even: int | None = None


class Guess(NamedTuple):
    """A start, and how it was found; with what was seen of the job: see `outlook.Sight`.

    `low_ms` and `high_ms`: the starts that one and nine in ten of the futures do not exceed, where there were
    several.
    """

    at_ms: int
    method: Method
    length_ms: int = 0
    cards: int = 1
    waiting: int = 1
    low_ms: int | None = None
    high_ms: int | None = None


class Prediction(NamedTuple):
    """What was found. `is_cut`: the budget was spent before all were; `turns` of it were used."""

    starts: dict[JobId, Guess]
    is_cut: bool = False
    turns: int = 0


def predict(
    world: World,
    settings: Settings,
    now: int,
    wanted: Collection[JobId],
    budget: Budget = Budget(),  # noqa: B008 - a frozen tuple
    estimate_of: EstimateOf = lambda job: job.estimate_ms,
    futures: Futures | None = None,
) -> Prediction:
    """The starts of the waiting jobs `wanted`, as far as they are found; who is missing is unknown.

    Ask between two turns: whoever could start now has started, and the next chance is the next happening.
    Where `futures` are given, counts are played forward into each; the start in the middle is taken.
    """

    def copy() -> World:
        return twin_of(image_of(world), settings)

    return predict_from(world.freeze(), copy, settings, now, wanted, budget, estimate_of, futures)


def predict_from(
    frozen: Frozen,
    copy: Callable[[], World],
    settings: Settings,
    now: int,
    wanted: Collection[JobId],
    budget: Budget,
    estimate_of: EstimateOf,
    futures: Futures | None = None,
) -> Prediction:
    """The same of a world that goes on meanwhile; `copy` makes one like `frozen` to play with, if asked."""
    if not wanted:
        return Prediction({})
    countable = is_countable(frozen)
    most = budget.most
    if budget.most_even is not None and countable and is_even(frozen, settings):
        most = budget.most_even
    if countable and len(frozen.pending) > most:
        return count_forward(frozen, settings, now, wanted, budget, estimate_of, futures)
    played = _play(copy(), settings, now, wanted, budget, estimate_of)
    if not played.is_cut or not countable or not budget.counted:
        return played
    rest = [job for job in wanted if job not in played.starts]
    counted = count_forward(frozen, settings, now, rest, budget, estimate_of, futures)
    return Prediction({**counted.starts, **played.starts}, counted.is_cut, played.turns)


def play_forward(
    world: World,
    settings: Settings,
    now: int,
    wanted: Collection[JobId],
    budget: Budget = Budget(),  # noqa: B008 - a frozen tuple
    estimate_of: EstimateOf = lambda job: job.estimate_ms,
) -> Prediction:
    """By the plan itself, on a copy of `world`."""
    return _play(twin_of(image_of(world), settings), settings, now, wanted, budget, estimate_of)


def twin_of(image: WorldImage, settings: Settings) -> World:
    """A world of `image` that goes its own way under `settings`."""
    return world_of(image, **settings.folding)


def _play(
    copy: World,
    settings: Settings,
    now: int,
    wanted: Collection[JobId],
    budget: Budget,
    estimate_of: EstimateOf,
) -> Prediction:
    frozen = copy.freeze()
    ahead = _forecast(frozen, settings, now, estimate_of)
    starts = _Starts(
        {job: _seen(frozen.jobs[job].job, frozen, estimate_of) for job in wanted if job in frozen.jobs}
    )
    loop = Loop(ahead, ahead, _Unwritten(), settings, (starts,))
    loop.world = copy
    for turn in range(budget.turns):
        if not starts.left or budget.is_spent():
            return Prediction(starts.found, bool(starts.left), turn)
        if not loop.turn() and ahead.is_over:
            return Prediction(starts.found, False, turn)
    return Prediction(starts.found, bool(starts.left), budget.turns)


def _seen(job: Job, world: Frozen, estimate_of: EstimateOf) -> Guess:
    """What is seen of a job; when it starts is found later."""
    return Guess(FAR, Method.PLAN, estimate_of(job) or 0, _cards(job), len(world.pending))


def _cards(job: Job) -> int:
    return sum(request.cards for request in job.members)


def count_forward(
    world: Frozen,
    settings: Settings,
    now: int,
    wanted: Collection[JobId],
    budget: Budget = Budget(),  # noqa: B008 - a frozen tuple
    estimate_of: EstimateOf = lambda job: job.estimate_ms,
    futures: Futures | None = None,
) -> Prediction:
    """By counts of free cards per node: exact where cards are alike and asked for whole, without quotas.

    A shared card counts as taken for good, and who waits for something else than room, or others of his array
    (`chains`), is left out. Of the budget only `is_spent` counts.
    """
    from aliquot.core.room import backfill, forward  # kernels: who never counts need not load their compiler

    jobs = _in_line(world, now, budget)
    if jobs is None:
        return Prediction({}, bool(wanted))
    size, free = _cards_of(world)
    widest = int(size.max(initial=0))
    if not jobs or not widest:
        return Prediction({})
    chains, cards = chains_of(world, jobs), [_cards(job) for job in jobs]
    turns, live = column(chains.turns), sorted(world.grants)
    parts = max(-(-max(cards) // widest), *(len(held) for held in world.grants.values()), 1)
    length_of = length_by(settings)
    told = [length_of(world.jobs[job.id]) for job in jobs]  # the plan reckons with it, whatever is known
    waiting = backfill.Waiting(column(job.submitted_ms for job in jobs), column(cards), lengths_column(told))
    waiting = backfill.Waiting(*(each[turns] for each in waiting))
    rules, starts = _rules_of(settings), []
    asked = column(at for at, job in enumerate(jobs) if job.id in wanted)
    needed = column(chains.leading_to(frozenset(asked.tolist())))
    running = _running_cards(world, settings, now, parts, estimate_of)
    for ends, lengths in play_futures(world, now, running.end, jobs, estimate_of, futures):
        held = running._replace(end=outlasting(chains, live, ends, lengths))
        more = (waiting, rules, needed, budget.is_spent, lasting(chains, lengths))
        heads = forward.foresee(now, size, free, held, *more)
        starts.append(starts_of(chains, live, ends, lengths, heads)[asked])
        if budget.is_spent():
            break
    found = {}
    several = len(starts) > 1
    for at, (low, start, high) in zip(asked.tolist(), levels_of(starts), strict=True):
        if start < FAR:
            length = told[at] or estimate_of(jobs[at]) or 0
            seen = Guess(start, Method.COUNTS, length, cards[at], len(world.pending))
            found[jobs[at].id] = seen._replace(low_ms=low, high_ms=high) if several else seen
    is_cut = len(world.pending) > budget.counted or (len(found) < len(asked) and budget.is_spent())
    return Prediction(found, is_cut)


def _rules_of(settings: Settings) -> Backfill:
    if settings.backfill is not None:
        return settings.backfill
    return FIFO if settings.discipline is Discipline.STRICT else SKIP


def _in_line(world: Frozen, now: int, budget: Budget) -> list[Job] | None:
    """Who waits for room or in an array, and nothing else; None: the budget was spent before all were."""
    jobs: list[Job] = []
    for at, key in enumerate(world.pending[: budget.counted]):
        if at % _BREATH == 0 and budget.is_spent():
            return None
        record = world.jobs[key[3]]
        held = hold_back(record, world, now)
        if held is None or (isinstance(held, Wait) and held.gate is Gate.ARRAY):
            jobs.append(record.job)
    return jobs


class _Starts:
    """An observer that notes when those who are asked for first get their room."""

    def __init__(self, wanted: Mapping[JobId, Guess]) -> None:
        self.left = dict(wanted)
        self.found: dict[JobId, Guess] = {}

    def see(self, events: Sequence[Event], world: World) -> None:
        """Note grants; who is gone without one will never start."""
        for event in events:
            if isinstance(event, Granted) and event.job in self.left:
                self.found[event.job] = self.left.pop(event.job)._replace(at_ms=event.at)
        if self.left:
            self.left = {job: seen for job, seen in self.left.items() if job in world.jobs}


class _Unwritten:
    """A journal that keeps nothing."""

    def append(self, events: Sequence[Event]) -> None:
        """Nothing is recorded."""

    def replay(self) -> Iterator[Event]:
        """Nothing was recorded."""
        return iter(())


def _forecast(world: Frozen, settings: Settings, now: int, estimate_of: EstimateOf) -> Forecast:
    """Virtual time from `now` on: what runs ends as expected, and nobody else comes."""
    offers = []
    for job_id in sorted(world.jobs):
        job = world.jobs[job_id].job
        estimate = estimate_of(job)
        offers.append(Offer(job, None if estimate is None else max(1, estimate)))
    nodes = tuple(world.nodes[name].node for name in world.node_at)
    scenario = Scenario("ahead", nodes, tuple(offers), ())
    ahead = Forecast(scenario, State(now=now, cursor=len(offers)))
    held = [world.jobs[job] for job in world.grants]
    for record in sorted(held, key=lambda record: (record.granted_ms, record.job.seq, record.job.id)):
        ahead.take_up(
            record.job.id,
            _under_way(record, world, settings, now, estimate_of, scenario),
            confirm=record.phase is Phase.STARTING,
        )
    for kept in world.kept:
        if kept.until_ms is not None:
            ahead.wake_at(kept.until_ms)
    return ahead


def _under_way(
    record: JobRecord,
    world: Frozen,
    settings: Settings,
    now: int,
    estimate_of: EstimateOf,
    scenario: Scenario,
) -> Running:
    placements = tuple(grant.placement for grant in world.grants[record.job.id])
    speed = pace_of(Offer(record.job), placements, {}, scenario.speeds)  # not linked: no node is asked
    end = _end_of(record, settings, now, estimate_of)
    since = max(record.granted_ms, record.resized_ms)  # who is stopped later loses what it did since then
    if end >= FAR:
        return Running(record.attempt, placements, since, None, speed, None)
    is_stopped = record.phase is Phase.STOPPING and (record.cancelled or record.goes_on)
    outcome = Outcome.FAILED if is_stopped else Outcome.SUCCEEDED
    work = 0 if record.phase is Phase.STOPPING else (end - since) * speed // FULL_SPEED
    return Running(record.attempt, placements, since, work, speed, end, outcome)


def _end_of(record: JobRecord, settings: Settings, now: int, estimate_of: EstimateOf) -> int:
    """When what runs of `record` is expected to be over; FAR where nobody knows."""
    if record.phase is Phase.STOPPING:
        return max(now + 1, record.since_ms + record.grace_ms)
    end = ends_at(record, lambda each: estimate_of(each.job))
    length = None if end is None else end - record.granted_ms
    return expected_end(record.granted_ms, length, now, settings.overrun)


def is_countable(world: Frozen) -> bool:
    """Whether all who wait want whole cards, and no window closes any: counts know nothing of time."""
    waits = (request for key in world.pending for request in world.jobs[key[3]].job.members)
    return not world.closures and all(request.whole for request in waits)


def _cards_of(world: Frozen) -> tuple[I64, I64]:
    """[nodes] cards that may be used, and those of them on which nothing is booked."""
    usable = np.concatenate([chunk.usable for chunk in world.chunks])[: world.rows]
    idle = np.concatenate([chunk.idle for chunk in world.chunks])[: world.rows]
    return np.bitwise_count(usable).astype(np.int64), np.bitwise_count(usable & idle).astype(np.int64)


def _running_cards(
    world: Frozen, settings: Settings, now: int, parts: int, estimate_of: EstimateOf
) -> counts.Running:
    """Who holds whole cards, until when, and on which nodes how many."""
    from aliquot.core.room import counts  # as above

    ends: list[int] = []
    rows = np.zeros((len(world.grants), parts), np.int64)
    cards = np.zeros((len(world.grants), parts), np.int64)
    for at, job in enumerate(sorted(world.grants)):
        ends.append(_end_of(world.jobs[job], settings, now, estimate_of))
        for part, grant in enumerate(world.grants[job]):
            if grant.seat is not None and grant.placement.whole:
                rows[at, part], cards[at, part] = grant.seat.row, grant.seat.mask.bit_count()
    return counts.Running(column(ends), rows, cards)
