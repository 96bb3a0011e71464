"""Spot work and others in one pool through a daily cycle: what a cap on spot work saves, and what it costs.

32 cards; the others want about 6 of them at night and 26 in the afternoon, in jobs of 1 to 8 cards that take
about 40 minutes; there is always more spot work than room, in jobs of 1 to 4 cards and about 3 hours that
save their progress each half hour. Invented load, the same for every row of a seed; the forecast has the
first four days to learn, and the next five count.
Usage: bench_spot.py [SEEDS]
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from random import Random
from typing import Any

from msgspec.structs import replace

from aliquot.bootstrap import make_sim
from aliquot.control.whatif import Run
from aliquot.core.events import Event, Evicting
from aliquot.core.ids import JobId
from aliquot.core.jobs import Job, Request, Stop
from aliquot.core.report.classes import ClassScore
from aliquot.core.report.observation import Observation
from aliquot.core.settings import HOUR_MS, Preemption, Settings, SpotCap
from aliquot.core.workload import Offer, Scenario
from aliquot.core.world import World
from bench.measure import calibrate, print_table, write_results
from bench.small_site import small_nodes

DAY = 24 * HOUR_MS
LEARN, DAYS = 4, 9
LOW, HIGH = 6.0, 26.0
MINUTE = 60_000
RULES = Preemption(grace_ms=30_000, most_evictions=1000)
PLAIN = Settings(policy=(("best-fit", 1.0),), preemption=RULES)
CAPS = (
    ("no cap", None),
    ("half, 1 h", SpotCap(500, HOUR_MS)),
    ("0.9, 1 h", SpotCap(900, HOUR_MS)),
    ("0.9, 3 h", SpotCap(900, 3 * HOUR_MS)),
    ("0.99, 3 h", SpotCap(990, 3 * HOUR_MS)),
)


def main() -> None:
    """Run, print, write."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    rows = [measure(name, cap, seeds) for name, cap in CAPS]
    head = (
        "cap",
        "spot evictions",
        "lost card-h",
        "spot done card-h",
        "cards busy",
        "others wait, mean",
        "p95",
    )
    print_table("Spot work under a cap", head, [_shown(row) for row in rows])
    write_results("spot", rows, calibrate(), seeds=seeds)


def measure(name: str, cap: SpotCap | None, seeds: int) -> dict[str, Any]:
    """Means over the seeds of one policy."""
    runs = [run(cap, seed) for seed in range(1, seeds + 1)]
    found = {key: sum(one[key] for one in runs) / len(runs) for key in runs[0]}
    print(name, {key: round(value, 2) for key, value in found.items()}, flush=True)
    return {"cap": name, **found}


def run(cap: SpotCap | None, seed: int) -> dict[str, float]:
    """One run: what happened from the fifth day on; waits are those of all days."""
    scenario = site(seed)
    settings = Settings(policy=PLAIN.policy, preemption=RULES, spot_cap=cap)
    watch = Observation(scenario, settings=settings, window=(LEARN * DAY, DAYS * DAY))
    stops = _Stops()
    Run(scenario, settings, make_sim, (watch, stops)).finish()
    card = watch.result("spot").scorecard
    spot, others = (_of(card.per_class.queue, name) for name in ("spot", "others"))
    return {
        "evictions": float(stops.count),
        "lost_card_hours": card.lost_work_card_minutes / 60,
        "spot_card_hours": spot.allocated_card_hours * (spot.goodput or 0),
        "allocation": float(card.allocation or 0),
        "wait_mean_ms": float(others.wait_mean_ms or 0),
        "wait_p95_ms": float(others.wait_p95_ms or 0),
    }


class _Stops:
    """Counts who is stopped once the forecast has learnt."""

    def __init__(self) -> None:
        self.count = 0

    def see(self, events: Sequence[Event], world: World) -> None:
        """Count."""
        self.count += sum(isinstance(event, Evicting) and event.at >= LEARN * DAY for event in events)


def site(seed: int) -> Scenario:
    """Four nodes of eight cards and nine days of arrivals."""
    random = Random(seed)
    offers = sorted([*_others(random), *_spot(random)], key=lambda offer: offer.job.submitted_ms)
    numbered = tuple(replace(offer, job=replace(offer.job, seq=seq)) for seq, offer in enumerate(offers))
    return Scenario("spot", small_nodes(), numbered, ())


def _others(random: Random) -> list[Offer]:
    """Arrivals whose rate follows the hour of the day, thinned from the highest rate."""
    mean_ms, cards_each = 40 * MINUTE, 2.6
    most = HIGH / cards_each / mean_ms
    offers: list[Offer] = []
    at = 0.0
    while (at := at + random.expovariate(most)) < DAYS * DAY:
        wave = (1 - math.cos(2 * math.pi * (at / DAY - 3 / 24))) / 2  # least at 3 h, most at 15 h
        if random.random() < (LOW + (HIGH - LOW) * wave) / HIGH:
            cards = random.choices((1, 2, 4, 8), (45, 30, 15, 10))[0]
            work = max(MINUTE, int(random.lognormvariate(math.log(mean_ms) - 0.32, 0.8)))
            job = Job(
                JobId(f"o{len(offers)}"),
                (Request(cards=cards),),
                int(at),
                0,
                queue="others",
                estimate_ms=work,
            )
            offers.append(Offer(job, work))
    return offers


def _spot(random: Random) -> list[Offer]:
    """More than there is room for at any time; who finds none in half an hour is withdrawn."""
    offers: list[Offer] = []
    at = 0.0
    while (at := at + random.expovariate(5 / HOUR_MS)) < DAYS * DAY:
        cards = random.choices((1, 2, 4), (40, 30, 30))[0]
        work = max(30 * MINUTE, int(random.lognormvariate(math.log(3 * HOUR_MS) - 0.18, 0.6)))
        stop = Stop(checkpoint_ms=30 * MINUTE, restart_ms=2 * MINUTE)
        job = Job(
            JobId(f"s{len(offers)}"), (Request(cards=cards),), int(at), 0, queue="spot", spot=True, stop=stop
        )
        offers.append(Offer(job, work, patience_ms=30 * MINUTE))
    return offers


def _of(classes: tuple[ClassScore, ...], queue: str) -> ClassScore:
    return next(score for score in classes if score.name == queue)


def _shown(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        row["cap"],
        f"{row['evictions']:.0f}",
        f"{row['lost_card_hours']:.0f}",
        f"{row['spot_card_hours']:.0f}",
        f"{row['allocation']:.1%}",
        f"{row['wait_mean_ms'] / 1000:.0f} s",
        f"{row['wait_p95_ms'] / 1000:.0f} s",
    )


if __name__ == "__main__":
    main()
