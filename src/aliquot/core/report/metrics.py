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
    CARD_MINUTES = "card-minutes"
    CENTS = "cents"
    RATIO = "ratio"
    INDEX = "index"  # 0..1, of no unit


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
    FAIRNESS = "fairness"
    STOPS = "stops"
    JOBS = "jobs"


class Bilingual(msgspec.Struct, frozen=True):
    """One text in two languages."""

    en: str
    zh: str


class Over(Enum):
    """What a figure was taken over: its denominator."""

    CARDS_UP = "cards-up"
    MEMORY_UP = "memory-up"
    ALLOCATED = "allocated"
    ALLOCATED_KNOWN = "allocated-known"
    FREE_COMPUTE = "free-compute"
    FREE_CARDS = "free-cards"
    BLOCKED = "blocked"
    TIME = "time"
    STARTED = "started"
    DONE = "done"
    RUNS = "runs"
    DUE = "due"
    USED = "used"
    QUEUES = "queues"
    FAIR_PART = "fair-part"
    PROMISED = "promised"
    HELD = "held"
    STOPPED = "stopped"
    PEAK = "peak"
    NONE = "none"


class Span(Enum):
    """When it was taken: its window."""

    RUN = "run"
    SAMPLES = "samples"
    OFFERED_FULL = "offered-full"
    OFFERED_LAST = "offered-last"
    JOBS = "jobs"


class Metric(msgspec.Struct, frozen=True):
    """One figure. `window` and `denominator` say over what it was taken."""

    id: str
    group: Group
    title: Bilingual
    unit: Unit
    better: Better
    over: Over
    span: Span
    window: Bilingual
    denominator: Bilingual


def is_silent(metric: Metric, value: float | None) -> bool:
    """Whether a figure has nothing to say: it is unknown, or 0 where that is not the worst it could be."""
    return value is None or (value == 0 and metric.better is not Better.HIGHER)


WINDOWS: Final = {
    Span.RUN: Bilingual("from the start to the last completion, or as given", "从开始到最后完成，或指定区间"),
    Span.SAMPLES: Bilingual("mean of the samples, each for as long as it stood", "采样值按持续时间加权平均"),
    Span.JOBS: Bilingual("all jobs seen", "全部作业"),
    Span.OFFERED_FULL: Bilingual(
        "mean over the arrivals at 100 % offered", "提交负载 100 % 处各次到达的平均"
    ),
    Span.OFFERED_LAST: Bilingual(
        "mean over the arrivals at the last percent", "最后一个百分点各次到达的平均"
    ),
}

DENOMINATORS: Final = {
    Over.CARDS_UP: Bilingual("time of all cards whose node answers", "全部在线卡的时间"),
    Over.MEMORY_UP: Bilingual("usable memory of all cards whose node answers", "全部在线卡的可用显存"),
    Over.ALLOCATED: Bilingual("allocated card time", "已分配的卡时间"),
    Over.ALLOCATED_KNOWN: Bilingual("allocated card time of known activity", "活动率已知的分配卡时间"),
    Over.FREE_COMPUTE: Bilingual("free compute of cards open to work", "可调度卡的空闲算力"),
    Over.FREE_CARDS: Bilingual("free whole cards", "空闲整卡"),
    Over.BLOCKED: Bilingual(
        "none: free cards x hours while the widest waiting request fits their sum but no single node",
        "无：最宽的等待请求总量足够但无单节点可容纳期间的空闲卡时",
    ),
    Over.TIME: Bilingual("length of the window", "区间长度"),
    Over.STARTED: Bilingual(
        "jobs that started; those still waiting are counted apart", "已启动的作业；等待中的另计"
    ),
    Over.DONE: Bilingual("jobs that succeeded", "成功完成的作业"),
    Over.RUNS: Bilingual("run time, at least 10 s, of jobs that succeeded", "成功作业的运行时间，至少 10 秒"),
    Over.DUE: Bilingual(
        "what queues wanted, up to their nominal, of the resource least satisfied",
        "各队列在名义配额内的需求（满足度最低的资源）",
    ),
    Over.USED: Bilingual("what queues used, of the resource most borrowed", "各队列的用量（借用最多的资源）"),
    Over.QUEUES: Bilingual(
        "queues that wanted anything, by use over what they were entitled to and wanted",
        "有需求的队列，按用量与应得需求之比",
    ),
    Over.FAIR_PART: Bilingual(
        "jobs that succeeded; time taken over run time x contention on average, at least 1",
        "成功作业；用时与（运行时间 × 平均争用，至少 1）之比",
    ),
    Over.PROMISED: Bilingual("promises that are decided", "已见分晓的承诺"),
    Over.HELD: Bilingual(
        "card time that attempts held, from grant to end", "各次尝试从授予到结束的占用卡时间"
    ),
    Over.STOPPED: Bilingual("starts after an eviction, a refusal or a loss", "驱逐、拒绝或丢失后的再次启动"),
    Over.PEAK: Bilingual("peak FLOP/s of the cards held", "占用卡的峰值算力"),
    Over.NONE: Bilingual("none", "无"),
}

