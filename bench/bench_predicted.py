"""Predicted starts over the whole month of Philly, October 2017, 80 x 8 cards, under `backfill`.

Must, of jobs that waited more than a minute: the 80 % interval holds 80 +- 5 %, the pinball loss (mean of the
levels 0.1, 0.5, 0.9) is 20 % below that of the queue's own empirical quantiles; striven for: 40 %. Three
months: exact estimates, estimates wrong by up to ten times either way, and none at all.

An interval is said once, after the first turn of a job that did not start in it, and not changed later. The
month is run first and recorded; then the record is folded turn by turn into a world, and the watcher sees
each turn before it is asked about the newcomers of that turn. So it can know nothing that comes later, and
it cannot touch what happens.

`queue`: quantiles of the waits of past jobs of the same queue that waited more than a minute and had started
strictly before the job came; those of all queues where there are fewer than 50. `queue and cards`: the same
of jobs of the same queue and number of cards, else of the queue. `latest`: the latest 500 of `queue` only.
Which jobs count is decided by what they waited, so the baselines too learn from such waits only; for all who
waited, from all waits. Every method is judged on the same jobs, by submission: those of which an interval was
said. What is learnt and how was chosen on the first ten days; days 11 to 31 were run once.

Usage: bench_predicted.py [exact|wrong10|none] [SEED ...] [--keep FOLDER of records]
"""

from __future__ import annotations

import pickle
import sys
import time
from bisect import bisect_left, insort
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from pathlib import Path
from statistics import fmean, median
from typing import Any, NamedTuple

from msgspec.structs import replace

from aliquot.bootstrap import make_sim
from aliquot.bootstrap_replays import load_philly_month
from aliquot.control.foresight import Foresight
from aliquot.control.predicting import Guess
from aliquot.control.replaying import Estimates, PhillyAsk
from aliquot.control.whatif import Run, find_policy
from aliquot.core.events import Event, Granted, JobSubmitted
from aliquot.core.ids import JobId
from aliquot.core.queueing.outlook import Interval, pinball
from aliquot.core.settings import Estimating, Settings, Source
from aliquot.core.workload import Scenario
from aliquot.core.world import World
from aliquot.engines.sim.journal import MemoryJournal
from aliquot.ports import Clock, Cluster, Journal
from bench.measure import calibrate, print_table, trace_folder, write_results

LEVELS = (0.1, 0.5, 0.9)
MINUTE_MS = 60_000
DAY_MS = 86_400_000
MONTH_DAYS = 31
TUNED_DAYS = 10
ENOUGH = 50
LATEST = 500


class Wait(NamedTuple):
    """One job that did not start in its first turn."""

    job: JobId
    queue: str
    cards: int
    submitted: int
    waited: int


class Watcher(Foresight):
    """Keeps every interval that was said."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.intervals: dict[JobId, Interval | None] = {}

    def begin(self, guesses: dict[JobId, Guess], now: int) -> dict[JobId, Interval | None]:
        """Note what is said of newcomers."""
        said = super().begin(guesses, now)
        self.intervals.update(said)
        return said


def month(kind: Estimates, seed: int) -> tuple[Scenario, Settings]:
    """The month, and how it is run; without estimates what is learnt of jobs like them counts."""
    scenario = load_philly_month(PhillyAsk(estimates=kind, seed=seed, folder=trace_folder()))
    settings = find_policy(scenario, "backfill")[1]
    if kind is Estimates.NONE:
        settings = replace(settings, estimates=Estimating(Source.BEST))
    return scenario, settings


def record(scenario: Scenario, settings: Settings) -> list[Event]:
    """All that happens, in order."""

    def engine(played: Scenario) -> tuple[Cluster, Clock, Journal]:
        cluster, clock, _ = make_sim(played)
        return cluster, clock, MemoryJournal()

    run = Run(scenario, settings, engine)
    run.finish()
    return list(run.loop.journal.replay())


def look_ahead(events: Sequence[Event], settings: Settings) -> Watcher:
    """Turn by turn: what has happened is folded and seen, then newcomers are guessed for."""
    world, watcher = World(**settings.folding), Watcher(settings)
    for now, happened in groupby(events, key=lambda event: event.at):
        turn = list(happened)
        world.apply_all(turn)
        watcher.see(turn, world)
        watcher.look(world, now)
    return watcher


def waits_of(events: Iterable[Event]) -> list[Wait]:
    """Those who did not start at once, by submission."""
    waits, submitted = [], {}
    for event in events:
        if isinstance(event, JobSubmitted):
            submitted[event.job.id] = event.job
        elif isinstance(event, Granted) and event.job in submitted:
            job = submitted.pop(event.job)
            if event.at > job.submitted_ms:
                cards = sum(request.cards for request in job.members)
                waits.append(Wait(job.id, job.queue, cards, job.submitted_ms, event.at - job.submitted_ms))
    return sorted(waits, key=lambda wait: (wait.submitted, wait.job))


Keys = Callable[[Wait], tuple[object, ...]]


def from_the_past(
    waits: Sequence[Wait], keys: Keys, latest: int | None = None, least: int = MINUTE_MS
) -> dict[JobId, Interval]:
    """Quantiles of past waits above `least` of the first of a job's `keys` that has enough of them."""
    starts = sorted((wait.submitted + wait.waited, wait) for wait in waits if wait.waited > least)
    known: dict[object, list[int]] = defaultdict(list)
    order: dict[object, deque[int]] = defaultdict(deque)
    said, at = {}, 0
    for wait in waits:
        while at < len(starts) and starts[at][0] < wait.submitted:
            past = starts[at][1]
            at += 1
            for key in keys(past):
                insort(known[key], past.waited)
                order[key].append(past.waited)
                if latest is not None and len(order[key]) > latest:
                    del known[key][bisect_left(known[key], order[key].popleft())]
        for key in keys(wait):
            values = known[key]
            if len(values) >= ENOUGH:
                said[wait.job] = Interval(*(values[int(len(values) * level)] for level in LEVELS))
                break
    return said


