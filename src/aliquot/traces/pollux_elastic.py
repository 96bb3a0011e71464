"""Aliquot's elastic shares in the Pollux replay: measured goodput in, nodes out.

Not known to it: how much work a job has left. A job's weight falls with the card-time it has had, so that
those who came lately, most of them short, are not held up by those who have run for hours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from aliquot.core.room.elastic import ElasticJob, share_cards
from aliquot.core.room.seats import Seats, seat_jobs
from aliquot.core.settings import ElasticRules
from aliquot.traces.published.pollux_model import CARDS_PER_NODE, NODES, Nodes, Run, Shape

SIZES = (1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64)


class ElasticTuning(msgspec.Struct, frozen=True):
    """Chosen on workloads 1-4 (the rules' defaults too), then left alone."""

    rules: ElasticRules = ElasticRules()
    fade: float = 0.5  # weight = (1 + attained / grace) ** -fade
    grace_card_s: float = 4 * 3600


class ElasticChooser:
    """Keeps nothing from round to round: what a job holds and since when is in its run."""

    def __init__(self, tuning: ElasticTuning = ElasticTuning()) -> None:  # noqa: B008 - a frozen value
        self._tuning = tuning

    def choose(self, now: int, jobs: Sequence[Run]) -> Mapping[str, Nodes]:
        """The nodes of every job that runs next."""
        offers = [self._offer(now, job) for job in jobs]
        cards = share_cards(offers, NODES * CARDS_PER_NODE, self._tuning.rules)
        seats = seat_jobs([CARDS_PER_NODE] * NODES, [_seats(job.nodes) for job in jobs], cards)
        return {job.name: _nodes(held) for job, held in zip(jobs, seats, strict=True) if held}

    def _offer(self, now: int, job: Run) -> ElasticJob:
        held = len(job.nodes)
        sizes, speeds = self._sizes(job, held)
        weight = (1 + job.attained / self._tuning.grace_card_s) ** -self._tuning.fade
        return ElasticJob(sizes, speeds, held, (now - job.moved_at) * 1000, weight)

    def _sizes(self, job: Run, held: int) -> tuple[tuple[int, ...], tuple[float, ...]]:
        if job.batch is not None:
            return (1,), (1.0,)
        offered: list[tuple[int, float]] = []
        best = 0.0
        for size in SIZES:
            speed = job.speeds.best(packed(size), job.epoch)
            if speed > best:
                offered.append((size, speed))
                best = speed
            elif size == held:
                offered.append((size, max(speed, 1e-12)))
        return tuple(size for size, _ in offered), tuple(speed for _, speed in offered)


def packed(cards: int) -> Shape:
    """Cards on as few nodes as they need: 10 is (4, 4, 2)."""
    full, rest = divmod(cards, CARDS_PER_NODE)
    return (CARDS_PER_NODE,) * full + ((rest,) if rest else ())


def _seats(nodes: Nodes) -> Seats:
    return tuple((node, nodes.count(node)) for node in sorted(set(nodes)))


def _nodes(seats: Seats) -> Nodes:
    return tuple(node for node, part in seats for _ in range(part))
