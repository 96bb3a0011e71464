"""Runs of the public placement experiment, through the same loop, planner and commit as every engine.

Not a benchmark itself: what `bench_reproduction`, `bench_placement` and `bench_moves` share.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import msgspec
import numpy as np

from aliquot.bootstrap import make_sim
from aliquot.catalog import load_catalog
from aliquot.config import BUILTIN
from aliquot.control.whatif import Run, find_policy
from aliquot.core.events import Event, Granted, Moved
from aliquot.core.jobs import Request
from aliquot.core.settings import MixSource, Rescue
from aliquot.core.workload import Scenario
from aliquot.core.world import World
from aliquot.traces.openb import OpenbTrace, asked_milli
from bench.measure import trace_folder

FIVE = ("default", "multigpu20", "gpushare100", "cpu250", "gpuspec33")
ALL = (
    *("default", "multigpu20", "multigpu30", "multigpu40", "multigpu50"),
    *("gpushare40", "gpushare60", "gpushare80", "gpushare100"),
    *("cpu050", "cpu100", "cpu200", "cpu250"),
    *("gpuspec10", "gpuspec20", "gpuspec25", "gpuspec33"),
)
SEEDS = tuple(range(42, 52))
TUNING = tuple(range(1, 11))
STREAMS = tuple(range(5))
PUBLISHED = {
    "random": "01-Random",
    "dot-product": "02-DotProd",
    "gpu-clustering": "03-GpuClustering",
    "gpu-packing": "04-GpuPacking",
    "best-fit": "05-BestFit",
    "fgd": "06-FGD",
}
CLASSES = ("cpu", "shared", "1", "2", "4", "8")


@dataclass(frozen=True)
class Case:
    """One run."""

    workload: str
    policy: str
    seed: int
    stream: int = 0
    mix: str = "list"
    moves: float = 0.0


@dataclass(frozen=True)
class Outcome:
    """Allocated share of all cards in %, pods placed by class, seconds of the run itself."""

    case: Case
    at_100: float
    at_130: float
    placed: dict[str, int]
    moved: int
    seconds: float


class _Watch:
    """Which pods were granted, and how many moves were made."""

    def __init__(self) -> None:
        self.granted: set[str] = set()
        self.moved = 0

    def see(self, events: Sequence[Event], world: World) -> None:
        for event in events:
            if isinstance(event, Granted):
                self.granted.add(event.job)
            elif isinstance(event, Moved):
                self.moved += 1


def run_case(case: Case) -> Outcome:
    """One run; the time counts from the first event to the last, compiled kernels loaded before."""
    trace = _trace(case.workload, case.seed, case.moves > 0)
    scenario = Scenario(case.workload, trace.nodes(), trace.offers(), BUILTIN, known_demand=trace.demand())
    _, settings = find_policy(scenario, case.policy, case.stream)
    settings = msgspec.structs.replace(
        settings, mix_source=MixSource(case.mix), rescue=Rescue(share=case.moves)
    )
    watch = _Watch()
    run = Run(scenario, settings, make_sim, (watch,))
    begin = time.process_time()
    run.finish()
    seconds = time.process_time() - begin
    requests = [offer.job.members[0] for offer in scenario.offers]
    asked = np.array([asked_milli(request) for request in requests])
    placed = np.array([offer.job.id in watch.granted for offer in scenario.offers])
    offered = np.round(np.cumsum(asked) * 100 / trace.capacity_milli)
    allocated = np.cumsum(asked * placed) * 100 / trace.capacity_milli
    counts = dict.fromkeys(CLASSES, 0)
    for request, there in zip(requests, placed.tolist(), strict=True):
        counts[class_of(request)] += there
    return Outcome(
        case,
        float(allocated[offered == 100].mean()),
        float(allocated[offered == 130].mean()),
        counts,
        watch.moved,
        seconds,
    )


def run_cases(cases: Iterable[Case], processes: int = 2) -> list[Outcome]:
    """All runs, in order, over `processes`."""
    ordered = list(cases)
    if processes == 1:
        return [run_case(case) for case in ordered]
    with ProcessPoolExecutor(processes) as pool:
        outcomes = []
        for number, outcome in enumerate(pool.map(run_case, ordered), start=1):
            outcomes.append(outcome)
            if number % 50 == 0:
                print(f"{number}/{len(ordered)} runs", flush=True)
        return outcomes


def class_of(request: Request) -> str:
    """The class of a pod: no card, a share of one, or the number of whole cards."""
    if request.cards == 0:
        return "cpu"
    return str(request.cards) if request.whole else "shared"


@cache
def published() -> dict[tuple[str, str, int], tuple[float, float]]:
    """(workload, policy of ours, seed) to the published allocation at 100 % and 130 %."""
    names = {theirs: ours for ours, theirs in PUBLISHED.items()}
    found = {}
    path = trace_folder() / "fgd" / "analysis_allo_discrete.csv"
    with path.open(newline="") as text:
        for row in csv.DictReader(text):
            if row["sc_policy"] in names:
                workload = row["workload"].removeprefix("openb_pod_list_")
                key = (workload, names[row["sc_policy"]], int(row["seed"]))
                found[key] = (float(row["100"]), float(row["130"]))
    return found


def published_mean(workload: str, policy: str) -> tuple[float, float]:
    """Means over the published seeds."""
    values = [published()[workload, policy, seed] for seed in SEEDS]
    return mean(value[0] for value in values), mean(value[1] for value in values)


def mean(values: Iterable[float]) -> float:
    """The arithmetic mean."""
    listed = list(values)
    return sum(listed) / len(listed)


def placed_in_all(outcomes: Iterable[Outcome], workload: str, policy: str) -> dict[str, int]:
    """Pods placed by class, summed over the runs of a workload under a policy."""
    mine = [o.placed for o in outcomes if o.case.workload == workload and o.case.policy == policy]
    return {name: sum(placed[name] for placed in mine) for name in CLASSES}


def as_row(outcome: Outcome) -> dict[str, object]:
    """An outcome as JSON."""
    row = asdict(outcome)
    case = row.pop("case")
    return {**case, **row}


@cache
def _trace(workload: str, seed: int, movable: bool) -> OpenbTrace:
    return OpenbTrace(Path(trace_folder()), workload, seed, load_catalog().models(), movable=movable)
