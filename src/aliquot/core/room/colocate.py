"""Who shares a set of cards with whom: groups of jobs of one width that take turns on the same cards.

A job uses processor, GPU and network in turn, so jobs whose stages differ fit into each other's gaps: four of
them on one set of cards may get through twice the work of one. What a group gets through is asked of a
`Sharing` table (measured or predicted); this module only decides who is in which group, and who waits.

The value of a job's speed is its cards times (cards x effort) ** -preference, where effort is the time it
still needs alone, or, where nobody knows that, the time it has had so far: mostly card-time got through, with
a mild word for the short. Cards have a price per card: low, and everyone gets a set of his own; high, and a
job only opens a new set if that is worth more than the best free place in an open group. The least price at
which the groups fit is searched, then jobs trade places between groups as long as the total value rises.

Cards are counted, not placed: widths that divide each other and the node always fit widest first. Memory is
the caller's: it leaves out combinations that do not fit (period: infinity). Pure and deterministic.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from aliquot.core.columns import I64
from aliquot.core.errors import SpecError
from aliquot.core.room.grouping import (
    SEATS,
    Groups,
    Sharing,
    fill_cards,
    join_groups,
    line_up,
    open_groups,
    trade_places,
)

F64 = npt.NDArray[np.float64]
LEAST_PRICE: Final = 0.05
"""Of the least value per card: below it, hardly anyone would rather join than open."""


class Candidates(NamedTuple):
    """Jobs that run or wait, in order of arrival."""

    width: I64  # [jobs] index into `Sharing.widths`
    kind: I64  # [jobs]
    effort_s: F64  # [jobs] time still needed alone; without sizes, time had so far


class ColocateRules(msgspec.Struct, frozen=True):
    """`preference` for the short: 0 counts only card-time got through. `grace_s` is added to every effort."""

    preference: float = 0.1
    grace_s: float = 1.0
    prices: int = 10  # at most this many prices are tried
    trades: int = 8  # rounds of trading places

    @property
    def is_valid(self) -> bool:
        """Whether every number is in its range."""
        return self.prices >= 1 and self.trades >= 0 and 0 <= self.preference <= 2 and self.grace_s > 0


def colocate(
    jobs: Candidates,
    sharing: Sharing,
    capacity: int,
    rules: ColocateRules = ColocateRules(),  # noqa: B008 - a frozen value
) -> Groups:
    """The groups that run on `capacity` cards: (members [groups, 4], -1 is an empty place; width [groups]).

    No two groups hold a job, and their widths add up to at most `capacity`. Jobs in no group wait.
    Raises SpecError for rules or columns out of range.
    """
    _check(jobs, sharing, capacity, rules)
    value = worth_of_speed(jobs, sharing, rules)
    line = line_up(jobs.width, value, sharing.widths, capacity * SEATS)
    groups = _find_price(jobs, sharing, capacity, rules, value, line)
    groups = fill_cards(groups, line, jobs.kind, value, sharing, capacity)
    groups = join_groups(groups, line, jobs.kind, value, sharing)
    return trade_places(groups, jobs.kind, value, sharing, rules.trades)


def worth_of_speed(jobs: Candidates, sharing: Sharing, rules: ColocateRules) -> F64:
    """[jobs] what a job's full speed is worth: its cards, a little more for one with less card-time to go."""
    cards = sharing.widths[jobs.width]
    found: F64 = cards * (cards * (jobs.effort_s + rules.grace_s)) ** -rules.preference
    return found


def _find_price(
    jobs: Candidates, sharing: Sharing, capacity: int, rules: ColocateRules, value: F64, line: I64
) -> Groups:
    """The groups at the least price found at which they fit; the price is halved in on, on a log scale."""
    per_card = value / sharing.widths[jobs.width]
    high, price = float(per_card.max(initial=0.0)), 0.0
    low = LEAST_PRICE * float(per_card.min(initial=high))
    best = Groups(np.empty((0, SEATS), np.int64), np.empty(0, np.int64))
    for _ in range(rules.prices):
        groups = open_groups(price, line, jobs.kind, value, sharing, capacity)
        if sharing.widths[groups.width].sum() <= capacity:
            best, high = groups, price
            if price == 0.0:
                break
        else:
            low = max(low, price)
        price = (low * high) ** 0.5
    return best


def _check(jobs: Candidates, sharing: Sharing, capacity: int, rules: ColocateRules) -> None:
    if not rules.is_valid:
        raise SpecError("out of range", field="rules", value=rules, hint="preference 0 to 2, grace above 0")
    if capacity < 0:
        raise SpecError("must be 0 or more", field="capacity", value=capacity)
    widths, kinds = sharing.alone.shape
    for name, column, bound in (("width", jobs.width, widths), ("kind", jobs.kind, kinds)):
        if len(column) and not 0 <= column.min() <= column.max() < bound:
            raise SpecError("no such index", field=name, value=int(column.max()), hint=f"0 to {bound - 1}")
    if len(jobs.effort_s) and not (np.isfinite(jobs.effort_s).all() and jobs.effort_s.min() >= 0):
        raise SpecError("must be finite and 0 or more", field="effort_s", value=float(jobs.effort_s.min()))
