"""Pollux workloads under a policy by name, beside what the authors' simulator printed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from aliquot.control.naming import not_found
from aliquot.control.replaying import PublishedAsk, PublishedRun
from aliquot.core.errors import NotFoundError
from aliquot.traces.pollux import list_workloads, read_published, read_workload
from aliquot.traces.pollux_elastic import ElasticChooser
from aliquot.traces.pollux_profiles import read_profiles
from aliquot.traces.published.pollux_model import Chooser, Nodes, Run, Speeds, replay
from aliquot.traces.published.pollux_tiresias import Tiresias

MODEL: Final = "in the Pollux authors' published simulator model and traces"
TUNED_ON: Final = frozenset({"workload-1", "workload-2", "workload-3", "workload-4"})
THEIRS: Final = {"tiresias": "tiresias", "elastic": "pollux"}
TITLES: Final = {"tiresias": "Tiresias", "pollux": "Pollux"}
WORKLOADS: Final = tuple(str(number) for number in range(1, 9))

Progress = Callable[[int, int], None]


def run_pollux(folder: Path, ask: PublishedAsk, progress: Progress | None = None) -> PublishedRun:
    """One workload under one policy. `folder` holds `pollux/`; a workload is 1 to 8 or workload-1."""
    if ask.policy not in THEIRS:
        raise not_found("policy", ask.policy, THEIRS)
    folder = folder / "pollux"
    if not folder.is_dir():
        raise NotFoundError(f"no Pollux traces: expected {folder / 'workloads' / 'workload-1.csv'}")
    known = list_workloads(folder)
    name = ask.workload if ask.workload in known else f"workload-{ask.workload}"
    if name not in known:
        raise not_found(
            "Pollux workload", ask.workload, (workload.removeprefix("workload-") for workload in known)
        )
    speeds = {app: Speeds(profile) for app, profile in read_profiles(folder / "profiles").items()}
    jobs = read_workload(folder, name, frozenset(speeds))
    elastic = ask.policy == "elastic"
    chooser: Chooser = ElasticChooser() if elastic else Tiresias()
    runs = replay(
        jobs, speeds, _Watched(chooser, len(jobs), progress) if progress else chooser, tuned=elastic
    )
    times = [(run.ended or 0) - run.job.submitted_s for run in runs]
    average, theirs = sum(times) / len(times), THEIRS[ask.policy]
    published = read_published(folder, theirs).average(name)
    return PublishedRun(
        model=MODEL,
        workload=name,
        jobs=len(times),
        policy=ask.policy,
        average_s=average,
        worst_s=float(max(times)),
        theirs=TITLES[theirs],
        published_s=published,
        ratio=average / published,
        tuned_on=elastic and name in TUNED_ON,
        reproduces=not elastic,
    )


class _Watched:
    """A chooser that says how many jobs are over."""

    def __init__(self, chooser: Chooser, jobs: int, progress: Progress) -> None:
        self._chooser, self._jobs, self._progress = chooser, jobs, progress
        self._came: set[str] = set()

    def choose(self, now: int, jobs: Sequence[Run]) -> Mapping[str, Nodes]:
        """What the chooser within chooses."""
        self._came.update(run.name for run in jobs)
        self._progress(len(self._came) - len(jobs), self._jobs)
        return self._chooser.choose(now, jobs)
