"""The public Pollux workloads: 160 elastic training jobs each, and what was published of them.

Source of the format: the artifact of Qiao et al., OSDI'21 (Apache-2.0). A folder holds `workloads/` (one CSV
each), `profiles/` (see `pollux_profiles`) and `results/` (completion times per job, JSON). How a job runs on
cards is `published.pollux_model`; this module only reads.
"""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from aliquot.core.errors import DocumentError, NotFoundError
from aliquot.traces.tables import broken_cell, read_table, whole

COLUMNS = ("name", "time", "application", "num_replicas", "batch_size")


class PolluxJob(msgspec.Struct, frozen=True):
    """One line of a workload. `cards` and `batch` are tuned, for schedulers that do not choose them."""

    name: str
    submitted_s: int
    application: str
    cards: int
    batch: int


class Published(msgspec.Struct, frozen=True):
    """Average completion time in s by workload name, as the authors' own simulator printed it."""

    scheduler: str
    averages: tuple[tuple[str, float], ...]

    def average(self, workload: str) -> float:
        """Seconds for `workload`; NotFoundError where none was published."""
        for name, value in self.averages:
            if name == workload:
                return value
        raise NotFoundError(f"no published average of {self.scheduler} for {workload}")


def list_workloads(folder: Path) -> list[str]:
    """Names of the workloads in `folder`, in order; raises NotFoundError where it holds none."""
    found = sorted(path.stem for path in (folder / "workloads").glob("*.csv"))
    if not found:
        raise NotFoundError(f"no Pollux workloads in {folder}: expected {folder / 'workloads' / '*.csv'}")
    return found


def read_workload(folder: Path, name: str, applications: frozenset[str]) -> tuple[PolluxJob, ...]:
    """The jobs of a workload by submit time, then as listed. `applications` are those with a profile."""
    known = list_workloads(folder)
    if name not in known:
        raise NotFoundError(f"no workload {name!r} in {folder}; there are {', '.join(known)}")
    path = folder / "workloads" / f"{name}.csv"
    jobs, seen = [], set()
    for line, row in enumerate(read_table(path, COLUMNS), start=2):
        if row["application"] not in applications:
            hint = f"one of {', '.join(sorted(applications))}"
            raise broken_cell(path, line, "application", row["application"], hint)
        if not row["name"] or row["name"] in seen:
            raise broken_cell(path, line, "name", row["name"], "a name that no other job has")
        seen.add(row["name"])
        jobs.append(
            PolluxJob(
                row["name"],
                whole(path, line, row, "time"),
                row["application"],
                whole(path, line, row, "num_replicas", least=1),
                whole(path, line, row, "batch_size", least=1),
            )
        )
    return tuple(sorted(jobs, key=lambda job: job.submitted_s))


def read_published(folder: Path, scheduler: str) -> Published:
    """What was published of `scheduler` ("pollux", "tiresias", "optimus") at the workloads' own load."""
    path = folder / "results" / f"{scheduler}-1.0.json"
    if not path.exists():
        raise NotFoundError(f"no published results of {scheduler!r}: expected {path}")
    try:
        averages = json.loads(path.read_text(encoding="utf-8"))["avgs"]
        pairs = tuple(sorted((str(name), float(value)) for name, value in averages.items()))
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise DocumentError(f"holds no averages: {problem!r}", file=str(path), field="avgs") from None
    return Published(scheduler, pairs)