_ROWS: Final = (
    ("utilisation", Group.USE, Unit.SHARE, Better.HIGHER, Over.CARDS_UP, Span.RUN),
    ("utilisation_allocated", Group.USE, Unit.SHARE, Better.HIGHER, Over.ALLOCATED_KNOWN, Span.RUN),
    ("allocation_full", Group.USE, Unit.SHARE, Better.HIGHER, Over.CARDS_UP, Span.OFFERED_FULL),
    ("allocation_last", Group.USE, Unit.SHARE, Better.HIGHER, Over.CARDS_UP, Span.OFFERED_LAST),
    ("allocation", Group.USE, Unit.SHARE, Better.HIGHER, Over.CARDS_UP, Span.RUN),
    ("memory_occupancy", Group.USE, Unit.SHARE, Better.HIGHER, Over.MEMORY_UP, Span.RUN),
    ("memory_booked", Group.USE, Unit.SHARE, Better.NEITHER, Over.MEMORY_UP, Span.RUN),
    ("activity_unknown", Group.USE, Unit.SHARE, Better.LOWER, Over.ALLOCATED, Span.RUN),
    ("idle_cards", Group.WASTE, Unit.CARDS, Better.LOWER, Over.TIME, Span.RUN),
    ("surplus_cards", Group.WASTE, Unit.CARDS, Better.LOWER, Over.TIME, Span.RUN),
    ("idle_money_cents", Group.WASTE, Unit.CENTS, Better.LOWER, Over.TIME, Span.RUN),
    ("surplus_money_cents", Group.WASTE, Unit.CENTS, Better.LOWER, Over.TIME, Span.RUN),
    ("fragmentation", Group.WASTE, Unit.SHARE, Better.LOWER, Over.FREE_COMPUTE, Span.SAMPLES),
    ("scatter", Group.WASTE, Unit.SHARE, Better.LOWER, Over.FREE_CARDS, Span.RUN),
    ("blocked_card_hours", Group.WASTE, Unit.CARD_HOURS, Better.LOWER, Over.BLOCKED, Span.RUN),
    ("stranded_cards", Group.WASTE, Unit.CARDS, Better.LOWER, Over.TIME, Span.RUN),
    ("lost_card_hours", Group.WASTE, Unit.CARD_HOURS, Better.LOWER, Over.NONE, Span.RUN),
    ("makespan_ms", Group.TIME, Unit.MS, Better.LOWER, Over.NONE, Span.RUN),
    ("wait_mean_ms", Group.TIME, Unit.MS, Better.LOWER, Over.STARTED, Span.JOBS),
    ("wait_p50_ms", Group.TIME, Unit.MS, Better.LOWER, Over.STARTED, Span.JOBS),
    ("wait_p95_ms", Group.TIME, Unit.MS, Better.LOWER, Over.STARTED, Span.JOBS),
    ("wait_p99_ms", Group.TIME, Unit.MS, Better.LOWER, Over.STARTED, Span.JOBS),
    ("wait_max_ms", Group.TIME, Unit.MS, Better.LOWER, Over.STARTED, Span.JOBS),
    ("wait_variance_ms2", Group.TIME, Unit.MS2, Better.LOWER, Over.STARTED, Span.JOBS),
    ("wait_training_ms", Group.TIME, Unit.MS, Better.LOWER, Over.STARTED, Span.JOBS),
    ("wait_wide_ms", Group.TIME, Unit.MS, Better.LOWER, Over.STARTED, Span.JOBS),
    ("wait_again_ms", Group.TIME, Unit.MS, Better.LOWER, Over.STOPPED, Span.JOBS),
    ("slowdown", Group.TIME, Unit.RATIO, Better.LOWER, Over.RUNS, Span.JOBS),
    ("crowd_ms", Group.TIME, Unit.MS, Better.LOWER, Over.NONE, Span.RUN),
    ("neighbour_card_hours", Group.TIME, Unit.CARD_HOURS, Better.LOWER, Over.NONE, Span.RUN),
    ("completion_mean_ms", Group.TIME, Unit.MS, Better.LOWER, Over.DONE, Span.JOBS),
    ("completion_training_ms", Group.TIME, Unit.MS, Better.LOWER, Over.DONE, Span.JOBS),
    ("completion_inference_ms", Group.TIME, Unit.MS, Better.LOWER, Over.DONE, Span.JOBS),
    ("quota_satisfaction", Group.FAIRNESS, Unit.SHARE, Better.HIGHER, Over.DUE, Span.RUN),
    ("borrowed", Group.FAIRNESS, Unit.SHARE, Better.NEITHER, Over.USED, Span.RUN),
    ("jain", Group.FAIRNESS, Unit.INDEX, Better.NEITHER, Over.QUEUES, Span.RUN),
    ("overdrawn_ms", Group.FAIRNESS, Unit.MS, Better.LOWER, Over.NONE, Span.RUN),
    ("overpromised_ms", Group.FAIRNESS, Unit.MS, Better.LOWER, Over.NONE, Span.RUN),
    ("unfair", Group.FAIRNESS, Unit.SHARE, Better.LOWER, Over.FAIR_PART, Span.JOBS),
    ("rho_mean", Group.FAIRNESS, Unit.RATIO, Better.LOWER, Over.FAIR_PART, Span.JOBS),
    ("rho_p95", Group.FAIRNESS, Unit.RATIO, Better.LOWER, Over.FAIR_PART, Span.JOBS),
    ("start_by_met", Group.FAIRNESS, Unit.SHARE, Better.HIGHER, Over.PROMISED, Span.JOBS),
    ("finish_by_met", Group.FAIRNESS, Unit.SHARE, Better.HIGHER, Over.PROMISED, Span.JOBS),
    ("goodput", Group.STOPS, Unit.SHARE, Better.HIGHER, Over.HELD, Span.RUN),
    ("mfu", Group.STOPS, Unit.SHARE, Better.HIGHER, Over.PEAK, Span.RUN),
    ("evicted", Group.STOPS, Unit.COUNT, Better.LOWER, Over.NONE, Span.RUN),
    ("evicted_again", Group.STOPS, Unit.COUNT, Better.LOWER, Over.NONE, Span.RUN),
    ("lost_work_card_minutes", Group.STOPS, Unit.CARD_MINUTES, Better.LOWER, Over.NONE, Span.RUN),
    ("restart_card_minutes", Group.STOPS, Unit.CARD_MINUTES, Better.LOWER, Over.NONE, Span.RUN),
    ("unready_card_minutes", Group.STOPS, Unit.CARD_MINUTES, Better.LOWER, Over.NONE, Span.RUN),
    ("recovery_ms", Group.STOPS, Unit.MS, Better.LOWER, Over.STOPPED, Span.JOBS),
    ("jobs", Group.JOBS, Unit.COUNT, Better.NEITHER, Over.NONE, Span.JOBS),
    ("placed", Group.JOBS, Unit.COUNT, Better.HIGHER, Over.NONE, Span.JOBS),
    ("finished", Group.JOBS, Unit.COUNT, Better.HIGHER, Over.NONE, Span.JOBS),
    ("failed", Group.JOBS, Unit.COUNT, Better.LOWER, Over.NONE, Span.JOBS),
    ("waiting", Group.JOBS, Unit.COUNT, Better.LOWER, Over.NONE, Span.JOBS),
    ("never", Group.JOBS, Unit.COUNT, Better.LOWER, Over.NONE, Span.JOBS),
    ("withdrawn", Group.JOBS, Unit.COUNT, Better.LOWER, Over.NONE, Span.JOBS),
    ("cancelled", Group.JOBS, Unit.COUNT, Better.NEITHER, Over.NONE, Span.JOBS),
    ("attempts", Group.JOBS, Unit.COUNT, Better.NEITHER, Over.NONE, Span.JOBS),
    ("lost", Group.JOBS, Unit.COUNT, Better.LOWER, Over.NONE, Span.JOBS),
    ("refused", Group.JOBS, Unit.COUNT, Better.LOWER, Over.NONE, Span.JOBS),
    ("moved", Group.JOBS, Unit.COUNT, Better.NEITHER, Over.NONE, Span.JOBS),
    ("resized", Group.JOBS, Unit.COUNT, Better.NEITHER, Over.NONE, Span.JOBS),
    ("together", Group.JOBS, Unit.COUNT, Better.NEITHER, Over.NONE, Span.JOBS),
)

