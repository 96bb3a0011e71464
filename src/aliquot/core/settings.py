"""The policy's values: everything a site can turn, with its default. Data only."""

from __future__ import annotations

from enum import Enum
from typing import Final

import msgspec

from aliquot.core.queues import Discipline, Queue, priority_of
from aliquot.core.slices import SliceClass

HOUR_MS: Final = 3_600_000

__all__ = [
    "HOUR_MS",
    "Backfill",
    "Colocation",
    "Defrag",
    "Discipline",
    "EfficiencyFloor",
    "ElasticRules",
    "Estimating",
    "Idling",
    "MixSource",
    "Objectives",
    "Order",
    "Overrun",
    "Preemption",
    "Rates",
    "Rescue",
    "Settings",
    "Source",
    "SpotCap",
]


class MixSource(Enum):
    """Where the demand mix of an epoch comes from."""

    LIST = "list"  # the whole list of requests, known beforehand
    WINDOW = "window"  # the last `mix_window` submissions


class Source(Enum):
    """Whose word counts for how long a job will run."""

    USER = "user"  # only its owner's
    HISTORY = "history"  # that of jobs like it, and its owner's until enough of them are known
    BEST = "best"  # its owner's, and where he says nothing that of jobs like it


class Estimating(msgspec.Struct, frozen=True):
    """How long jobs are expected to run. What jobs like it say is this quantile of their run times."""

    source: Source = Source.USER
    quantile_milli: int = 900

    @property
    def learnt_milli(self) -> int:
        """The quantile a world is to guess by; 0, so it need not learn, where only owners are believed."""
        return 0 if self.source is Source.USER else self.quantile_milli


class Rescue(msgspec.Struct, frozen=True):
    """Whether a request that does not fit may move one movable slice, and how many moves in all."""

    share: float = 0.0  # moves allowed per placed job, such as 0.03
    worth_milli: int = 1000  # a rescue may destroy this much of what it lets in, milli of it
    tidy_gain: int = 30  # a tidying move must gain this much future packing, milli-cards
    tidy_every_milli: int = 10  # tidy once per this much of capacity newly offered
    tidy_from_milli: int = 800  # and only once this much of capacity has been offered
    tidy_moves: int = 20


class Objectives(msgspec.Struct, frozen=True):
    """How much each goal weighs, in thousandths that add up to 1000. Reading documents makes values of it."""

    performance_milli: int = 250
    utilisation_milli: int = 250
    fairness_milli: int = 250
    stability_milli: int = 250


class Order(msgspec.Struct, frozen=True):
    """Who goes first among those of one tier. Priority rises a point per `aging_ms` up to `aging_ceiling`."""

    aging_ms: int = 0  # 0: no aging
    aging_ceiling: int = 10
    half_life_ms: int = 24 * HOUR_MS  # of past usage; 0: the past does not count
    by_size: bool = False  # shorter work (estimate x cards) first, after fair share


class Overrun(msgspec.Struct, frozen=True):
    """What a job that has outrun its estimate still needs: `least_ms` and a part of its time so far."""

    least_ms: int = 60_000
    again_milli: int = 1000  # 0: only `least_ms`, the textbook rule


class Backfill(msgspec.Struct, frozen=True):
    """Who waits too long gets a reservation, and who may start beside it.

    A job is overdue after `overdue_ms`, or `overdue_wide_ms` if it is wide.
    """

    by_size: bool = True  # shortest work first among those not overdue; False: by submit time
    overdue_ms: int = 18 * HOUR_MS
    overdue_wide_ms: int = 9 * HOUR_MS
    wide_cards: int = 8  # a job of this many, or of several members, is wide
    reservations: int = 8  # at most, in one pass
    first: int = 1  # of them, this many also for jobs not overdue
    doubt_milli: int = 3000  # who starts beside a reservation must be over by then at this multiple
    pass_blocked: bool = True  # False: nothing starts behind a job that does not fit
    by_end: bool = True  # nodes where jobs end together, then best fit; False: best fit only


class Preemption(msgspec.Struct, frozen=True):
    """Who may be stopped for whom. Nothing is stopped that the beneficiary could start without."""

    lower_priority: bool = True  # in the own queue, and anywhere where there are no quotas
    across_queues: bool = False  # lower priority anywhere, whatever the quotas; then nothing is reclaimed
    reclaim: bool = True  # from queues that borrow, for one within its nominal
    spot: bool = True  # spot work, for anybody
    least_run_ms: int = 0  # a job is left alone until it has run this long
    grace_ms: int = 30_000  # between the warning and the end
    most_victims: int = 4096
    most_evictions: int = 5  # of one job; then only a higher tier may stop it
    again_milli: int = 500  # what an earlier eviction adds to a victim's cost, milli of its cards for an hour
    per_plan: int = 64  # beneficiaries looked at in one plan; the others come first in the next
    shrink: bool = True  # gangs above their minimum and elastic jobs may go on narrower instead
    work: int = 150_000  # candidates looked at for beneficiaries in one plan, in all, as `room.effort` counts


