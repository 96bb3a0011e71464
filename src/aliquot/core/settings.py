"""The policy's values: everything a site can turn, with its default. Data only."""

from __future__ import annotations

from enum import Enum

import msgspec

from aliquot.core.ids import JobId
from aliquot.core.queues import Queue
from aliquot.core.slices import SliceClass


class Discipline(Enum):
    """What a waiting job does to those behind it."""

    STRICT = "strict-fifo"  # nothing passes the first job that does not fit
    BEST_EFFORT = "best-effort"  # later jobs start where they fit


class MixSource(Enum):
    """Where the demand mix of an epoch comes from."""

    LIST = "list"  # the whole list of requests, known beforehand
    WINDOW = "window"  # the last `mix_window` submissions


class Rescue(msgspec.Struct, frozen=True):
    """Whether a request that does not fit may move one movable slice, and how many moves in all."""

    share: float = 0.0  # moves allowed per placed job, such as 0.03
    worth_milli: int = 1000  # a rescue may destroy this much of what it lets in, milli of it
    tidy_gain: int = 30  # a tidying move must gain this much future packing, milli-cards
    tidy_every_milli: int = 10  # tidy once per this much of capacity newly offered
    tidy_from_milli: int = 800  # and only once this much of capacity has been offered
    tidy_moves: int = 20


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
    slices: tuple[SliceClass, ...] = ()
    engine: str = "numba"  # or "python": the plain twins, for small sites

    def queue_priority(self, name: str) -> int:
        """Priority of the queue `name`; 0 where none is configured."""
        return next((queue.priority for queue in self.queues if queue.name == name), 0)


class Movable(msgspec.Struct, frozen=True):
    """One grant that policy allows to move: job, and its row and card now."""

    job: JobId
    row: int
    card: int
