"""Backfill on a published month: Philly, October 2017, 47,192 jobs on 80 nodes of 8 cards.

Counts of cards only, and ends before arrivals at one moment. The textbook rules are here to be compared
with; their figures move by several percent with how ties between like nodes are broken.
"""

from __future__ import annotations

import csv
import heapq
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from aliquot.core.columns import I64
from aliquot.core.room.backfill import Running, Waiting, decide
from aliquot.core.room.disciplines import EASY, FIFO
from aliquot.core.settings import Backfill, Overrun

NODES, CARDS, PARTS = 80, 8, 4


class Month(NamedTuple):
    """Jobs by submit time, then by their place in the file; ms."""

    submitted: I64
    ran: I64
    cards: I64


class Waits(NamedTuple):
    """Seconds."""

    mean: float
    worst: float
    wide: float


@pytest.fixture(scope="module")
def month(shared: Path) -> Month:
    with (shared / "traces" / "philly" / "philly.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if "2017-10-01" <= row["timestamp"] < "2017-11-01"]
    at = [datetime.fromisoformat(row["timestamp"] + "+00:00").timestamp() for row in rows]
    order = np.argsort(at, kind="stable")
    columns = (at, [float(row["duration"]) for row in rows], [float(row["num_gpus"]) for row in rows])
    submitted, ran, cards = (np.array(column)[order] for column in columns)
    return Month((submitted * 1000).astype(np.int64), (ran * 1000).astype(np.int64), cards.astype(np.int64))


def live(month: Month, estimate: I64, rules: Backfill, overrun: Overrun) -> Waits:
    """The month under `rules`, event by event."""
    jobs = len(month.cards)
    size, start = np.full(NODES, CARDS, np.int64), np.full(jobs, -1, np.int64)
    free, rows, cards = size.copy(), *np.zeros((2, jobs, PARTS), np.int64)
    waiting = running = np.zeros(0, np.int64)
    ends: list[tuple[int, int]] = []
    coming = 0
    while coming < jobs or ends:
        now = min(ends[0][0] if ends else 2**62, int(month.submitted[coming]) if coming < jobs else 2**62)
        over = []
        while ends and ends[0][0] <= now:
            over.append(heapq.heappop(ends)[1])
        np.add.at(free, rows[over], cards[over])
        running = running[start[running] + month.ran[running] > now]
        arrived = coming
        while coming < jobs and month.submitted[coming] <= now:
            coming += 1
        waiting = np.concatenate((waiting, np.arange(arrived, coming)))
        if not len(waiting) or not free.any():
            continue
        end = start[running] + estimate[running]
        again = now + overrun.least_ms + (now - start[running]) * overrun.again_milli // 1000
        table = Running(np.where(end <= now, again, end), rows[running], cards[running])
        asked = Waiting(month.submitted[waiting], month.cards[waiting], estimate[waiting])
        found = decide(now, size, free, table, asked, rules)
        new = waiting[found.started]
        start[new], rows[new], cards[new] = now, found.rows[found.started], found.cards[found.started]
        np.subtract.at(free, rows[new], cards[new])
        for job in new:
            heapq.heappush(ends, (now + int(month.ran[job]), int(job)))
        running, waiting = np.concatenate((running, new)), waiting[~found.started]
    waits = (start - month.submitted) / 1000
    return Waits(waits.mean(), waits.max(), waits[month.cards >= CARDS].mean())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rules", "published", "within"),
    [
        pytest.param(FIFO, Waits(12_410, 137_981, 15_694), 0.03, id="first come, first served"),
        pytest.param(EASY, Waits(2_845, 152_356, 15_656), 0.08, id="EASY with exact estimates"),
    ],
)
def test_the_textbook_rules_give_the_published_waits(
    month: Month, rules: Backfill, published: Waits, within: float
) -> None:
    assert live(month, month.ran, rules, Overrun(again_milli=0)) == pytest.approx(published, rel=within)


@pytest.mark.slow
def test_with_exact_estimates_all_three_waits_are_short_at_once(month: Month) -> None:
    found = live(month, month.ran, Backfill(), Overrun())
    assert found.mean <= 2_000
    assert found.worst <= 155_000
    assert found.wide <= 15_700


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_with_estimates_wrong_by_up_to_ten_times_they_stay_so(month: Month, seed: int) -> None:
    wrong = 10 ** np.random.default_rng(seed).uniform(-1, 1, len(month.ran))
    found = live(month, (month.ran * wrong).astype(np.int64), Backfill(), Overrun())
    assert found.mean <= 2_850
    assert found.worst <= 165_000
    assert found.wide <= 20_000