class ElasticRules(msgspec.Struct, frozen=True):
    """`change_milli` of a job's slowness is what its stop costs. Defaults: chosen on Pollux workloads 1-4."""

    change_milli: int = 120
    dwell_ms: int = 120_000
    evenness_milli: int = 500


class EfficiencyFloor(msgspec.Struct, frozen=True):
    """Least speed per card, relative to the narrowest width: rises linearly between two loads."""

    at_low_milli: int = 500
    at_high_milli: int = 900
    low_load_milli: int = 500
    high_load_milli: int = 950

    def at(self, load_milli: int) -> float:
        """The floor at a load: 0.5 up to half load, 0.7 at 725, 0.9 from 950 on."""
        span = self.high_load_milli - self.low_load_milli
        part = min(max(load_milli - self.low_load_milli, 0), span) / span
        return (self.at_low_milli + (self.at_high_milli - self.at_low_milli) * part) / 1000


class Defrag(msgspec.Struct, frozen=True):
    """Running movable jobs may be moved for one that is wider than any node has room for."""

    moves_an_hour: int = 20
    after_ms: int = 300_000  # a job must have waited this long
    pause_ms: int = 30_000  # what a move costs each card, beside the job's own restart


class Idling(msgspec.Struct, frozen=True):
    """A job that holds cards and does not use them is warned, and later stopped.

    One that makes checkpoints goes back to its queue; one that makes none is over.
    """

    warn_after_ms: int = 30 * 60_000
    stop_after_ms: int = HOUR_MS
    grace_ms: int = 60_000


class Colocation(msgspec.Struct, frozen=True):
    """Jobs that may share their cards do so where nothing free fits and it is predicted to pay.

    What all of them together get through, in cards' worth of speed, must gain more than `least_gain_milli` by
    the one that joins. The default is where two alike are over no later on average than one after the other.
    """

    least_gain_milli: int = 333
    most: int = 2  # jobs on one set of cards, 4 at most


class SpotCap(msgspec.Struct, frozen=True):
    """Spot work starts only on cards that other work is not expected to want within the horizon."""

    quantile_milli: int = 900  # of the rises of its demand that were seen
    horizon_ms: int = HOUR_MS


class Rates(msgspec.Struct, frozen=True):
    """What a card of a model is worth: thousandths of the reference card, and cents a month."""

    compute_milli: tuple[tuple[str, int], ...] = ()
    cents_a_month: tuple[tuple[str, int], ...] = ()


class Settings(msgspec.Struct, frozen=True):
    """One policy file. `policy` weighs placement policies by name; one entry is the usual case."""

    policy: tuple[tuple[str, float], ...] = (("future-packing", 1.0),)
    shared: bool = True  # False: every request takes whole cards
    discipline: Discipline = Discipline.BEST_EFFORT
    by_priority: bool = True
    topology_aware: bool = True
    seed: int = 0
    mix_source: MixSource = MixSource.LIST
    mix_window: int = 2000
    mix_epoch: int = 500
    rescue: Rescue = Rescue()
    scatter: bool = False
    mechanisms: tuple[tuple[str, bool], ...] = ()
    queues: tuple[Queue, ...] = ()
    order: Order = Order()
    backfill: Backfill | None = None  # None: no reservations
    overrun: Overrun = Overrun()
    estimates: Estimating = Estimating()
    preemption: Preemption | None = None  # None: nothing is stopped for another
    elastic: ElasticRules | None = None  # None: an elastic job keeps the width it started with
    idling: Idling | None = None  # None: nobody is stopped for not using its cards
    defrag: Defrag | None = None  # None: nothing is moved together for a wide job
    colocation: Colocation | None = None  # None: whole cards are never shared
    spot_cap: SpotCap | None = None  # None: spot work takes whatever is free
    floor: EfficiencyFloor = EfficiencyFloor()
    rates: Rates = Rates()
    objectives: Objectives | None = None  # None: nobody weighed them; else what the values above follow from
    slices: tuple[SliceClass, ...] = ()
    engine: str = "numba"  # or "python": the plain twins, for small sites
    resizes_in_place: bool = True  # as the engine can: False: a job changes its width by stop and restart

    @property
    def past_half_life_ms(self) -> int:
        """The half-life a world keeps past usage with; 0, so none is kept, where there are no queues."""
        return self.order.half_life_ms if self.queues else 0

    @property
    def folding(self) -> dict[str, int]:
        """What a world under these settings folds by, as `World` and `image.world_of` take it."""
        return {
            "window": self.mix_window,
            "half_life_ms": self.past_half_life_ms,
            "quantile_milli": self.estimates.learnt_milli,
        }

    def queue_priority(self, name: str) -> int:
        """Priority of the queue `name`, its own or from above; 0 where none is configured."""
        return priority_of(name, {queue.name: queue for queue in self.queues})
