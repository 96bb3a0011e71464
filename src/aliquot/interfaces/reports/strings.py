"""Every text of the report that is not a figure, in English and Chinese."""

from __future__ import annotations

from typing import Final

from aliquot.core.jobs import Stage
from aliquot.core.report.charts import RowUnit
from aliquot.core.report.failures import Goal
from aliquot.core.report.metrics import Bilingual, Group
from aliquot.core.report.readings import WindowRule

TEXTS: Final[dict[str, Bilingual]] = {
    key: Bilingual(en, zh)
    for key, en, zh in (
        ("report", "Scheduling report", "调度报告"),
        ("seeds", "seeds", "随机种子"),
        ("at-a-glance", "At a glance", "概览"),
        ("why", "Why they differ", "差异原因"),
        (
            "why-note",
            "Each sentence is made from measured sums; none is written by hand.",
            "每句话均由测得的积分生成，并非人工撰写。",
        ),
        ("scorecard", "Scorecard", "记分卡"),
        (
            "scorecard-note",
            "Changes are against the first column. Bold is best. Under each figure: over what, and when.",
            "变化均相对第一列；粗体为最优。每项指标下方注明分母与区间。",
        ),
        ("rest", "Figures that are zero or unknown everywhere", "各策略均为零或未知的指标"),
        ("metric", "Figure", "指标"),
        ("window", "Window", "区间"),
        ("classes", "By class of job", "按作业类别"),
        ("class", "Class", "类别"),
        ("jobs", "Jobs", "作业"),
        ("placed", "Placed", "已放置"),
        ("finished", "Succeeded", "成功"),
        ("waiting", "Waiting", "等待中"),
        ("card-hours", "Allocated", "分配"),
        ("busy", "Busy of allocated", "分配卡利用率"),
        ("wait-mean", "Wait, mean", "等待，平均"),
        ("wait-p95", "Wait, p95", "等待，95 分位"),
        ("wait-max", "Wait, longest", "等待，最长"),
        ("completion", "Completion, mean", "完成，平均"),
        ("by-stage", "Stage", "阶段"),
        ("by-queue", "Queue", "队列"),
        ("by-width", "Cards", "卡数"),
        ("by-band", "Width", "宽度"),
        ("no-queue", "(none)", "（无）"),
        ("queues", "Queues", "队列"),
        (
            "queues-note",
            "Quota met: what a queue got of its wants within its nominal. Of its part: its use over that.",
            "配额满足：名义配额内需求得到满足的部分。份额所得：用量与应得需求之比，他人闲置时可超过 100 %。",
        ),
        ("queue", "Queue", "队列"),
        ("all-below", "all below", "含下级"),
        ("quota-met", "Quota met", "配额满足"),
        ("borrowed", "Borrowed", "借用"),
        ("of-its-part", "Of its part", "份额所得"),
        ("wait-variance", "Wait, variance", "等待，方差"),
        ("slowdown", "Slowdown", "减速比"),
        ("unfair", "Slower than fair", "慢于公平份额"),
        ("goodput", "Goodput", "有效产出"),
        ("evicted", "Evictions", "驱逐"),
        ("quotas", "Quotas by resource", "按资源的配额"),
        ("resource", "Resource", "资源"),
        ("nominal", "Nominal", "名义配额"),
        ("used-mean", "Used, mean", "用量，平均"),
        ("wanted-mean", "Wanted, mean", "需求，平均"),
        ("unlimited", "all there is", "全部"),
        ("failures", "What failure looks like", "失败的后果"),
        (
            "failures-note",
            "The consequences of a missed goal, counted from the events of the run.",
            "目标未达成的后果，由运行事件计数得出。",
        ),
        ("failure", "Consequence", "后果"),
        ("not-measured", "not measured", "未测量"),
        ("over-load", "Over offered load", "随提交负载的变化"),
        (
            "over-load-note",
            "Mean over the arrivals at each percent of capacity offered; bands span the seeds.",
            "每个提交负载百分点上各次到达的平均；阴影为各种子的范围。",
        ),
        ("over-time", "Over time", "随时间的变化"),
        (
            "over-time-note",
            "Exact means over equal stretches of time, not samples; fragmentation is sampled.",
            "为等长时段内的精确平均值而非采样；碎片率为采样。",
        ),
        ("allocation", "Allocation", "分配率"),
        ("utilisation", "Utilisation of all cards", "全部卡的利用率"),
        ("fragmentation", "Fragmentation of free compute (FGD)", "空闲算力碎片率 (FGD)"),
        ("waiting-jobs", "Jobs waiting", "等待的作业"),
        ("offered", "Offered load, % of capacity", "提交负载，占容量 %"),
        ("by-arrival", "in order of arrival", "按到达顺序"),
        ("as-offered", "all that was offered", "全部满足时"),
        ("cards-map", "Cards over time", "各卡随时间的占用"),
        (
            "cards-map-note",
            "How much of each row was booked. Grey: not up.",
            "每行的已分配比例；灰色：未在线。",
        ),
        ("gantt", "Jobs over time", "作业甘特图"),
        ("gantt-note", "Grey is waiting; colour is holding cards.", "灰色为等待，彩色为占用中。"),
        ("left-out", "{count} more jobs are not drawn.", "另有 {count} 个作业未绘出。"),
        ("wait", "waiting", "等待"),
        ("lost-attempt", "attempt lost", "尝试丢失"),
        ("waits", "How long jobs waited", "等待时间分布"),
        (
            "waits-note",
            "Share of the jobs that started. Those still waiting are not in it.",
            "占已启动作业的比例，不含仍在等待者。",
        ),
        ("share-of-jobs", "share of jobs, %", "作业占比，%"),
        ("assumptions", "What this rests on", "前提与假设"),
        ("assumptions-none", "No assumptions were stated for these runs.", "这些运行未声明任何假设。"),
        ("notes", "Notes and warnings", "说明与警告"),
        ("booked", "booked", "已分配"),
        (
            "made-with",
            "Made with Aliquot {version}. This file is complete: it loads nothing from anywhere.",
            "由 Aliquot {version} 生成。本文件完整独立，不从任何地方加载内容。",
        ),
        ("theme", "Light or dark", "明暗切换"),
        (
            "no-script",
            "The tables are complete; the charts need JavaScript.",
            "表格完整；图表需要 JavaScript。",
        ),
    )
}

