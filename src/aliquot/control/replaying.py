"""What a replay is asked for, and what one in a published simulator gives back.

Values only. Scenarios come from trace readers that `bootstrap` hands in; a replay in a published simulator
never sees the planner, so its result is no scorecard: one average beside the one that was printed.
"""

from __future__ import annotations

from enum import Enum
from pathlib import Path

import msgspec


class Estimates(Enum):
    """What the planner is told of how long a job will run."""

    EXACT = "exact"  # the run time itself
    OVER = "over"  # 1 to 5 times as much, evenly
    WRONG10 = "wrong10"  # a tenth to ten times, evenly over the orders of magnitude
    RECORDED = "recorded"  # what the history says its owner asked for; unknown where it says nothing
    NONE = "none"  # nothing


class PhillyAsk(msgspec.Struct, frozen=True):
    """The public month of Philly, or the beginning of it."""

    estimates: Estimates = Estimates.EXACT
    seed: int = 0  # of the estimates' errors
    days: int | None = None  # only jobs submitted in the first days
    jobs: int | None = None  # only the first so many
    folder: Path | None = None  # None: where the traces usually are


class KueueAsk(msgspec.Struct, frozen=True):
    """One of Kueue's public performance shapes, or the beginning of it."""

    shape: str = "baseline"
    jobs: int | None = None


class Site(msgspec.Struct, frozen=True):
    """The machines a history is replayed on: documents, or so many nodes of so many cards of one model."""

    documents: tuple[Path, ...] = ()
    nodes: int | None = None
    cards: int | None = None
    model: str | None = None


class HistoryAsk(msgspec.Struct, frozen=True):
    """A site's own history. `columns`: the file that says what its columns mean; sacct needs none."""

    file: Path
    site: Site
    columns: Path | None = None
    queue_by: str = "partition"  # sacct: the fields that name the queue, joined by slashes
    estimates: Estimates = Estimates.RECORDED
    seed: int = 0
    jobs: int | None = None


class HistoryColumns(msgspec.Struct, frozen=True):
    """Which column of a table holds what, and in which unit. None: no column says it."""

    submit: str
    cards: str
    id: str | None = None
    start: str | None = None
    end: str | None = None
    duration: str | None = None
    estimate: str | None = None
    limit: str | None = None  # after which a job was ended
    nodes: str | None = None
    memory: str | None = None  # GPU memory of each card
    model: str | None = None
    queue: str | None = None
    user: str | None = None
    priority: str | None = None
    time_form: str = "iso"  # or seconds, milliseconds, a pattern such as %d.%m.%Y %H:%M
    duration_unit: str = "seconds"  # or milliseconds, minutes, hours, days, clock
    estimate_unit: str = "seconds"
    limit_unit: str = "seconds"
    memory_unit: str = "MiB"  # of numbers without one
    delimiter: str = ","
    unknown: tuple[str, ...] = ("", "unknown", "none", "null", "na", "n/a", "nan", "-")
    share: bool = False  # a job that names GPU memory takes that much of a card, not a whole one


class PublishedAsk(msgspec.Struct, frozen=True):
    """One run in a published simulator."""

    workload: str
    policy: str
    folder: Path | None = None


class PublishedRun(msgspec.Struct, frozen=True):
    """Our run in a published simulator beside what its authors printed. Times: s from submission to end."""

    model: str  # in what and on what: the words to show beside every figure
    workload: str
    jobs: int
    policy: str
    average_s: float
    worst_s: float
    theirs: str  # whose figure it stands beside
    published_s: float
    ratio: float  # ours to theirs; below 1 is quicker
    tuned_on: bool = False  # our rules' numbers were chosen on this one
    reproduces: bool = False  # the same rules as theirs, run again
