"""Money per calendar month: what queues have used, what those who run will use, and who may still start.

A card costs its monthly price for 730 hours of being held, a twelfth of a year of 365 days, as clouds bill;
so a month of 31 days costs a little more than the price, one of 28 a little less. Amounts are cents x
milli-cards x ms, exact; a person is shown cents. Months are those of UTC.

A job may start while its queue and every queue above have left what it is expected to cost until the month
turns, beside what those who run are expected to use by then; where nobody knows how long it runs, while
anything is left. An elastic job has to afford its narrowest width, and starts and grows as wide as the same
rule allows at each width. Who runs when the budget is used up runs on, unless the queue says that it is
stopped: an estimate that was too low may so lead beyond the budget. What runs on into the next month is paid
by it.

A job that was stopped goes on in the next month where it has saved something. One that has nothing to show
for it (`JobRecord.in_vain_ms`) would only be stopped again: it starts where the money lasts for longer than
it ran, and where that is more than there is in a whole month, never.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from aliquot.core.ids import JobId
from aliquot.core.inventory import accepts
from aliquot.core.jobs import Request, asked_of
from aliquot.core.lengths import LengthOf, at_width, length_by, told
from aliquot.core.lifecycle import Phase
from aliquot.core.months import DAY_MS
from aliquot.core.queues import MONEY
from aliquot.core.records import Frozen, JobRecord
from aliquot.core.settings import Settings
from aliquot.core.spending import bills_of, due_length, month_at
from aliquot.core.standing import Standing
from aliquot.core.steps import Cause, Evict, Lack
from aliquot.core.units import FULL

PRICED_MS: Final = 730 * 3_600_000
"""How long a card is held for its monthly price."""

CENT: Final = FULL * PRICED_MS
"""One cent, where money is counted in cents x milli-cards x ms: a price a month is for `PRICED_MS`."""

_LONGEST_MS: Final = 31 * DAY_MS
_GIVEN_UP_MS: Final = 64 * _LONGEST_MS
_NEVER: Final = 2**200  # beyond any budget
_SOME: Final = 1  # the least that is left where what is needed is not known
_RUNS: Final = frozenset({Phase.STARTING, Phase.RUNNING})


class Budgets:
    """The budgets of one pass. Nothing is worked out before somebody asks."""

    def __init__(self, standing: Standing, world: Frozen, now: int) -> None:
        self._standing, self._world, self._now = standing, world, now
        node_of = standing.tree.node_of
        queues = standing.spenders
        self._limits = {node_of[queue.name]: (queue.budget_cents or 0) * CENT for queue in queues}
        self._grace = {
            node_of[queue.name]: queue.spent_grace_ms for queue in queues if queue.spent_grace_ms is not None
        }
        self._length: LengthOf = length_by(standing.settings)
        self._prices = dict(standing.settings.rates.cents_a_month)
        self._costs: dict[tuple[tuple[Request, ...], str], tuple[int, bool]] = {}
        self._read: tuple[dict[int, int], dict[int, int], dict[int, int]] | None = None
        self._log: list[tuple[int, int, int]] = []  # (node, more due, more rate) since the pass began
        self._held_back = False
        self.renews_ms = month_at(now)[2]

    @property
    def is_empty(self) -> bool:
        """Whether no queue has a budget."""
        return not self._limits

    def lack_of(self, record: JobRecord, model: str = "") -> Lack | None:
        """What a queue of the job of `record` lacks of its budget; None: it may start on cards of `model`.

        Its need is 0 where nobody knows what it would cost. An elastic job has to afford its narrowest width.
        """
        if not self._limits:
            return None
        record = _narrowest(record)
        need = self._expected(record, model)
        if need is None:
            return None
        found: Lack | None = None
        for node in self._standing.tree.paths[self._standing.leaf(record.job.queue)]:
            if node in self._limits:
                lack = self._lack_in(node, need, record, model)
                if lack is not None and (found is None or _is_later(lack, found)):
                    found = lack
        return found

    def _lack_in(self, node: int, need: int, record: JobRecord, model: str) -> Lack | None:
        limit, (used, due, _) = self._limits[node], self._sums()
        left = limit - used[node] - due[node]
        rate, _ = self._cost(record, model)
        tried = record.in_vain_ms if node in self._grace else 0
        least = _least(rate, tried)
        if max(need, least) <= left:
            return None
        need = need if least == _NEVER else max(need, least)
        return Lack(
            resource=MONEY,
            need=0 if need == _SOME else -(-need // CENT),
            have=max(0, left // CENT),
            queue=self._standing.tree.names[node],
            used=used[node] // CENT,
            due=due[node] // CENT,
            budget=limit // CENT,
            renews_ms=self.renews_ms,
            again_ms=self._again_ms(max(least, rate, _SOME), limit, left, rate),
            in_vain_ms=tried,
        )

    def _again_ms(self, least: int, limit: int, left: int, rate: int) -> int | None:
        """When a job that lacks money may start: late enough in the month for what is left, or in the next.

        It needs `least` whenever it starts; None, never, where there isn't so much in a whole month.
        """
        if least > limit:
            return None
        ahead = left // rate if rate and left >= least else 0  # what it costs from then on is left
        return max(self._now + 1, self.renews_ms - ahead)

    def take(self, record: JobRecord, model: str = "") -> None:
        """The job of `record` starts: what it is expected to cost is spoken for."""
        if self._limits:
            self._speak_for(record, *self._claim(_narrowest(record), model))

    def may_widen(self, record: JobRecord, width: int, model: str, held: JobRecord | None) -> bool:
        """Whether what an elastic job costs more at `width` is left; `held`: as it runs now, if it does."""
        if not self._limits:
            return True
        wider = at_width(record, width)
        need, rate = self._claim(wider, model)
        has, slower = (0, 0) if held is None else self._claimed(held, model)
        if rate <= slower and need <= has:
            return True
        used, due, _ = self._sums()
        for node in self._standing.tree.paths[self._standing.leaf(record.job.queue)]:
            if node in self._limits:
                least = _least(rate, record.in_vain_ms if node in self._grace else 0)
                if max(need, least) - has > self._limits[node] - used[node] - due[node]:
                    self._held_back = True
                    return False
        return True

    def widen(self, record: JobRecord, width: int, model: str, held: JobRecord | None) -> None:
        """It has `width` from now on; `held` as for `may_widen`."""
        if self._limits:
            need, rate = self._claim(at_width(record, width), model)
            has, slower = (0, 0) if held is None else self._claimed(held, model)
            self._speak_for(record, need - has, rate - slower)

    def mark(self) -> int:
        """A point to roll back to."""
        return len(self._log)

    def rollback(self, mark: int) -> None:
        """Undo everything since `mark`."""
        while len(self._log) > mark:
            node, need, more = self._log.pop()
            _, due, rate = self._sums()
            due[node] -= need
            rate[node] -= more

    @property
    def again_ms(self) -> int | None:
        """When elastic jobs may grow for which there is no money now; None: there are none."""
        return self.renews_ms if self._held_back else None

    def _claim(self, record: JobRecord, model: str) -> tuple[int, int]:
        """What is spoken for a job that starts, or goes on, as `record` has it; and what it costs in a ms."""
        need = self._expected(record, model, due=True)
        return (0, 0) if need is None else (need, self._cost(record, model)[0])

    def _claimed(self, held: JobRecord, model: str) -> tuple[int, int]:
        """The same of a job that runs as `held` has it, as it is in the sums."""
        rate, _ = self._cost(held, model)
        length = due_length(held, told(held.job))
        ends = self._now if length is None else held.resized_ms + length
        return rate * max(0, min(ends, self.renews_ms) - self._now), rate

    def _speak_for(self, record: JobRecord, need: int, more: int) -> None:
        _, due, rate = self._sums()
        for node in self._standing.tree.paths[self._standing.leaf(record.job.queue)]:
            if node in due:
                due[node] += need
                rate[node] += more
                self._log.append((node, need, more))

    def evictions(self) -> Iterator[Evict]:
        """Who is stopped, as a queue of theirs has used its budget up and says so."""
        if not self._grace:
            return
        used, _, _ = self._sums()
        spent = {node: grace for node, grace in self._grace.items() if used[node] >= self._limits[node]}
        for job in sorted(self._world.grants) if spent else ():
            record = self._world.jobs[job]
            if record.phase not in _RUNS or not any(part.milli for part in record.asked):
                continue
            path = self._standing.tree.paths[self._standing.leaf(record.job.queue)]
            grace = next((spent[node] for node in path if node in spent), None)
            if grace is not None:
                yield Evict(JobId(job), record.attempt, Cause.BUDGET, grace_ms=grace)

    def spent_ms(self) -> int | None:
        """When the next budget whose jobs are stopped then is used up, by those who start in this pass too.

        The turn of the month where that is in a later one; None where it is never, as all goes on.
        """
        if not self._grace:
            return None
        used, _, rate = self._sums()
        times = []
        for node in self._grace:
            limit, left = self._limits[node], self._limits[node] - used[node]
            if left > 0 and rate[node] and left <= rate[node] * (self.renews_ms - self._now):
                times.append(self._now + -(-left // rate[node]))
            elif limit <= rate[node] * _LONGEST_MS:
                times.append(self.renews_ms)
        return min(times, default=None)

    def _expected(self, record: JobRecord, model: str, *, due: bool = False) -> int | None:
        """What a job is expected to cost until the month turns, _SOME if unknown; None: nothing.

        `due`: what is spoken for once it starts, which is more for one that was tried in vain.
        """
        rate, is_known = self._cost(record, model)
        length = self._length(record)
        length = due_length(record, length) if due else length
        if not rate:
            return None if is_known else _SOME
        if length is None:
            return _SOME
        return max(_SOME, rate * min(length, self.renews_ms - self._now))

    def _cost(self, record: JobRecord, model: str) -> tuple[int, bool]:
        key = (record.job.members, model)
        if key not in self._costs:
            self._costs[key] = self._rate(*key)
        return self._costs[key]

    def _rate(self, members: tuple[Request, ...], model: str) -> tuple[int, bool]:
        """(cents a month x milli-cards on the dearest cards they accept, whether all prices are known)."""
        total, is_known = 0, True
        for request in members:
            if not request.cards:
                continue
            site = {card for kind in self._world.kinds for card in kind.cards}
            models = [card for card in site if accepts(request.profile, card)]
            chosen = [card for card in models if not model or card.name == model] or models
            costs = [
                self._prices[card.name] * asked_of(request, card)[0]
                for card in chosen
                if card.name in self._prices
            ]
            is_known = is_known and bool(costs)
            total += max(costs, default=0)
        return total, is_known

    def _sums(self) -> tuple[dict[int, int], dict[int, int], dict[int, int]]:
        """By node with a budget: used this month, expected of those who run, and what they use in a ms."""
        if self._read is None:
            bills = bills_of(self._world.spent, self._prices, self._now, self._nodes_of)
            used, due, rate = ({node: each[node] for node in self._limits} for each in bills[:3])
            self._read = used, due, rate
        return self._read

    def _nodes_of(self, queue: str) -> list[int]:
        """Of the path of `queue` those with a budget."""
        path = self._standing.tree.paths[self._standing.leaf(queue)]
        return [node for node in path if node in self._limits]


def _narrowest(record: JobRecord) -> JobRecord:
    elastic = record.job.elastic
    return record if elastic is None else at_width(record, elastic.widths[0])


def sooner(one: Lack, other: Lack) -> Lack:
    """What a job lacks of its budget on cards of one model, with the time when it may start on either."""
    return replace(one, again_ms=other.again_ms) if _is_later(one, other) else one


def _least(rate: int, tried: int) -> int:
    """What has to be left for a job that ran for `tried` in vain; 0: that it never did.

    Who can pay for a month goes on into the next. Tried for years, with others using the money up each time,
    it is not tried again.
    """
    if tried >= _GIVEN_UP_MS:
        return _NEVER
    return rate * min(tried + 1, _LONGEST_MS) if tried else 0


def _is_later(one: Lack, other: Lack) -> bool:
    """Whether `one` lasts longer: never ending is the longest."""
    return other.again_ms is not None and (one.again_ms is None or one.again_ms > other.again_ms)


def has_stops(settings: Settings) -> bool:
    """Whether jobs of some queue are stopped when its budget is used up, so that a plan is due then."""
    return any(queue.spent_grace_ms is not None for queue in settings.queues)