GROUPS: Final = {
    Group.USE: Bilingual("How much is used", "利用"),
    Group.WASTE: Bilingual("What is wasted", "浪费"),
    Group.TIME: Bilingual("What jobs get", "时间"),
    Group.FAIRNESS: Bilingual("Fairness and promises", "公平与承诺"),
    Group.STOPS: Bilingual("Progress and stops", "进展与中断"),
    Group.JOBS: Bilingual("What became of them", "作业去向"),
}

GOALS: Final = {
    Goal.PERFORMANCE: Bilingual("Performance", "性能"),
    Goal.UTILISATION: Bilingual("Utilisation", "利用率"),
    Goal.FAIRNESS: Bilingual("Fairness", "公平"),
    Goal.STABILITY: Bilingual("Stability", "稳定"),
}

STAGES: Final = {
    Stage.TRAINING.value: Bilingual("training", "训练"),
    Stage.INFERENCE.value: Bilingual("inference", "推理"),
    Stage.DEVELOPMENT.value: Bilingual("development", "开发"),
}

ROW_UNITS: Final = {
    RowUnit.CARD: Bilingual("One row a card.", "每行一张卡。"),
    RowUnit.NODE: Bilingual("One row a node.", "每行一个节点。"),
    RowUnit.NODES: Bilingual("One row for several neighbouring nodes.", "每行若干相邻节点。"),
}

WINDOW_RULES: Final = {
    WindowRule.GIVEN: Bilingual("as given", "指定区间"),
    WindowRule.LAST_COMPLETION: Bilingual("to the last completion", "到最后一个作业完成"),
    WindowRule.LAST_EVENT: Bilingual(
        "to the last event: something is held still", "到最后一个事件：仍有占用"
    ),
}

OUTCOMES: Final = {
    "pending": Bilingual("waiting", "等待"),
    "starting": Bilingual("starting", "启动中"),
    "running": Bilingual("running", "运行中"),
    "stopping": Bilingual("stopping", "停止中"),
    "succeeded": Bilingual("succeeded", "成功"),
    "failed": Bilingual("failed", "失败"),
    "cancelled": Bilingual("given up", "已放弃"),
}

TIME_UNITS: Final = (
    (3 * 86_400_000, 86_400_000, Bilingual("days since the start", "开始后的天数")),
    (3 * 3_600_000, 3_600_000, Bilingual("hours since the start", "开始后的小时数")),
    (5 * 60_000, 60_000, Bilingual("minutes since the start", "开始后的分钟数")),
    (0, 1_000, Bilingual("seconds since the start", "开始后的秒数")),
)
"""(windows from so many ms on, one unit in ms, the axis title)."""


def text(key: str, **values: object) -> Bilingual:
    """A text of the table, with its blanks filled in."""
    found = TEXTS[key]
    return Bilingual(found.en.format(**values), found.zh.format(**values)) if values else found