_TITLES: Final = {
    "utilisation": ("Utilisation of all cards", "全部卡的利用率"),
    "utilisation_allocated": ("Utilisation of allocated cards", "已分配卡的利用率"),
    "allocation_full": ("Allocation at 100 % offered", "提交负载 100 % 时的分配率"),
    "allocation_last": ("Allocation at the most offered", "最大提交负载时的分配率"),
    "allocation": ("Allocation rate", "分配率"),
    "memory_occupancy": ("Memory occupancy, as asked for", "显存占用率（按申请）"),
    "memory_booked": ("Memory booked", "已记账显存占比"),
    "activity_unknown": ("Allocated time of unknown activity", "活动率未知的分配时间"),
    "idle_cards": ("Idle cards", "空闲卡"),
    "surplus_cards": ("Cards held beyond what was asked for", "超出申请而占用的卡"),
    "idle_money_cents": ("Money in idle cards", "空闲卡占用的资金"),
    "surplus_money_cents": ("Money in cards held beyond the ask", "超额占用的卡的资金"),
    "fragmentation": ("Fragmentation of free compute (FGD)", "空闲算力碎片率 (FGD)"),
    "scatter": ("1 - largest free block / free cards", "1 - 最大空闲块 / 空闲卡"),
    "blocked_card_hours": ("Free but scattered while a job waited", "有作业等待时被打散的空闲卡"),
    "stranded_cards": ("Free cards short of cpu or host memory", "因缺 CPU 或内存而闲置的卡"),
    "lost_card_hours": ("Cards of nodes that did not answer", "失联节点的卡"),
    "makespan_ms": ("Makespan", "总完成时间"),
    "wait_mean_ms": ("Wait, mean", "等待时间，平均"),
    "wait_p50_ms": ("Wait, median", "等待时间，中位数"),
    "wait_p95_ms": ("Wait, 95th percentile", "等待时间，95 分位"),
    "wait_p99_ms": ("Wait, 99th percentile", "等待时间，99 分位"),
    "wait_max_ms": ("Wait, longest", "等待时间，最长"),
    "wait_variance_ms2": ("Wait, variance (only beside the mean)", "等待时间方差（须与平均同看）"),
    "wait_training_ms": ("Wait of training jobs, mean", "训练作业等待，平均"),
    "crowd_ms": ("Crowded: busy cards, jobs held up", "拥挤：卡忙且作业等待或变慢"),
    "neighbour_card_hours": ("Speed lost to neighbours on a card", "因同卡邻居损失的速度"),
    "slowdown": ("Bounded slowdown, mean", "有界减速比，平均"),
    "completion_mean_ms": ("Submission to completion, mean", "从提交到完成，平均"),
    "completion_training_ms": ("Completion of training jobs, mean", "训练作业完成时间，平均"),
    "completion_inference_ms": ("Completion of inference jobs, mean", "推理作业完成时间，平均"),
    "jobs": ("Jobs submitted", "提交的作业"),
    "placed": ("Placed at least once", "至少放置过一次"),
    "finished": ("Succeeded", "成功完成"),
    "wait_wide_ms": ("Wait of jobs of 8 cards or more, mean", "8 卡及以上作业的平均等待"),
    "wait_again_ms": ("Wait after being stopped, mean", "被停止后的平均再等待"),
    "quota_satisfaction": ("Quota satisfaction", "配额满足度"),
    "borrowed": ("Borrowed of what was used", "用量中的借用比例"),
    "jain": ("Jain index over queues (never alone)", "队列间 Jain 指数（不单独使用）"),
    "overdrawn_ms": ("A queue used more than it may, the longest", "队列超出其上限的最长时间"),
    "overpromised_ms": ("The pool had less than it promised", "资源池少于名义配额总和的时间"),
    "unfair": ("Jobs slower than 1.05 x their fair part", "慢于公平份额 1.05 倍的作业"),
    "rho_mean": ("Finish-time fairness, mean", "完成时间公平性，平均"),
    "rho_p95": ("Finish-time fairness, 95th percentile", "完成时间公平性，95 分位"),
    "start_by_met": ("Promised starts kept", "按承诺时间启动"),
    "finish_by_met": ("Promised ends kept", "按承诺时间完成"),
    "goodput": ("Goodput: progress that stayed", "有效产出：保留下来的进展"),
    "mfu": ("Model FLOPs utilisation (MFU)", "模型算力利用率 (MFU)"),
    "evicted": ("Evictions", "驱逐次数"),
    "evicted_again": ("Jobs evicted more than once", "被驱逐不止一次的作业"),
    "lost_work_card_minutes": ("Work lost at evictions and losses", "因驱逐和丢失而损失的工作"),
    "restart_card_minutes": ("Card time spent restarting", "重启占用的卡时间"),
    "unready_card_minutes": ("Card time held before running or while ending", "启动前与结束中占用的卡时间"),
    "recovery_ms": ("Loss of a node to running again, mean", "节点丢失到恢复运行，平均"),
    "failed": ("Failed", "失败"),
    "waiting": ("Still waiting at the end", "结束时仍在等待"),
    "never": ("Can never fit", "永远无法放置"),
    "withdrawn": ("Withdrawn while waiting", "等待中撤回"),
    "cancelled": ("Cancelled after placement", "放置后取消"),
    "attempts": ("Attempts", "尝试次数"),
    "lost": ("Attempts lost with their node", "随节点丢失的尝试"),
    "refused": ("Starts refused by a node", "被节点拒绝的启动"),
    "moved": ("Moves", "迁移次数"),
    "resized": ("Changes of width", "宽度变更次数"),
    "together": ("Jobs that shared whole cards", "共用整卡的作业"),
}

METRICS: Final = tuple(
    Metric(key, group, Bilingual(*_TITLES[key]), unit, better, over, span, WINDOWS[span], DENOMINATORS[over])
    for key, group, unit, better, over, span in _ROWS
)

METRIC_OF: Final = {metric.id: metric for metric in METRICS}
