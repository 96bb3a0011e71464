"""Money of queues as people see it: what each may spend in this calendar month, has spent, and has left.

Worked out as the planner does it, from the same world: use is exact to the millisecond, and what those who
run will use is as good as what is known of their ends.
"""

from __future__ import annotations

from collections import defaultdict

from aliquot.control.views import BudgetView
from aliquot.core.budget import PRICED_MS
from aliquot.core.charging import capacity_of
from aliquot.core.months import month_of
from aliquot.core.queueing.tree import QueueTree, grow_tree, home_of
from aliquot.core.records import Frozen
from aliquot.core.settings import Settings
from aliquot.core.spending import due_by, month_at, used_by
from aliquot.core.units import FULL

_CENT = FULL * PRICED_MS  # amounts are counted in cents x milli-cards x ms: a price a month is for PRICED_MS


def budget_views(world: Frozen, settings: Settings, now: int) -> dict[str, BudgetView]:
    """By the name of every queue that has a budget of its own; what those below it use is counted in it."""
    spenders = [queue for queue in settings.queues if queue.budget_cents is not None]
    if not spenders:
        return {}
    tree = grow_tree(settings.queues, capacity_of(world, settings))
    used, due, unpriced = _sums(world, settings, tree, now)
    views = {}
    for queue in spenders:
        node, nominal = tree.node_of[queue.name], queue.budget_cents or 0
        left = nominal * _CENT - used[node] - due[node]
        views[queue.name] = BudgetView(
            month=_spell(month_of(now)),
            nominal=nominal,
            used=used[node] // _CENT,
            due=due[node] // _CENT,
            left=max(0, left // _CENT),
            renews_ms=month_at(now)[2],
            unpriced=tuple(sorted(unpriced[node])),
        )
    return views


def _sums(
    world: Frozen, settings: Settings, tree: QueueTree, now: int
) -> tuple[dict[int, int], dict[int, int], dict[int, set[str]]]:
    """By node of the tree: used this month, expected of those who run till it turns; unpriced models."""
    prices = dict(settings.rates.cents_a_month)
    renews = month_at(now)[2]
    used: dict[int, int] = defaultdict(int)
    due: dict[int, int] = defaultdict(int)
    unpriced: dict[int, set[str]] = defaultdict(set)
    for (queue, model), spent in world.spent.items():
        here, ahead = used_by(spent, now), due_by(spent, now, renews)
        price = prices.get(model)
        for node in tree.paths[home_of(tree, queue)]:
            if price is not None:
                used[node] += price * here
                due[node] += price * ahead
            elif here:
                unpriced[node].add(model)
    return used, due, unpriced


def _spell(month: int) -> str:
    year, of_year = divmod(month, 12)
    return f"{year:04d}-{of_year + 1:02d}"
