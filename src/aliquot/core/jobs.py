"""What is asked: a job, its members, and what each member needs of one node.

A job is a gang of one or more members, each placed on one node; most jobs have one. The planner sees a
job's `estimate_ms`; how long it truly runs is known only to the engine that runs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import msgspec

from aliquot.core.ids import JobId
from aliquot.core.inventory import CardModel, Profile
from aliquot.core.slices import Ask, Cut, resolve_ask
from aliquot.core.together import Together
from aliquot.core.units import FULL
from aliquot.core.wishes import Group, Wish


class Stage(Enum):
    """What the job is for; objective weights and defaults depend on it."""

    DEVELOPMENT = "development"
    TRAINING = "training"
    INFERENCE = "inference"


class Link(Enum):
    """How much a multi-card request cares for NVLink."""

    ANY = "any"  # best-linked set that is free
    REQUIRED = "required"  # one NVLink-connected set or wait


class When(Enum):
    """How the job that one waits for has to end."""

    ENDED = "after"
    SUCCEEDED = "after-ok"


class After(msgspec.Struct, frozen=True):
    """An edge: the job that has it waits until `on` has ended so."""

    on: JobId
    when: When = When.ENDED


class Array(msgspec.Struct, frozen=True):
    """Many jobs alike, of which at most `width` may be under way at once; None: no limit."""

    name: str
    size: int
    width: int | None = None


class Elastic(msgspec.Struct, frozen=True):
    """Widths a job can run at, rising, and its speed at each, in milli of that of its first width.

    A width counts the cards of a job of one member, and the members of a gang. The job's work and estimate
    are those at its first width.
    """

    widths: tuple[int, ...]
    speeds_milli: tuple[int, ...]

    def speed(self, width: int) -> int:
        """Milli at the widest width that is not above `width`; that of the first below it."""
        below = [milli for wide, milli in zip(self.widths, self.speeds_milli, strict=True) if wide <= width]
        return below[-1] if below else self.speeds_milli[0]


class Stop(msgspec.Struct, frozen=True):
    """What it costs to stop a job and start it again.

    `checkpoint_ms`: progress is saved each time it has run this long; None: never or unknown, so all is lost.
    """

    checkpoint_ms: int | None = None
    restart_ms: int = 0  # before it makes progress again
    stop_ms: int = 0  # from the warning until its processes are gone, at most the grace
    preemptible: bool = True


class Bound(msgspec.Struct, frozen=True):
    """What a job was promised, or asks to be promised, in ms of the engine's time; None: nothing."""

    start_by_ms: int | None = None
    finish_by_ms: int | None = None
    speed_floor_milli: int | None = None  # of its speed on cards of its own


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
    user: str = ""
    minimum: int | None = None  # members that must start together; None: all
    after: tuple[After, ...] = ()
    array: Array | None = None
    elastic: Elastic | None = None
    stop: Stop = Stop()
    bound: Bound = Bound()
    limit_ms: int | None = None  # whoever runs it ends it after this long
    spot: bool = False  # takes what nobody else wants, and gives it back first
    spread: bool = False  # members, and copies, balanced over racks, then nodes, then cards
    groups: tuple[Group, ...] = ()  # of its members, with minima and wishes of their own
    wish: Wish | None = None  # where all members should be, seen from each other
    together: Together | None = None  # it may share its whole cards, and what it needs of them then

    @property
    def is_sited(self) -> bool:
        """Whether it matters where its members are, seen from each other, or which of them start."""
        return self.wish is not None or bool(self.groups)

    @property
    def may_share(self) -> bool:
        """Whether it may share its cards with others: whole ones, of a width that does not change."""
        if self.together is None or self.elastic is not None or self.scatter:
            return False
        return all(request.whole for request in self.members)

    @property
    def least(self) -> int:
        """Members that must start together, so that every group has its own minimum too; never below one."""
        if self.groups:
            own = max((group.members[group.least - 1] + 1 for group in self.groups), default=0)
            return max(own, self.minimum or 0, 1)
        if self.minimum is None and self.elastic is not None and len(self.members) > 1:
            return min(self.elastic.widths[0], len(self.members))
        return len(self.members) if self.minimum is None else max(1, self.minimum)

    def sized(self, width: int) -> Job:
        """The job as it is at `width` cards, or members of a gang; host resources in proportion."""
        if len(self.members) > 1:
            return msgspec.structs.replace(self, members=self.members[:width])
        (request,) = self.members
        if width == request.cards or not request.cards:
            return self
        part = msgspec.structs.replace(
            request,
            cards=width,
            cpu_milli=-(-request.cpu_milli * width // request.cards),
            host_mib=-(-request.host_mib * width // request.cards),
        )
        return msgspec.structs.replace(self, members=(part,))

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


def gang_of(
    parts: Sequence[tuple[str, Sequence[Request], int | None, Wish | None]],
) -> tuple[tuple[Request, ...], tuple[Group, ...]]:
    """Members and groups of a gang of `parts`: (name, requests, minimum or None for all, wish).

    What every group needs to start comes first, then one more of each in turn: so a gang that starts with its
    first members only has the minimum of every group.
    """
    needed = [len(asked) if least is None else least for _, asked, least, _ in parts]
    order = [(at, number) for at, least in enumerate(needed) for number in range(least)]
    for more in range(max((len(asked) for _, asked, _, _ in parts), default=0)):
        order += [
            (at, needed[at] + more)
            for at, (_, asked, _, _) in enumerate(parts)
            if needed[at] + more < len(asked)
        ]
    places = [tuple(place for place, (at, _) in enumerate(order) if at == part) for part in range(len(parts))]
    return (
        tuple(parts[at][1][number] for at, number in order),
        tuple(
            Group(name, places[at], least if least != len(asked) else None, wish)
            for at, (name, asked, least, wish) in enumerate(parts)
        ),
    )


def asked_of(request: Request, model: CardModel) -> tuple[int, int]:
    """(milli-cards, MiB) that all cards of `request` ask, were they of `model`.

    What an ask leaves unsaid follows from the model, by the ledger's own rule; what such a card could never
    hold counts as written.
    """
    if not request.cards:
        return 0, 0
    ask = request.ask
    vector = resolve_ask(ask, model.usable_mib)
    milli = FULL if request.whole or vector is None else vector.compute
    memory = ask.memory_mib
    if memory is None:
        memory = model.usable_mib if vector is None else vector.memory
    return request.cards * milli, request.cards * memory
