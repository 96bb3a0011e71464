"""The public Muri traces: training jobs with the three stage times of an iteration.

Source of the format: the artifact of Zhao et al., SIGCOMM'22 (Apache-2.0), one CSV per trace; those whose
name ends in `_pr` submit every job at once. Times are ms in the files and seconds here. How jobs run and
share in the authors' simulator is `published.muri_model`; this module only reads.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from aliquot.core.errors import NotFoundError
from aliquot.traces.tables import broken_cell, number, read_table, whole

COLUMNS = (
    "job_id",
    "num_gpu",
    "submit_time",
    "iterations",
    "model_name",
    "iteration_time",
    "resource_time_0",
    "resource_time_1",
    "resource_time_2",
)
WIDTHS = (1, 2, 4, 8, 16, 32)
TRACES = ("trace1", "trace1_pr", "trace2", "trace2_pr", "trace3", "trace3_pr", "trace4", "trace4_pr")


class MuriJob(msgspec.Struct, frozen=True):
    """One line of a trace. `stages_s`: processor and data, GPU, network, per iteration."""

    id: int
    cards: int
    submitted_s: float
    iterations: int
    model: str
    iteration_s: float
    stages_s: tuple[float, float, float]


class PublishedMuri(msgspec.Struct, frozen=True):
    """Average completion in s that the authors' simulator printed: no sharing, then with it (L: no sizes)."""

    srtf: float
    srsf: float
    tiresias: float
    muri_l: float
    muri_s: float


PUBLISHED: dict[str, PublishedMuri] = {
    "trace1": PublishedMuri(1370603.2, 980140.6, 3330371.3, 1072010, 867706),
    "trace1_pr": PublishedMuri(2303543.8, 1801860.0, 6921682.8, 2141937, 1467192),
    "trace2": PublishedMuri(2665607.4, 2213949.7, 7396368.5, 2544642, 1342400),
    "trace2_pr": PublishedMuri(4079154.5, 3384600.5, 10555502, 4152486, 2325962),
    "trace3": PublishedMuri(193081.8, 185021.9, 347213.2, 88687, 85503),
    "trace3_pr": PublishedMuri(844394.8, 798057.7, 2213110.1, 921095, 537777),
    "trace4": PublishedMuri(581982.9, 487167.2, 1319382.9, 429175, 365468),
    "trace4_pr": PublishedMuri(1430856.4, 1218502.0, 2664005, 1488034, 954225),
}


def read_trace(folder: Path, name: str) -> tuple[MuriJob, ...]:
    """The jobs of a trace by submit time, then id; a broken cell is a DocumentError that names it."""
    path = folder / f"{name}.csv"
    if not path.is_file():
        there = ", ".join(sorted(found.stem for found in folder.glob("trace*.csv"))) or "none"
        raise NotFoundError(f"no Muri trace {name!r} in {folder}; there are: {there}")
    jobs: list[MuriJob] = []
    seen: set[int] = set()
    for line, row in enumerate(read_table(path, COLUMNS), start=2):
        cards = whole(path, line, row, "num_gpu", least=1)
        if cards not in WIDTHS:
            raise broken_cell(path, line, "num_gpu", cards, f"one of {', '.join(map(str, WIDTHS))}")
        job_id = whole(path, line, row, "job_id")
        if job_id in seen:
            raise broken_cell(path, line, "job_id", job_id, "an id that no other job has")
        seen.add(job_id)
        first, second, third = (number(path, line, row, name) / 1000 for name in COLUMNS[-3:])
        period = number(path, line, row, "iteration_time", least=1e-6) / 1000
        jobs.append(
            MuriJob(
                job_id,
                cards,
                number(path, line, row, "submit_time") / 1000,
                whole(path, line, row, "iterations", least=1),
                row["model_name"],
                period,
                (first, second, third),
            )
        )
    return tuple(sorted(jobs, key=lambda job: (job.submitted_s, job.id)))
