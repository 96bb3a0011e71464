"""What is asked: a job, its members, and what each member needs of one node.

A job is a gang of one or more members, each placed on one node; most jobs have one. The planner sees a
job's `estimate_ms`; how long it truly runs is known only to the engine that runs it.
"""

from __future__ import annotations

from enum import Enum

import msgspec

from aliquot.core.ids import JobId
from aliquot.core.inventory import Profile
from aliquot.core.slices import Ask, Cut


class Stage(Enum):
    """What the job is for; objective weights and defaults depend on it."""

    DEVELOPMENT = "development"
    TRAINING = "training"
    INFERENCE = "inference"


class Link(Enum):
    """How much a multi-card request cares for NVLink."""

    ANY = "any"  # best-linked set that is free
    REQUIRED = "required"  # one NVLink-connected set or wait


class Request(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """What one member asks of one node. `cards` = 0 is a CPU-only request.

    The key of many caches, so its hash is kept.
    """

    cpu_milli: int = 0
    host_mib: int = 0
    cards: int = 0
    ask: Ask = Ask()
    profile: Profile = Profile()
    link: Link = Link.ANY
    distinct: bool = True  # shared slices on distinct cards; False: several on one card will do ("pack")
    traffic_mbs: int = 0  # PCIe and host traffic each card makes, MB/s

    @property
    def whole(self) -> bool:
        """Whether cards must be idle and are booked entirely."""
        return self.cards > 0 and (
            self.ask.cut is Cut.WHOLE or (self.ask.memory_mib is None and self.ask.compute_milli is None)
        )


class Job(msgspec.Struct, frozen=True, gc=False):
    """One submitted job. `submitted_ms` and `seq` never change, whatever happens to its attempts."""

    id: JobId
    members: tuple[Request, ...]
    submitted_ms: int
    seq: int
    queue: str = ""
    priority: int = 0
    stage: Stage = Stage.TRAINING
    estimate_ms: int | None = None
    movable: bool = False  # may be moved to other cards while it runs
    scatter: bool = False  # may be split over nodes when no node has all cards, at the speed that gives
    replica_of: str = ""  # the document's job this is a copy of

    def scattered(self, width: int) -> Job:
        """The same job as members of `width` cards each; `width` divides the cards of its only member."""
        (request,) = self.members
        pieces = request.cards // width
        part = msgspec.structs.replace(
            request,
            cards=width,
            link=Link.ANY,
            cpu_milli=-(-request.cpu_milli // pieces),
            host_mib=-(-request.host_mib // pieces),
        )
        return msgspec.structs.replace(self, members=(part,) * pieces)