BASELINES: dict[str, tuple[Keys, int | None]] = {
    "queue": (lambda wait: (wait.queue, None), None),
    "queue and cards": (lambda wait: ((wait.queue, wait.cards), wait.queue, None), None),
    "latest": (lambda wait: (wait.queue, None), LATEST),
}


def judge(waits: Sequence[Wait], said: dict[JobId, Interval]) -> dict[str, float]:
    """How right intervals were, %, and how sharp, s."""
    pairs = [(wait.waited, said[wait.job]) for wait in waits]
    losses = [
        fmean(pinball(waited, value, level) for waited, one in pairs for value in (one[at],)) / 1000
        for at, level in enumerate(LEVELS)
    ]
    return {
        "inside": round(100 * fmean(one.low <= waited <= one.high for waited, one in pairs), 1),
        "below": round(100 * fmean(waited < one.low for waited, one in pairs), 1),
        "above": round(100 * fmean(waited > one.high for waited, one in pairs), 1),
        "pinball": round(fmean(losses), 1),
        "median_loss": round(losses[1], 1),
        "width": round(median(one.high - one.low for _, one in pairs) / 1000),
    }


def rows_of(kind: Estimates, seed: int, events: Sequence[Event], watcher: Watcher) -> list[dict[str, Any]]:
    """A row for the month, the days that were and were not tuned on, each fifth; then all who waited."""
    waits = waits_of(events)
    said = {job: one for job, one in watcher.intervals.items() if one is not None}
    fifth = MONTH_DAYS / 5
    spans = [("month", 0.0, float(MONTH_DAYS)), ("days 1-10", 0.0, 10.0), ("days 11-31", 10.0, 31.0)]
    spans += [(f"fifth {at + 1}", at * fifth, (at + 1) * fifth) for at in range(5)]
    rows = []
    for least, who in ((MINUTE_MS, "waited > 60 s"), (0, "all who waited")):
        past = {name: from_the_past(waits, keys, latest, least) for name, (keys, latest) in BASELINES.items()}
        for name, begin, end in spans:
            there = [
                wait
                for wait in waits
                if wait.waited > least and begin * DAY_MS <= wait.submitted < end * DAY_MS
            ]
            judged = [
                wait for wait in there if wait.job in said and all(wait.job in one for one in past.values())
            ]
            if not judged:
                continue
            ours = judge(judged, said)
            theirs = {other: judge(judged, one) for other, one in past.items()}
            best = min(theirs, key=lambda other: theirs[other]["pinball"])
            rows.append(
                {
                    "estimates": kind.value,
                    "seed": seed,
                    "who": who,
                    "when": name,
                    "jobs": len(there),
                    "judged": len(judged),
                    "unsaid": sum(wait.job not in said for wait in there),
                    **ours,
                    "median_wait": round(median(wait.waited for wait in judged) / 1000),
                    "queue_pinball": theirs["queue"]["pinball"],
                    "below_queue": round(100 * (1 - ours["pinball"] / theirs["queue"]["pinball"]), 1),
                    "below_best": round(100 * (1 - ours["pinball"] / theirs[best]["pinball"]), 1),
                    "best": best,
                    "baselines": theirs,
                }
            )
    return rows


def measure(kind: Estimates, seed: int, keep: Path | None) -> list[dict[str, Any]]:
    """One month; its record is taken from the folder `keep` where it is there."""
    scenario, settings = month(kind, seed)
    path = None if keep is None else keep / f"month-{kind.value}-{seed}.pkl"
    began = time.process_time()
    if path is not None and path.is_file():
        events = pickle.loads(path.read_bytes())  # of one's own making
    else:
        events = record(scenario, settings)
    ran, began = time.process_time() - began, time.process_time()
    watcher = look_ahead(events, settings)
    looked = time.process_time() - began
    rows = rows_of(kind, seed, events, watcher)
    for row in rows:
        row |= {"cpu_seconds_looking": round(looked, 1), "cpu_seconds_running": round(ran, 1)}
    if path is not None and not path.is_file():
        path.write_bytes(pickle.dumps(events))
    return rows


def main() -> None:
    """Run, print, write."""
    asked = sys.argv[1:]
    keep = Path(asked[asked.index("--keep") + 1]) if "--keep" in asked else None
    asked = [word for word in asked if word != "--keep" and word != str(keep)]
    seeds = [int(word) for word in asked if word.isdigit()] or [0]
    kinds = [Estimates(word) for word in asked if not word.isdigit()]
    kinds = kinds or [Estimates.EXACT, Estimates.WRONG10, Estimates.NONE]
    calibration = calibrate()
    rows = []
    for kind in kinds:
        for seed in seeds if kind is Estimates.WRONG10 else [0]:
            rows += measure(kind, seed, keep)
            shown = [row for row in rows if row["estimates"] == kind.value and row["seed"] == seed]
            columns = [name for name in shown[0] if name != "baselines"]
            print_table(
                f"{kind.value}, seed {seed}", columns, [[row[name] for name in columns] for row in shown]
            )
            write_results("predicted", rows, calibration, tuned_on=f"the first {TUNED_DAYS} days")


if __name__ == "__main__":
    main()
