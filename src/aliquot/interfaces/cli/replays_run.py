"""What the replay commands share: runs over seeds and policies, published figures beside ours."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from rich import box
from rich.table import Table

from aliquot.control.experiments import Experiments, TraceAsk
from aliquot.control.replaying import Estimates, PublishedAsk, PublishedRun
from aliquot.core.errors import SpecError
from aliquot.core.report.result import RunResult
from aliquot.interfaces.cli.openb import parse_seeds
from aliquot.interfaces.cli.output import Outputs, watch

MURI_TRACES: Final = ("1", "1p", "2", "2p", "3", "3p", "4", "4p")
POLLUX_WORKLOADS: Final = tuple("12345678")
MANY_JOBS: Final = 1000
NEARLY: Final = 0.001  # a baseline within this of the printed figure is reproduced

Shared = tuple[list[str] | None, str, Path | None, Path | None, bool]
"""What every trace command takes: policies, seeds, where JSON and a report go, whether to predict."""


def read_estimates(word: str) -> Estimates:
    """The estimates of that name; raises SpecError."""
    kinds = {kind.value: kind for kind in Estimates}
    if word not in kinds:
        raise SpecError(
            f"{word!r} is no kind of estimate", field="--estimates", value=word, hint=", ".join(kinds)
        )
    return kinds[word]


def run_traces(
    experiments: Experiments,
    trace: str,
    ask: Callable[[int], TraceAsk],
    shared: Shared,
    inputs: Sequence[Path] = (),
) -> None:
    """Every policy under every seed, a trace read once per seed; then the scorecards."""
    policies, seeds, json, report, predict = shared
    outputs = Outputs(json, report, inputs=inputs)
    numbers = parse_seeds(seeds)
    results: list[tuple[int, RunResult]] = []
    jobs, spent = 0, 0.0
    for at in numbers:
        scenario = experiments.open_trace(trace, ask(at))
        named: list[str | None] = list(policies) if policies else [None]
        for order, policy in enumerate(named):
            label = f"{policy or scenario.policies[0][0]}, seed {at}"
            with watch(f"{label} ({len(results) + 1}/{len(numbers) * len(named)})") as progress:
                began = time.perf_counter()
                result = experiments.run_trace(scenario, policy, at, progress, predict=predict)
                spent += time.perf_counter() - began
            jobs += result.scorecard.jobs
            results.append((order, result))
    runs = [result for _, result in sorted(results, key=lambda entry: entry[0])]
    lines = []
    if jobs >= MANY_JOBS:  # with fewer it is the time to start that one sees
        lines.append(f"Computed in {spent:.1f} s: {jobs / spent:,.0f} jobs a second on this machine.")
    outputs.show(runs, lines=lines)


def run_published(
    experiments: Experiments,
    trace: str,
    asked: Sequence[tuple[str, str]],
    folder: Path | None,
    json: Path | None,
) -> None:
    """Each (workload, policy) in the published simulator of `trace`, then one table, losing cells in it."""
    outputs = Outputs(json, None)
    runs = []
    for number, (workload, policy) in enumerate(asked, start=1):
        with watch(f"{trace} {workload}, {policy} ({number}/{len(asked)})") as progress:
            runs.append(experiments.run_published(trace, PublishedAsk(workload, policy, folder), progress))
    model = runs[0].model
    outputs.show_as(runs, f"Average completion, {model}", [published_table(runs)], published_lines(runs))


def published_table(runs: Sequence[PublishedRun]) -> Table:
    """One row a run: ours, theirs, the ratio, and which of the two is quicker."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("Workload")
    for title in ("Jobs", "Policy", "Average, s", "Longest, s", "Published", "Average, s", "Ratio", ""):
        table.add_column(title, justify="left" if title in {"Policy", "Published", ""} else "right")
    for run in runs:
        table.add_row(
            run.workload,
            f"{run.jobs:,}",
            run.policy,
            f"{run.average_s:,.1f}",
            f"{run.worst_s:,.0f}",
            run.theirs,
            f"{run.published_s:,.1f}",
            f"{run.ratio:.4f}" if run.reproduces else f"{run.ratio:.3f}",
            _verdict(run),
        )
    return table


def published_lines(runs: Sequence[PublishedRun]) -> Iterator[str]:
    """What to know of the figures, and the means over several workloads."""
    for policy in dict.fromkeys(run.policy for run in runs):
        ratios = [run.ratio for run in runs if run.policy == policy]
        if any(run.reproduces for run in runs if run.policy == policy):
            close = sum(abs(ratio - 1) <= NEARLY for ratio in ratios)
            yield f"{policy}: within 0.1 % of the published average on {close} of {len(ratios)}."
        elif len(ratios) > 1:
            mean = math.exp(sum(math.log(ratio) for ratio in ratios) / len(ratios))
            quicker = sum(ratio < 1 for ratio in ratios)
            yield f"{policy}: geometric mean of the ratios {mean:.3f}, quicker on {quicker} of {len(ratios)}."
    if any(run.tuned_on for run in runs):
        yield "Tuned on: the rule's numbers were chosen on this workload; the others had no part in it."
    yield f"All figures are {runs[0].model}; none was measured on cards."


def _verdict(run: PublishedRun) -> str:
    if run.reproduces:
        return "reproduced" if abs(run.ratio - 1) <= NEARLY else "not reproduced"
    told = "quicker" if run.ratio < 1 else "slower"
    return f"{told} (tuned on)" if run.tuned_on else told
