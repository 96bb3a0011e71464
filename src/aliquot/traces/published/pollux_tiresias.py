"""The Tiresias baseline of the Pollux simulator: two queues by attained service, tuned sizes, not elastic.

A job moves to the second queue once it has had 16 card-hours; inside a queue the first comes first. Running
jobs keep their cards; a job that starts takes free cards from the node that has most of them left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from aliquot.traces.published.pollux_model import CARDS_PER_NODE, NODES, Nodes, Run

THRESHOLD_CARD_S = 16 * 3600


class Tiresias:
    """Keeps its two queues from round to round."""

    def __init__(self) -> None:
        self._queues: tuple[list[str], list[str]] = ([], [])
        self._executed: Counter[str] = Counter()
        self._since: dict[str, int] = {}
        self._held: dict[str, Nodes] = {}

    def choose(self, now: int, jobs: Sequence[Run]) -> Mapping[str, Nodes]:
        """The nodes of every job that runs next; jobs in the order of the workload."""
        active = {job.name: job for job in jobs}
        self._update(now, active)
        free_cards, going = NODES * CARDS_PER_NODE, []
        for name in (*self._queues[0], *self._queues[1]):
            cards = active[name].job.cards
            if cards <= free_cards:
                free_cards -= cards
                going.append(name)
        self._held = {name: nodes for name, nodes in self._held.items() if name in set(going)}
        free = [CARDS_PER_NODE] * NODES
        for nodes in self._held.values():
            for node in nodes:
                free[node] -= 1
        for name in going:
            if name not in self._held:
                self._held[name] = _take(free, active[name].job.cards)
        return dict(self._held)

    def _update(self, now: int, active: Mapping[str, Run]) -> None:
        first, second = self._queues
        first[:] = [name for name in first if name in active]
        second[:] = [name for name in second if name in active]
        for name, job in active.items():
            if name not in self._since:
                first.append(name)
            elif name in self._held:
                self._executed[name] += now - self._since[name]
                if name in first and self._executed[name] * job.job.cards >= THRESHOLD_CARD_S:
                    first.remove(name)
                    second.append(name)
            self._since[name] = now


def _take(free: list[int], cards: int) -> Nodes:
    taken: list[int] = []
    while len(taken) < cards:
        node = free.index(max(free))
        part = min(free[node], cards - len(taken))
        taken += [node] * part
        free[node] -= part
    return tuple(taken)
