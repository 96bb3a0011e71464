"""Queues of a running service as rows: what each may have, has, borrows, and what waits in it."""

from __future__ import annotations

from collections.abc import Sequence

from aliquot.control.views import BudgetView, QueueView, QuotaView
from aliquot.core.months import format_day
from aliquot.core.queues import Measure
from aliquot.core.units import FULL, format_memory
from aliquot.interfaces.cli.expectations import crowding_line, overcommit_line
from aliquot.interfaces.cli.plain import columns, now_ms


def queue_lines(queues: Sequence[QueueView]) -> list[str]:
    """One row per queue; what its cards are about stands in the row, its other quotas below it."""
    heads = ["QUEUE", "PRIORITY", "WAITING", "RUNNING", "CARDS"]
    is_quoted = any(queue.quotas for queue in queues)
    is_bound = any(queue.at_risk or queue.cannot for queue in queues)
    heads += ["NOMINAL", "BORROWED", "ASKED FOR"] if is_quoted else []
    is_budgeted = any(queue.budget is not None for queue in queues)
    heads += ["BUDGET", "SPENT", "LEFT"] if is_budgeted else []
    heads += ["AT RISK", "CANNOT"] if is_bound else []
    rows, others = [heads], []
    for queue in queues:
        row = [queue.name, str(queue.priority), str(queue.waiting), str(queue.running)]
        row.append(f"{queue.cards_milli / FULL:g}")
        row += _quota_cells(queue) if is_quoted else []
        row += _budget_cells(queue.budget) if is_budgeted else []
        row += [str(queue.at_risk), str(queue.cannot)] if is_bound else []
        rows.append(row)
        others += [f"{queue.name}: {_quota_line(quota)}" for quota in queue.quotas[1:]]
        others += [f"{queue.name}: {_budget_line(queue.budget)}"] if queue.budget is not None else []
    crowded = crowding_line(queues[0].crowding if queues else None, now_ms())
    over = dict.fromkeys(over for queue in queues for over in queue.overcommits)
    return [*columns(rows), *others, *map(overcommit_line, over), *([crowded] if crowded else [])]


def _quota_cells(queue: QueueView) -> list[str]:
    """Nominal, borrowed and asked for, of cards; a queue of no document has no quota."""
    if not queue.quotas:
        return ["-", "-", "-"]
    cards = queue.quotas[0]
    return [_amount(cards, cards.nominal), _amount(cards, cards.borrowed), _amount(cards, cards.waiting)]


def _budget_cells(budget: BudgetView | None) -> list[str]:
    """Of this month: what may be spent, is spent, and is left beside what those who run will spend."""
    if budget is None:
        return ["-", "-", "-"]
    return [_money(budget.nominal), _money(budget.used), _money(budget.left)]


def _budget_line(budget: BudgetView) -> str:
    """`money of 2026-11: spent 812.50 of 1000.00, 100.00 more by those who run, 87.50 left; anew on ...`"""
    due = f", {_money(budget.due)} more by those who run" if budget.due else ""
    least = "at least " if budget.unpriced else ""
    line = (
        f"money of {budget.month}: spent {least}{_money(budget.used)} of {_money(budget.nominal)}{due},"
        f" {_money(budget.left)} left; new budget on {format_day(budget.renews_ms)}"
    )
    unpriced = ", ".join(budget.unpriced)
    return f"{line}; no price is known of {unpriced}, which were used" if unpriced else line


def _money(cents: int) -> str:
    return f"{cents / 100:.2f}"


def _quota_line(quota: QuotaView) -> str:
    most = "" if quota.maximum is None else f", at most {_amount(quota, quota.maximum)}"
    return (
        f"{quota.resource} nominal {_amount(quota, quota.nominal)}, used {_amount(quota, quota.used)},"
        f" borrowed {_amount(quota, quota.borrowed)}, asked for {_amount(quota, quota.waiting)}{most}"
    )


def _amount(quota: QuotaView, amount: int) -> str:
    if quota.resource.startswith(Measure.MEMORY.value):
        return format_memory(amount)
    if quota.resource.startswith(Measure.MONEY.value):
        return f"{amount / 100:g} a month"
    return f"{amount / FULL:g}"
