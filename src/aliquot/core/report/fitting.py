"""Which jobs the machines seen so far could ever hold, with nothing else on them.

One that they never could is no demand: it takes nothing from its queue that anybody could have given it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

from aliquot.core.ids import JobId, NodeId
from aliquot.core.inventory import CardModel, Node
from aliquot.core.jobs import Job, Request
from aliquot.core.report.lives import Life
from aliquot.core.report.needs import serving_cards

_Kind = tuple[tuple[CardModel, ...], int, int]  # its cards, milli-cores and MiB


class Fitting:
    """Feed it every node that joins; one that is lost may return and counts still."""

    def __init__(self) -> None:
        self._kind_of: dict[NodeId, _Kind] = {}
        self._kinds: Counter[_Kind] = Counter()
        self._known: dict[Hashable, bool] = {}
        self._unfit: dict[JobId, Life] = {}

    def join(self, node: Node) -> tuple[Life, ...]:
        """A node is there, with what it now reports: the waiting jobs that could be held from now on."""
        kind = (tuple(card.model for card in node.cards), node.cpu_milli, node.host_mib)
        before = self._kind_of.get(node.id)
        if before == kind:
            return ()
        if before is not None:
            self._kinds[before] -= 1
        self._kind_of[node.id] = kind
        self._kinds[kind] += 1
        self._known.clear()
        found = tuple(life for life in self._unfit.values() if self.can_hold(life.job))
        for life in found:
            self.forget(life)
        return found

    def holds_back(self, life: Life) -> bool:
        """Whether a job that is ready waits for machines that there are not."""
        unfit = not self.can_hold(life.job)
        if unfit:
            self._unfit[life.job.id] = life
        return unfit

    def forget(self, life: Life) -> bool:
        """It waits no more. Whether it was for machines that there are not."""
        return self._unfit.pop(life.job.id, None) is not None

    def can_hold(self, job: Job) -> bool:
        """Whether `job` could start on nodes that hold nothing else; at its first width if it has several."""
        key = (job.members, job.least, job.scatter, job.elastic)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._judge(job)
        return known

    def _judge(self, job: Job) -> bool:
        if len(job.members) == 1:
            request = job.members[0]
            cards = request.cards if job.elastic is None else job.elastic.widths[0]
            return self._total(request) >= cards if job.scatter else self._has(request, cards)
        fitting = [request for request in job.members if self._has(request, request.cards)]
        whole = sorted(request.cards for request in fitting if request.whole)
        most = max((self._total(request) for request in fitting if request.whole), default=0)
        needs = sum(whole[: max(0, job.least - (len(fitting) - len(whole)))])
        return len(fitting) >= job.least and needs <= most

    def _has(self, request: Request, cards: int) -> bool:
        """Whether some node has what one member asks for."""
        return any(
            count > 0
            and request.cpu_milli <= cpu
            and request.host_mib <= host
            and _serves(request, cards, models)
            for (models, cpu, host), count in self._kinds.items()
        )

    def _total(self, request: Request) -> int:
        """Cards of all nodes that serve it."""
        return sum(count * sum(serving_cards(request, kind[0])) for kind, count in self._kinds.items())


def _serves(request: Request, cards: int, models: tuple[CardModel, ...]) -> bool:
    serving = sum(serving_cards(request, models))
    return serving >= (cards if request.whole or request.distinct else min(cards, 1))
