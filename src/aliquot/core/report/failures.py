"""What failure looks like, as counts: the consequences of missing one of the four goals.

Only what the events of a run prove is counted. What they cannot show is in the list too, as not measured and
why: a 0 there would be a lie.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

import msgspec

from aliquot.core.report.classes import total
from aliquot.core.report.divided import Division
from aliquot.core.report.metrics import Bilingual
from aliquot.core.report.readings import Readings


class Goal(Enum):
    """What a site is run for."""

    PERFORMANCE = "performance"
    UTILISATION = "utilisation"
    FAIRNESS = "fairness"
    STABILITY = "stability"


class Failure(msgspec.Struct, frozen=True):
    """One consequence. `unmeasured` says why there is no count, where a run does not show it."""

    id: str
    goal: Goal
    title: Bilingual
    unmeasured: Bilingual | None = None


class FailureCount(msgspec.Struct, frozen=True):
    """How often it came about; None: not measured."""

    id: str
    goal: Goal
    count: int | None


_NO_REPORTS: Final = Bilingual("no job reports its throughput", "没有作业上报吞吐量")
_NO_MEMORY_NEWS: Final = Bilingual("no event tells of running out of memory", "没有事件报告显存不足")
_NO_HEALTH: Final = Bilingual("no event ties a job's fault to its neighbours", "没有事件将故障与相邻作业关联")

FAILURES: Final = (
    Failure("slowed", Goal.PERFORMANCE, Bilingual("Jobs that ran below full speed", "未以全速运行过的作业")),
    Failure(
        "mfu",
        Goal.PERFORMANCE,
        Bilingual("Jobs below their own throughput (how far: MFU)", "未达自身吞吐量的作业（程度见 MFU）"),
        _NO_REPORTS,
    ),
    Failure(
        "out-of-memory",
        Goal.PERFORMANCE,
        Bilingual("Out-of-memory interruptions", "显存不足中断"),
        _NO_MEMORY_NEWS,
    ),
    Failure(
        "over-held",
        Goal.UTILISATION,
        Bilingual("Jobs holding cards of which they asked less than half", "申请不足一半却占用整卡的作业"),
    ),
    Failure(
        "scattered",
        Goal.UTILISATION,
        Bilingual(
            "Jobs that waited while enough cards were free, but scattered", "空闲卡足够但分散而等待的作业"
        ),
    ),
    Failure("queue-peak", Goal.UTILISATION, Bilingual("Most jobs waiting at once", "同时等待的最多作业数")),
    Failure(
        "left-waiting", Goal.UTILISATION, Bilingual("Jobs still waiting at the end", "结束时仍在等待的作业")
    ),
    Failure(
        "short-of-quota",
        Goal.FAIRNESS,
        Bilingual("Queues that wanted their quota and did not get all of it", "未获足额配额的队列"),
    ),
    Failure(
        "inversions",
        Goal.FAIRNESS,
        Bilingual(
            "Starts before an equal request of higher priority in the same queue",
            "同队列中先于更高优先级同类请求的启动",
        ),
    ),
    Failure(
        "taken-by-others",
        Goal.FAIRNESS,
        Bilingual("Jobs stopped for a job of another queue", "为其他队列作业而被停止的次数"),
    ),
    Failure("late", Goal.FAIRNESS, Bilingual("Promised times missed", "未兑现的时间承诺")),
    Failure("lost", Goal.STABILITY, Bilingual("Attempts lost with their node", "随节点丢失的尝试")),
    Failure(
        "evicted-again", Goal.STABILITY, Bilingual("Jobs stopped more than once", "被停止不止一次的作业")
    ),
    Failure(
        "spread",
        Goal.STABILITY,
        Bilingual("Faults spreading to other tenants", "故障波及其他租户"),
        _NO_HEALTH,
    ),
    Failure(
        "interference",
        Goal.STABILITY,
        Bilingual("Jobs slowed by neighbours on their cards", "被同卡邻居拖慢的作业"),
    ),
)

ALL_OF_IT: Final = 0.9995
"""Quota met from which a queue had all of it: 100.0 % as it is shown. Rounding to MiB is no shortfall."""

FAILURE_OF: Final = {failure.id: failure for failure in FAILURES}


def count_failures(readings: Readings, division: Division) -> tuple[FailureCount, ...]:
    """Every failure of the list, in its order."""
    cells = readings.cells
    short = sum(
        not queue.inner and queue.satisfaction is not None and queue.satisfaction < ALL_OF_IT
        for queue in division.queues
    )
    counts = {
        "slowed": total(cells, "slowed") if readings.speeds_known else None,
        "mfu": total(cells, "short") if total(cells, "peak_gflops") else None,
        "over-held": total(cells, "over_held"),
        "scattered": total(cells, "scattered"),
        "queue-peak": readings.waiting.most,
        "left-waiting": readings.waiting.jobs,
        "short-of-quota": short if readings.stated else None,
        "inversions": total(cells, "passed"),
        "taken-by-others": total(cells, "evicted_for_others"),
        "late": total(cells, "start_missed") + total(cells, "finish_missed"),
        "lost": total(cells, "lost"),
        "interference": total(cells, "hindered") if readings.speeds_known else None,
        "evicted-again": total(cells, "evicted_again"),
    }
    return tuple(FailureCount(failure.id, failure.goal, counts.get(failure.id)) for failure in FAILURES)
