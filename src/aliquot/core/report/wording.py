"""Figures and reasons as people read them, in English and Chinese.

Numbers are rounded only here. A sentence says no more than its numbers; how far a run may be trusted is said
with every report.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from aliquot.core.queueing.tree import OWN
from aliquot.core.report.compare import Reason, Why
from aliquot.core.report.metrics import METRIC_OF, Bilingual, Unit
from aliquot.core.report.result import Standing

UNKNOWN: Final = Bilingual("unknown", "未知")

STANDINGS: Final = {
    Standing.WHAT_IF: Bilingual(
        "A what-if: a described load on a described site, run in virtual time through the real"
        " decision core.",
        "假设推演：以描述的负载和站点为输入，由真实的决策核心在虚拟时间中运行。",
    ),
    Standing.REPLAY: Bilingual(
        "A replay of a published workload in a model of its cluster; not measured on that cluster.",
        "对公开负载在其集群模型上的重放；并非在该集群上实测。",
    ),
    Standing.CALIBRATED: Bilingual(
        "A calibrated replay, not evidence: the size of the cluster and the load were chosen so that the"
        " figures of a told case come out. What they show is how the difference arises.",
        "校准重放，并非证据：集群规模和负载是为重现所述案例的数字而选定的，所展示的是差异如何产生。",
    ),
    Standing.LIVE: Bilingual("Measured on the site.", "在站点上实测。"),
}


def format_value(value: float | None, unit: Unit) -> Bilingual:
    """A figure with its unit."""
    if value is None:
        return UNKNOWN
    return _FORMATS[unit](value)


def format_change(change: float | None, unit: Unit) -> Bilingual:
    """A difference with its sign; shares in points."""
    if change is None:
        return Bilingual("", "")
    if unit is Unit.SHARE:
        points = _number(100 * change, 1, signed=True)
        return Bilingual(f"{points} pts", f"{points} 个百分点")
    if not change:
        return Bilingual("±0", "±0")
    size = _square_minutes(abs(change)) if unit is Unit.MS2 else format_value(abs(change), unit)
    sign = "+" if change > 0 else "−"
    return Bilingual(sign + size.en, sign + size.zh)


def format_duration(ms: float) -> Bilingual:
    """`2 h 32 min` and `2 小时 32 分`: two units at most."""
    for unit, (big, small) in enumerate(zip(_BIG, _SMALL, strict=True)):
        if round(ms / small) * small >= big:
            return Bilingual(_two_units(ms, unit, _EN_UNITS), _two_units(ms, unit, _ZH_UNITS))
    seconds = _number(ms / 1000, 1 if ms % 1000 else 0)
    return Bilingual(f"{seconds} s", f"{seconds} 秒")


def name_queue(name: str) -> Bilingual:
    """The name of a queue as it is shown; jobs of no queue, or of an inner one, have a line of their own."""
    above, _, last = name.rpartition("/")
    if last != OWN:
        return Bilingual(name, name)
    return (
        Bilingual(f"{above} (itself)", f"{above}（自身）") if above else Bilingual("(no queue)", "（无队列）")
    )


def why_sentence(why: Why) -> Bilingual:
    """One explanation as a sentence."""
    words = {"first": Bilingual(why.first, why.first), "other": Bilingual(why.other, why.other)}
    for name, value in why.numbers.items():
        words[name] = format_value(value, _unit_of(name.rsplit("_", 1)[0]))
    templates = _SENTENCES[why.reason] if why.reason is not Reason.SLOWER else _slower(why)
    return Bilingual(
        templates.en.format_map({name: word.en for name, word in words.items()}),
        templates.zh.format_map({name: word.zh for name, word in words.items()}),
    )


# --- figures -----------------------------------------------------------------------------------------------

_BIG: Final = (86_400_000, 3_600_000, 60_000)
_SMALL: Final = (3_600_000, 60_000, 1_000)
_EN_UNITS: Final = (("d", "h"), ("h", "min"), ("min", "s"))
_ZH_UNITS: Final = (("天", "小时"), ("小时", "分"), ("分", "秒"))


def _two_units(ms: float, unit: int, names: tuple[tuple[str, str], ...]) -> str:
    whole = round(ms / _SMALL[unit])
    per = _BIG[unit] // _SMALL[unit]
    big, rest = divmod(whole, per)
    text = f"{big} {names[unit][0]}"
    return f"{text} {rest} {names[unit][1]}" if rest else text


def _number(value: float, digits: int, *, signed: bool = False) -> str:
    """Thousands apart, no negative zero."""
    rounded = round(value, digits) + 0.0
    text = f"{abs(rounded):,.{digits}f}"
    if signed:
        return ("+" if rounded > 0 else "−" if rounded < 0 else "±") + text
    return f"−{text}" if rounded < 0 else text


def _share(value: float) -> Bilingual:
    text = f"{_number(100 * value, 1)} %"
    return Bilingual(text, text)


def _count(value: float) -> Bilingual:
    text = _number(value, 0 if float(value).is_integer() else 1)
    return Bilingual(text, text)


def _cards(value: float) -> Bilingual:
    text = _number(value, 1)
    return Bilingual(f"{text} cards", f"{text} 张卡")


def _card_hours(value: float) -> Bilingual:
    text = _number(value, 1)
    return Bilingual(f"{text} card-h", f"{text} 卡时")


def _card_minutes(value: float) -> Bilingual:
    text = _number(value, 1)
    return Bilingual(f"{text} card-min", f"{text} 卡分钟")


def _money(cents: float) -> Bilingual:
    for size, name, zh_size, zh in ((1e8, " M", 1e6, " 万"), (1e5, " k", 1e6, " 万")):
        if abs(cents) >= size:
            return Bilingual(f"${_number(cents / size, 2)}{name}", f"${_number(cents / zh_size, 1)}{zh}")
    text = f"${_number(cents / 100, 0)}"
    return Bilingual(text, text)


def _ratio(value: float) -> Bilingual:
    text = f"{_number(value, 2)} ×"
    return Bilingual(text, text)


def _index(value: float) -> Bilingual:
    text = _number(value, 3)
    return Bilingual(text, text)


def _variance(value: float) -> Bilingual:
    """In squared minutes; its root beside it, since nobody thinks in squared minutes."""
    text, root = _square_minutes(value), format_duration(value**0.5)
    return Bilingual(f"{text.en} (σ {root.en})", f"{text.zh} (σ {root.zh})")


def _square_minutes(value: float) -> Bilingual:
    text = _number(value / 3.6e9, 1)
    return Bilingual(f"{text} min²", f"{text} 分²")


_FORMATS: Final[dict[Unit, Callable[[float], Bilingual]]] = {
    Unit.SHARE: _share,
    Unit.MS: format_duration,
    Unit.MS2: _variance,
    Unit.COUNT: _count,
    Unit.CARDS: _cards,
    Unit.CARD_HOURS: _card_hours,
    Unit.CARD_MINUTES: _card_minutes,
    Unit.CENTS: _money,
    Unit.RATIO: _ratio,
    Unit.INDEX: _index,
}

_SUPPORT_UNITS: Final = {
    "busy_card_hours": Unit.CARD_HOURS,
    "allocated_card_hours": Unit.CARD_HOURS,
    "surplus_card_hours": Unit.CARD_HOURS,
    "stranded_card_hours": Unit.CARD_HOURS,
    "scattered_ms": Unit.MS,
    "crowded_ms": Unit.MS,
    "held_back_ms": Unit.MS,
}


def _unit_of(field: str) -> Unit:
    metric = METRIC_OF.get(field)
    return metric.unit if metric is not None else _SUPPORT_UNITS[field]


# --- reasons -----------------------------------------------------------------------------------------------

_SENTENCES: Final = {
    Reason.SAME_WORK: Bilingual(
        "The same work ({busy_card_hours_other} of SM activity) takes {makespan_ms_other} under"
        " {other} instead"
        " of {makespan_ms_first} under {first}, so all cards together are {utilisation_other} busy instead of"
        " {utilisation_first}.",
        "同样的工作量（SM 活动 {busy_card_hours_other}）在 {other} 下用时 {makespan_ms_other}，"
        "在 {first} 下用时"
        " {makespan_ms_first}，因此全部卡的利用率为 {utilisation_other}，而非 {utilisation_first}。",
    ),
    Reason.OTHER_WORK: Bilingual(
        "{other} does {busy_card_hours_other} of work in {makespan_ms_other}, {first} {busy_card_hours_first}"
        " in {makespan_ms_first}: {utilisation_other} of all cards against {utilisation_first}.",
        "{other} 在 {makespan_ms_other} 内完成 {busy_card_hours_other} 的工作，{first} 在"
        " {makespan_ms_first} 内完成"
        " {busy_card_hours_first}：全部卡的利用率 {utilisation_other} 对 {utilisation_first}。",
    ),
    Reason.SURPLUS: Bilingual(
        "Jobs that asked for a part of a card held {surplus_card_hours_first} more than they asked for under"
        " {first}, of {allocated_card_hours_first} allocated; under {other} {surplus_card_hours_other}.",
        "只申请部分卡的作业在 {first} 下多占了 {surplus_card_hours_first}（共分配"
        " {allocated_card_hours_first}），"
        "在 {other} 下为 {surplus_card_hours_other}。",
    ),
    Reason.SCATTERED: Bilingual(
        "For {scattered_ms_first} under {first} the widest waiting request would have fitted the free cards"
        " together, but no single node had them: {blocked_card_hours_first} idle meanwhile. Under {other}:"
        " {scattered_ms_other}, {blocked_card_hours_other}.",
        "在 {first} 下有 {scattered_ms_first}，空闲卡总数足够最宽的等待请求，"
        "却没有一个节点能单独容纳，其间闲置"
        " {blocked_card_hours_first}；在 {other} 下为 {scattered_ms_other}、{blocked_card_hours_other}。",
    ),
    Reason.CROWDED: Bilingual(
        "The widest waiting request found too few free cards in all for {crowded_ms_first} under {first},"
        " for {crowded_ms_other} under {other}.",
        "最宽的等待请求因空闲卡总数不足而等待：{first} 下 {crowded_ms_first}，{other} 下"
        " {crowded_ms_other}。",
    ),
    Reason.HELD_BACK: Bilingual(
        "For {held_back_ms_first} under {first} and {held_back_ms_other} under {other} a node"
        " had the cards for"
        " the widest waiting request, which waited for its turn, or for cpu, memory or links.",
        "有节点卡数足够而最宽的请求仍因排队顺序、CPU、内存或互联而等待：{first} 下 {held_back_ms_first}，"
        "{other} 下 {held_back_ms_other}。",
    ),
    Reason.FRAGMENTS: Bilingual(
        "Of the free compute, {fragmentation_first} was of no use to the demand mix under {first},"
        " {fragmentation_other} under {other} (allocated: {allocation_first}, {allocation_other}).",
        "空闲算力中需求无法利用的部分：{first} 下 {fragmentation_first}，{other} 下 {fragmentation_other}"
        "（分配率 {allocation_first}、{allocation_other}）。",
    ),
    Reason.STRANDED: Bilingual(
        "On average {stranded_cards_first} were free but short of cpu or host memory under {first},"
        " {stranded_cards_other} under {other}.",
        "因缺 CPU 或内存而无法使用的空闲卡平均：{first} 下 {stranded_cards_first}，{other} 下"
        " {stranded_cards_other}。",
    ),
    Reason.LOST: Bilingual(
        "Cards that did not answer: {lost_card_hours_first} under {first}, {lost_card_hours_other} under"
        " {other}; the windows differ in length.",
        "失联的卡：{first} 下 {lost_card_hours_first}，{other} 下 {lost_card_hours_other}；"
        "两者区间长度不同。",
    ),
    Reason.MOVES: Bilingual(
        "{other} moved running work {moved_other} times, {first} {moved_first} times.",
        "{other} 迁移运行中的作业 {moved_other} 次，{first} 为 {moved_first} 次。",
    ),
    Reason.EVICTIONS: Bilingual(
        "{other} stopped running work for others {evicted_other} times, {first} {evicted_first} times; the"
        " work lost by stops and lost nodes: {lost_work_card_minutes_other} against"
        " {lost_work_card_minutes_first}.",
        "{other} 为其他作业停止运行中的工作 {evicted_other} 次，{first} 为 {evicted_first} 次；"
        "因停止和节点丢失而损失的工作：{lost_work_card_minutes_other} 对 {lost_work_card_minutes_first}。",
    ),
    Reason.QUOTAS: Bilingual(
        "Of what queues wanted within their nominal they got {quota_satisfaction_other} under {other},"
        " {quota_satisfaction_first} under {first}.",
        "各队列在名义配额内的需求，{other} 下满足 {quota_satisfaction_other}，{first} 下"
        " {quota_satisfaction_first}。",
    ),
}

_PAYERS: Final = {
    "completion_training_ms": Bilingual("training", "训练"),
    "completion_inference_ms": Bilingual("inference", "推理"),
}


def _slower(why: Why) -> Bilingual:
    """Who pays: each class that finishes later, with its two times left to fill in."""
    fields = [field for field in _PAYERS if f"{field}_other" in why.numbers]
    en = ", ".join(f"{_PAYERS[field].en} {{{field}_other}} instead of {{{field}_first}}" for field in fields)
    zh = "，".join(f"{_PAYERS[field].zh} {{{field}_other}}（原 {{{field}_first}}）" for field in fields)
    return Bilingual(
        f"The price: under {{other}} jobs complete later: {en}.", f"代价：在 {{other}} 下完成更晚：{zh}。"
    )
