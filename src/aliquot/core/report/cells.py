"""A class of jobs: its key, its counts, and the times of those that started and finished."""

from __future__ import annotations

from array import array
from typing import Final, NamedTuple

from aliquot.core.jobs import Job
from aliquot.core.report.gauges import Gauge
from aliquot.core.report.machines import Share
from aliquot.core.steps import Cause
from aliquot.core.units import FULL

CPU_ONLY: Final = "cpu"
SHARED: Final = "shared"
WIDE: Final = 8
"""Whole cards from which on a job is wide: most machines have eight."""

BANDS: Final = (CPU_ONLY, SHARED, "1", "2-4", "5-7", "8", "9+")
"""Widths as they are usually told apart, narrow to wide."""

COUNTS: Final = (
    "attempts", "cancelled", "evicted_again", "evicted_for_others", "failed", "finish_met", "finish_missed",
    "finished", "held", "hindered", "lost", "lost_work", "moved", "over_held", "passed", "placed", "refused",
    "resized", "restart", "scattered", "short", "slowed", "start_met", "start_missed", "started", "submitted",
    "together", "unready", "withdrawn",
)  # fmt: skip  # one list, not one name a line
"""What a cell counts. `held`, `unready`, `restart` and `lost_work` are in milli-card ms; see `toll`."""


class ClassKey(NamedTuple):
    """What a job is counted under: stage, queue, and width (`cpu`, `shared`, or whole cards in all)."""

    stage: str
    queue: str
    width: str


class Cell:
    """All jobs of one class: counts, what they hold, and the times of those that started and finished."""

    __slots__ = (*COUNTS, "evicted", "gflops", "key", "lag", "peak", "recoveries", "rhos", "runs", "share",
                 "turnarounds", "waits", "waits_again")  # fmt: skip  # one list, not one name a line

    submitted: int
    placed: int
    started: int
    finished: int
    failed: int
    cancelled: int  # given up while holding
    withdrawn: int  # given up while waiting
    attempts: int
    lost: int
    refused: int
    moved: int
    resized: int
    held: int  # by attempts, from grant to end
    unready: int  # of it: before they ran, and while they ended
    restart: int  # of it: getting back to where they were
    lost_work: int  # of it: done again later, since it was after the last checkpoint
    evicted_again: int  # jobs evicted more than once
    evicted_for_others: int  # evictions for a job of another queue
    hindered: int  # jobs that ran slower at some time for their neighbours on a card
    short: int  # jobs that report their throughput and ran below it at some time
    slowed: int  # jobs that ran below full speed at some time
    together: int  # jobs that shared their whole cards with others at some time
    over_held: int  # jobs that held cards of which they had asked for less than half
    scattered: int  # jobs that waited while enough cards were free, on too many nodes
    passed: int  # starts before an equal request of higher priority in the same queue
    start_met: int
    start_missed: int
    finish_met: int
    finish_missed: int

    def __init__(self, key: ClassKey, at: int) -> None:
        for name in COUNTS:
            setattr(self, name, 0)
        self.key = key
        self.share = Share(at)
        self.gflops, self.peak = Gauge(at), Gauge(at)  # of jobs that report, what they do, and could do
        self.lag = Gauge(at)  # milli-cards' worth of speed that neighbours on whole cards cost
        self.evicted: dict[Cause, int] = {}
        self.waits = array("q")  # first start - submission, ms, of every job that started
        self.waits_again = array("q")  # from each eviction or loss to the next start
        self.recoveries = array("q")  # of these, after a loss
        self.runs = array("q")  # of every job that succeeded: ms of work that counted
        self.turnarounds = array("q")  # and end - submission, in the same order
        self.rhos = array("q")  # and how much longer it took than with its fair part alone, in thousandths


def class_of(job: Job) -> ClassKey:
    """The class of a job."""
    return ClassKey(job.stage.value, job.queue, width_of(job))


def width_of(job: Job) -> str:
    """`cpu`, `shared`, or the number of whole cards of all members."""
    cards = sum(request.cards for request in job.members)
    if not cards:
        return CPU_ONLY
    if any(request.cards and not request.whole for request in job.members):
        return SHARED
    return str(cards)


def band_of(width: str) -> str:
    """The band of a width: `2-4` for `3`, `9+` for `16`."""
    if not width.isdigit():
        return width
    cards = int(width)
    if cards > WIDE:
        return "9+"
    if cards in {1, WIDE}:
        return width
    return "2-4" if cards < 5 else "5-7"


def is_wide(width: str) -> bool:
    """Whether a width is of eight whole cards or more."""
    return width.isdigit() and int(width) >= WIDE


def asked_milli(job: Job) -> int:
    """Milli-cards asked for, in all; where only memory is said, the whole card it may keep from others."""
    return sum(
        request.cards * (FULL if request.whole else request.ask.compute_milli or FULL)
        for request in job.members
    )
