"""When waiting jobs would start if nobody else came and all ended as expected.

The present world is copied and played forward in virtual time, with the same loop, planner and commit as the
engine it was taken from; the world itself, its memo and its record are never touched. Where too many wait
for that, counts of free cards stand for the site, if all of them want whole cards. A guess, not a promise:
`foresight` makes intervals of guesses.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from aliquot.control.loop import Loop
from aliquot.core.columns import I64
from aliquot.core.events import Event, Granted, Outcome
from aliquot.core.forecast import Forecast, State
from aliquot.core.ids import JobId
from aliquot.core.image import WorldImage, image_of, world_of
from aliquot.core.jobs import Job
from aliquot.core.lifecycle import Phase
from aliquot.core.pace import pace_of
from aliquot.core.queueing.outlook import Method
from aliquot.core.readiness import hold_back
from aliquot.core.records import Frozen, JobRecord
from aliquot.core.room.disciplines import FIFO, SKIP
from aliquot.core.room.shadow import FAR, expected_end
from aliquot.core.running import Running
from aliquot.core.settings import Discipline, Settings
from aliquot.core.speed import FULL_SPEED
from aliquot.core.workload import Offer, Scenario
from aliquot.core.world import World

if TYPE_CHECKING:
    from aliquot.core.room import counts

_BREATH: Final = 256  # jobs between two looks at the budget

EstimateOf = Callable[[Job], int | None]
"""How long a job runs; None where nobody knows."""


class Budget(NamedTuple):
    """How far to look ahead: so many turns of the loop, or until `is_spent` says so.

    Where more than `most` wait, counts are taken at once instead of the plan, if they will do; of the first
    `counted` at most.
    """

    turns: int = 500
    is_spent: Callable[[], bool] = lambda: False
    most: int = 500
    counted: int = 1_000_000


class Guess(NamedTuple):
    """A start, and how it was found."""

    at_ms: int
    method: Method


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
) -> Prediction:
    """The starts of the waiting jobs `wanted`, as far as they are found; who is missing is unknown.

    Ask between two turns: whoever could start now has started, and the next chance is the next happening.
    """
    return predict_from(
        world.freeze(), lambda: twin_of(image_of(world), settings), settings, now, wanted, budget, estimate_of
    )


def predict_from(
    frozen: Frozen,
    copy: Callable[[], World],
    settings: Settings,
    now: int,
    wanted: Collection[JobId],
    budget: Budget,
    estimate_of: EstimateOf,
) -> Prediction:
    """The same of a world that goes on meanwhile; `copy` makes one like `frozen` to play with, if asked."""
    if not wanted:
        return Prediction({})
    countable = is_countable(frozen)
    if countable and len(frozen.pending) > budget.most:
        return count_forward(frozen, settings, now, wanted, budget, estimate_of)
    played = _play(copy(), settings, now, wanted, budget, estimate_of)
    if not played.is_cut or not countable:
        return played
    rest = [job for job in wanted if job not in played.starts]
    counted = count_forward(frozen, settings, now, rest, budget, estimate_of)
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
    ahead = _forecast(copy.freeze(), settings, now, estimate_of)
    starts = _Starts(wanted)
    loop = Loop(ahead, ahead, _Unwritten(), settings, (starts,))
    loop.world = copy
    for turn in range(budget.turns):
        if not starts.left or budget.is_spent():
            return Prediction(starts.found, bool(starts.left), turn)
        if not loop.turn() and ahead.is_over:
            return Prediction(starts.found, False, turn)
    return Prediction(starts.found, bool(starts.left), budget.turns)


def count_forward(
    world: Frozen,
    settings: Settings,
    now: int,
    wanted: Collection[JobId],
    budget: Budget = Budget(),  # noqa: B008 - a frozen tuple
    estimate_of: EstimateOf = lambda job: job.estimate_ms,
) -> Prediction:
    """By counts of free cards per node: exact where cards are alike and asked for whole, without quotas.

    A shared card counts as taken for good, and who waits for something else than room is left out. Of the
    budget only `is_spent` counts.
    """
    from aliquot.core.room import backfill  # kernels: who never counts need not load their compiler

    jobs: list[Job] = []
    for key in world.pending[: budget.counted]:
        if len(jobs) % _BREATH == 0 and budget.is_spent():
            return Prediction({}, bool(wanted))
        record = world.jobs[key[3]]
        if hold_back(record, world, now) is None:
            jobs.append(record.job)
    size, free = _cards_of(world)
    widest = int(size.max(initial=0))
    if not jobs or not widest:
        return Prediction({})
    cards = [sum(request.cards for request in job.members) for job in jobs]
    parts = max(-(-max(cards) // widest), *(len(held) for held in world.grants.values()), 1)
    estimates = [estimate_of(job) for job in jobs]
    waiting = backfill.Waiting(
        _column(job.submitted_ms for job in jobs),
        _column(cards),
        _column(-1 if estimate is None else max(1, estimate) for estimate in estimates),
    )
    rules = settings.backfill
    if rules is None:
        rules = FIFO if settings.discipline is Discipline.STRICT else SKIP
    asked = _column(at for at, job in enumerate(jobs) if job.id in wanted)
    running = _running_cards(world, settings, now, parts, estimate_of)
    starts = backfill.foresee(now, size, free, running, waiting, rules, asked, budget.is_spent)
    found = {jobs[at].id: Guess(int(starts[at]), Method.COUNTS) for at in asked if 0 <= starts[at] < FAR}
    is_cut = len(world.pending) > budget.counted or (len(found) < len(asked) and budget.is_spent())
    return Prediction(found, is_cut)


class _Starts:
    """An observer that notes when those who are asked for first get their room."""

    def __init__(self, wanted: Collection[JobId]) -> None:
        self.left = set(wanted)
        self.found: dict[JobId, Guess] = {}

    def see(self, events: Sequence[Event], world: World) -> None:
        """Note grants; who is gone without one will never start."""
        for event in events:
            if isinstance(event, Granted) and event.job in self.left:
                self.left.discard(event.job)
                self.found[event.job] = Guess(event.at, Method.PLAN)
        if self.left:
            self.left = {job for job in self.left if job in world.jobs}


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
    is_stopped = record.phase is Phase.STOPPING and (record.cancelled or record.evicting is not None)
    outcome = Outcome.FAILED if is_stopped else Outcome.SUCCEEDED
    work = 0 if record.phase is Phase.STOPPING else (end - since) * speed // FULL_SPEED
    return Running(record.attempt, placements, since, work, speed, end, outcome)


def _end_of(record: JobRecord, settings: Settings, now: int, estimate_of: EstimateOf) -> int:
    """When what runs of `record` is expected to be over; FAR where nobody knows."""
    if record.phase is Phase.STOPPING:
        grace = 0 if record.evicting is None else record.evicting.grace_ms
        return max(now + 1, record.since_ms + grace)
    return expected_end(record.granted_ms, estimate_of(record.job), now, settings.overrun)


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
    return counts.Running(_column(ends), rows, cards)


def _column(values: Iterable[int]) -> I64:
    return np.array(list(values), np.int64)
