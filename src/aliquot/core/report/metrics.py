"""Every figure of a scorecard: what it is called, its unit, which way is better, its window and denominator.

A figure without its denominator is an opinion. The ids are the field names of `Scorecard`.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

import msgspec


class Unit(Enum):
    """How a figure is to be read."""

    SHARE = "share"  # 0..1
    MS = "ms"
    MS2 = "ms^2"
    COUNT = "count"
    CARDS = "cards"
    CARD_HOURS = "card-hours"
    CENTS = "cents"
    RATIO = "ratio"


class Better(Enum):
    """Which way a figure should go."""

    HIGHER = "higher"
    LOWER = "lower"
    NEITHER = "neither"


class Group(Enum):
    """What a figure speaks of."""

    USE = "use"
    WASTE = "waste"
    TIME = "time"
    JOBS = "jobs"


class Bilingual(msgspec.Struct, frozen=True):
    """One text in two languages."""

    en: str
    zh: str


class Metric(msgspec.Struct, frozen=True):
    """One figure. `window` and `denominator` say over what it was taken."""

    id: str
    group: Group
    title: Bilingual
    unit: Unit
    better: Better
    window: Bilingual
    denominator: Bilingual


_RUN: Final = Bilingual(
    "from the start to the last completion, or as given", "从开始到最后一个作业完成，或指定的区间"
)
_SAMPLES: Final = Bilingual("mean of the samples taken", "各采样点的平均")
_JOBS: Final = Bilingual("all jobs seen", "全部作业")
_UP: Final = Bilingual("time of all cards whose node answers", "所有在线节点上的卡的时间")
_NONE: Final = Bilingual("none: a count", "无：计数")
_STARTED: Final = Bilingual("jobs that started; those still waiting are counted apart", "已启动的作业；仍在等待的另计")
_DONE: Final = Bilingual("jobs that succeeded", "成功完成的作业")
_TIME: Final = Bilingual("length of the window", "区间长度")


def _metric(
    key: str,
    group: Group,
    title: tuple[str, str],
    unit: Unit,
    better: Better,
    denominator: Bilingual,
    window: Bilingual = _RUN,
) -> Metric:
    return Metric(key, group, Bilingual(*title), unit, better, window, denominator)


_U, _B, _G = Unit, Better, Group

METRICS: Final[tuple[Metric, ...]] = (
    _metric("utilisation", _G.USE, ("Utilisation of all cards", "全部卡的利用率"), _U.SHARE, _B.HIGHER, _UP),
    _metric(
        "utilisation_allocated", _G.USE, ("Utilisation of allocated cards", "已分配卡的利用率"), _U.SHARE, _B.HIGHER,
        Bilingual("allocated card time whose activity is known", "活动率已知的已分配卡时间"),
    ),
    _metric("allocation", _G.USE, ("Allocation rate", "分配率"), _U.SHARE, _B.HIGHER, _UP),
    _metric(
        "memory_occupancy", _G.USE, ("Memory asked for by running jobs", "作业申请的显存占比"), _U.SHARE, _B.HIGHER,
        Bilingual("usable memory of all cards whose node answers", "所有在线节点上的卡的可用显存"),
    ),
    _metric(
        "memory_booked", _G.USE, ("Memory booked", "已记账的显存占比"), _U.SHARE, _B.NEITHER,
        Bilingual("usable memory of all cards whose node answers", "所有在线节点上的卡的可用显存"),
    ),
    _metric(
        "activity_unknown", _G.USE, ("Allocated time of unknown activity", "活动率未知的分配时间占比"), _U.SHARE, _B.LOWER,
        Bilingual("allocated card time", "已分配的卡时间"),
    ),
    _metric("idle_cards", _G.WASTE, ("Idle cards", "空闲卡"), _U.CARDS, _B.LOWER, _TIME),
    _metric(
        "surplus_cards", _G.WASTE, ("Cards held beyond what was asked for", "超出申请而占用的卡"), _U.CARDS, _B.LOWER, _TIME
    ),
    _metric("idle_money_cents", _G.WASTE, ("Money in idle cards", "空闲卡占用的资金"), _U.CENTS, _B.LOWER, _TIME),
    _metric(
        "surplus_money_cents", _G.WASTE, ("Money in cards held beyond the ask", "超额占用的卡的资金"), _U.CENTS, _B.LOWER, _TIME
    ),
    _metric(
        "fragmentation", _G.WASTE, ("Fragmentation (FGD)", "碎片率 (FGD)"), _U.SHARE, _B.LOWER,
        Bilingual("free compute of all cards open to work", "所有可调度卡的空闲算力"), _SAMPLES,
    ),
    _metric(
        "scatter", _G.WASTE, ("1 - largest free block / free cards", "1 - 最大空闲块 / 空闲卡"), _U.SHARE, _B.LOWER,
        Bilingual("free whole cards", "空闲整卡"),
    ),
    _metric(
        "blocked_card_hours", _G.WASTE, ("Free but scattered while a job waited", "有作业等待时分散的空闲卡"),
        _U.CARD_HOURS, _B.LOWER,
        Bilingual(
            "none: free cards x hours while the widest waiting request fits their sum but no node",
            "无：最宽的等待请求总量够但无一节点够时的 空闲卡 x 小时",
        ),
    ),
    _metric(
        "stranded_cards", _G.WASTE, ("Free cards stranded for lack of cpu or memory", "因缺 CPU 或内存而无法使用的空闲卡"),
        _U.CARDS, _B.LOWER, _TIME,
    ),
    _metric(
        "lost_card_hours", _G.WASTE, ("Cards of nodes that did not answer", "失联节点的卡"), _U.CARD_HOURS, _B.LOWER, _NONE
    ),
    _metric("makespan_ms", _G.TIME, ("Makespan", "总完成时间"), _U.MS, _B.LOWER, Bilingual("none: a time", "无：时间")),
    _metric("wait_mean_ms", _G.TIME, ("Wait, mean", "等待时间，平均"), _U.MS, _B.LOWER, _STARTED, _JOBS),
    _metric("wait_p50_ms", _G.TIME, ("Wait, median", "等待时间，中位数"), _U.MS, _B.LOWER, _STARTED, _JOBS),
    _metric("wait_p95_ms", _G.TIME, ("Wait, 95th percentile", "等待时间，95 分位"), _U.MS, _B.LOWER, _STARTED, _JOBS),
    _metric("wait_p99_ms", _G.TIME, ("Wait, 99th percentile", "等待时间，99 分位"), _U.MS, _B.LOWER, _STARTED, _JOBS),
    _metric("wait_max_ms", _G.TIME, ("Wait, longest", "等待时间，最长"), _U.MS, _B.LOWER, _STARTED, _JOBS),
    _metric(
        "wait_variance_ms2", _G.TIME, ("Wait, variance (read it beside the mean)", "等待时间，方差（须与平均同看）"),
        _U.MS2, _B.LOWER, _STARTED, _JOBS,
    ),
    _metric(
        "wait_training_ms", _G.TIME, ("Wait of training jobs, mean", "训练作业等待，平均"), _U.MS, _B.LOWER, _STARTED, _JOBS
    ),
    _metric(
        "slowdown", _G.TIME, ("Bounded slowdown, mean", "有界减速比，平均"), _U.RATIO, _B.LOWER,
        Bilingual("run time, at least 10 s; jobs that succeeded", "运行时间，至少 10 秒；成功完成的作业"), _JOBS,
    ),
    _metric("completion_mean_ms", _G.TIME, ("Completion, mean", "完成时间，平均"), _U.MS, _B.LOWER, _DONE, _JOBS),
    _metric(
        "completion_training_ms", _G.TIME, ("Completion of training jobs", "训练作业完成时间"), _U.MS, _B.LOWER, _DONE, _JOBS
    ),
    _metric(
        "completion_inference_ms", _G.TIME, ("Completion of inference jobs", "推理作业完成时间"), _U.MS, _B.LOWER, _DONE, _JOBS
    ),
    _metric("jobs", _G.JOBS, ("Jobs submitted", "提交的作业"), _U.COUNT, _B.NEITHER, _NONE, _JOBS),
    _metric("placed", _G.JOBS, ("Placed at least once", "至少放置过一次"), _U.COUNT, _B.HIGHER, _NONE, _JOBS),
    _metric("finished", _G.JOBS, ("Succeeded", "成功完成"), _U.COUNT, _B.HIGHER, _NONE, _JOBS),
    _metric("failed", _G.JOBS, ("Failed", "失败"), _U.COUNT, _B.LOWER, _NONE, _JOBS),
    _metric("waiting", _G.JOBS, ("Still waiting at the end", "结束时仍在等待"), _U.COUNT, _B.LOWER, _NONE, _JOBS),
    _metric("never", _G.JOBS, ("Can never fit", "永远无法放置"), _U.COUNT, _B.LOWER, _NONE, _JOBS),
    _metric("withdrawn", _G.JOBS, ("Withdrawn while waiting", "等待中撤回"), _U.COUNT, _B.LOWER, _NONE, _JOBS),
    _metric("cancelled", _G.JOBS, ("Cancelled after placement", "放置后取消"), _U.COUNT, _B.NEITHER, _NONE, _JOBS),
    _metric("attempts", _G.JOBS, ("Attempts", "尝试次数"), _U.COUNT, _B.NEITHER, _NONE, _JOBS),
    _metric("lost", _G.JOBS, ("Attempts lost with their node", "随节点丢失的尝试"), _U.COUNT, _B.LOWER, _NONE, _JOBS),
    _metric("refused", _G.JOBS, ("Starts refused by a node", "被节点拒绝的启动"), _U.COUNT, _B.LOWER, _NONE, _JOBS),
    _metric("moved", _G.JOBS, ("Moves", "迁移次数"), _U.COUNT, _B.NEITHER, _NONE, _JOBS),
)  # fmt: skip  # a table reads by columns

METRIC_OF: Final = {metric.id: metric for metric in METRICS}
