"""Money of queues as people see it: what each may spend in this calendar month, has spent, and has left.

Worked out as the planner does it, from the same world: use is exact to the millisecond, and what those who
run will use is as good as what is known of their ends.
"""

from __future__ import annotations

from aliquot.control.views import BudgetView
from aliquot.core.budget import CENT
from aliquot.core.charging import capacity_of
from aliquot.core.months import month_of
from aliquot.core.queueing.tree import grow_tree, home_of
from aliquot.core.records import Frozen
from aliquot.core.settings import Settings
from aliquot.core.spending import bills_of, month_at


def budget_views(world: Frozen, settings: Settings, now: int) -> dict[str, BudgetView]:
    """By the name of every queue that has a budget of its own; what those below it use is counted in it."""
    spenders = [queue for queue in settings.queues if queue.budget_cents is not None]
    if not spenders:
        return {}
    tree = grow_tree(settings.queues, capacity_of(world, settings))
    prices = dict(settings.rates.cents_a_month)
    bills = bills_of(world.spent, prices, now, lambda queue: tree.paths[home_of(tree, queue)])
    views = {}
    for queue in spenders:
        node, nominal = tree.node_of[queue.name], queue.budget_cents or 0
        left = nominal * CENT - bills.used[node] - bills.due[node]
        views[queue.name] = BudgetView(
            month=_spell(month_of(now)),
            nominal=nominal,
            used=bills.used[node] // CENT,
            due=bills.due[node] // CENT,
            left=max(0, left // CENT),
            renews_ms=month_at(now)[2],
            unpriced=tuple(sorted(bills.unpriced[node])),
        )
    return views


def _spell(month: int) -> str:
    year, of_year = divmod(month, 12)
    return f"{year:04d}-{of_year + 1:02d}"
