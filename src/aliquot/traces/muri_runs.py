"""Muri traces under a policy by name, beside what the authors printed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from aliquot.control.naming import not_found
from aliquot.control.replaying import PublishedAsk, PublishedRun
from aliquot.core.columns import I64
from aliquot.core.errors import NotFoundError
from aliquot.traces.muri import PUBLISHED, TRACES, read_trace
from aliquot.traces.muri_colocate import Colocated
from aliquot.traces.published.muri_model import F64, Chooser, Shortest, Turn, read_columns, replay
from aliquot.traces.published.muri_tiresias import replay_tiresias

MODEL: Final = "in the Muri authors' published simulator model and traces"
TUNED_ON: Final = frozenset({"trace1", "trace3"})
THEIRS: Final = {
    "srtf": ("srtf", "SRTF"),
    "srsf": ("srsf", "SRSF"),
    "tiresias": ("tiresias", "Tiresias-L"),
    "share-s": ("muri_s", "Muri-S"),
    "share-l": ("muri_l", "Muri-L"),
}
"""Policy -> the published figure it stands beside, and its name."""

Progress = Callable[[int, int], None]


def list_muri() -> tuple[str, ...]:
    """Every trace of which averages were published."""
    return TRACES


def run_muri(folder: Path, ask: PublishedAsk, progress: Progress | None = None) -> PublishedRun:
    """One trace under one policy. `folder` holds `muri/`; a trace is 1 to 4, 1p (all at once), trace1_pr."""
    name = trace_name(ask.workload)
    if ask.policy not in THEIRS:
        raise not_found("policy", ask.policy, THEIRS)
    if not (folder / "muri").is_dir():
        raise NotFoundError(f"no Muri traces in {folder}: expected {folder / 'muri' / 'trace1.csv'}")
    columns, sharing = read_columns(read_trace(folder / "muri", name))
    if ask.policy == "tiresias":
        times = replay_tiresias(columns)
    else:
        chooser: Chooser = (
            Shortest(columns, by_cards=ask.policy == "srsf")
            if ask.policy in {"srtf", "srsf"}
            else Colocated(columns, sharing, sized=ask.policy == "share-s")
        )
        times = replay(columns, _Watched(chooser, len(columns.cards), progress) if progress else chooser)
    field, theirs = THEIRS[ask.policy]
    published, average = float(getattr(PUBLISHED[name], field)), float(times.mean())
    ours = ask.policy.startswith("share")
    return PublishedRun(
        model=MODEL,
        workload=name,
        jobs=len(times),
        policy=ask.policy,
        average_s=average,
        worst_s=float(times.max()),
        theirs=theirs,
        published_s=published,
        ratio=average / published,
        tuned_on=ours and name in TUNED_ON,
        reproduces=not ours,
    )


def trace_name(word: str) -> str:
    """`1`, `trace1` -> trace1; `1'`, `1p`, `trace1_pr` -> trace1_pr. Raises NotFoundError."""
    bare = word.casefold().removeprefix("trace")
    number, rest = bare[:1], bare[1:]
    name = f"trace{number}" + ("" if not rest else "_pr" if rest in {"'", "p", "_pr"} else f" {rest}")
    if name not in TRACES:
        raise not_found(
            "Muri trace", word, [*(trace.removeprefix("trace").replace("_pr", "p") for trace in TRACES)]
        )
    return name


class _Watched:
    """A chooser that says how many jobs are over."""

    def __init__(self, chooser: Chooser, jobs: int, progress: Progress) -> None:
        self._chooser, self._jobs, self._progress = chooser, jobs, progress
        self._came = 0

    def choose(self, active: I64, left: F64, had_s: F64) -> Turn:
        """What the chooser within chooses."""
        self._came = max(self._came, int(active.max(initial=-1)) + 1)
        self._progress(self._came - len(active), self._jobs)
        return self._chooser.choose(active, left, had_s)
