"""The verbs of a plan. A plan is intent: nothing has happened until `commit` has turned it into events.

A plan places, keeps room, stops one job for another, moves, and explains waiting.
"""

from __future__ import annotations

from enum import Enum

import msgspec

from aliquot.core.grants import Placement
from aliquot.core.ids import JobId, NodeId
from aliquot.core.queues import Resource


class Gate(Enum):
    """What holds a waiting job."""

    ORDER = "order"  # a job before it waits and the queue is strict
    QUOTA = "quota"  # its queue has used up what it may take
    DEPENDENCY = "dependency"  # jobs it waits for are not over
    ARRAY = "array"  # as many of its array are under way as may be
    RESERVATION = "reservation"  # what is free is kept for a job before it
    RELEASE = "release"  # room was made for it; those who held it are still ending
    FIT = "fit"  # nothing free fits
    NEVER = "never"  # no node of the site could ever hold it
    BACKOFF = "backoff"  # a node refused it; tried again later


class Cause(Enum):
    """Why a running job is stopped for others."""

    PRIORITY = "priority"  # a job of higher priority needs the room
    RECLAIM = "reclaim"  # its queue borrowed what another's nominal needs
    SPOT = "spot"  # it took what nobody else wanted, and now somebody does
    IDLE = "idle"  # it held cards and did not use them
    DEFRAGMENT = "defragment"  # moved by stop and restart, to let a wider job in


class Shortfall(Enum):
    """Why a node does not take a request: the first that applies, in this order."""

    GONE = "not available"
    PROFILE = "has no card of the kind asked for"
    SIZE = "is too small even when empty"
    CPU = "lacks cpu"
    HOST = "lacks host memory"
    CARDS = "lacks free cards"
    MEMORY = "lacks card memory"
    COMPUTE = "lacks card compute"
    BANDWIDTH = "lacks card bandwidth"
    LINK = "has no NVLink-connected set that is free"


class Reason(msgspec.Struct, frozen=True):
    """`nodes` nodes fall short by `shortfall`; `need` and `best` are in the unit of that dimension."""

    shortfall: Shortfall
    nodes: int
    need: int | None = None
    best: int | None = None


class Term(msgspec.Struct, frozen=True):
    """One term of a score, in the policy's own unit, as it was when the choice was made."""

    name: str
    value: float


class RunnerUp(msgspec.Struct, frozen=True):
    """The next best node for the first member, and its score."""

    node: NodeId
    score: float
    terms: tuple[Term, ...] = ()


class Place(msgspec.Struct, frozen=True):
    """Grant all members of `job` at once, or none. Keeps the terms of its score; the runner-up if asked for.

    A smaller score is better. `terms` add up to it for the policies that have terms.
    """

    job: JobId
    attempt: int
    placements: tuple[Placement, ...]
    score: float = 0.0
    terms: tuple[Term, ...] = ()
    runner_up: RunnerUp | None = None


class Move(msgspec.Struct, frozen=True):
    """Move one member of a running job to `placement`; a Place of the same plan may depend on it."""

    job: JobId
    attempt: int
    member: int
    placement: Placement
    for_job: JobId | None = None


class Reserve(msgspec.Struct, frozen=True):
    """Keep `placements` for a waiting job; see `events.Reserved`.

    Where others are stopped for it, `sets` of them were compared, and the best other would have cost
    `next_cost_ms` of one card (None: there was no other, or none was worked out).
    """

    job: JobId
    placements: tuple[Placement, ...]
    from_ms: int
    until_ms: int | None = None
    firm: bool = False
    sets: int = 0
    next_cost_ms: int | None = None


class Unreserve(msgspec.Struct, frozen=True):
    """Open to others what was kept for `job`."""

    job: JobId


class Evict(msgspec.Struct, frozen=True):
    """Stop a running job for another; it goes back to its queue with its first submit time.

    `cost_ms` is the work that is lost by it, in milliseconds of one whole card.
    """

    job: JobId
    attempt: int
    cause: Cause
    for_job: JobId | None = None
    grace_ms: int = 0
    cost_ms: int = 0


class Withdraw(msgspec.Struct, frozen=True):
    """Give up a waiting job that can never start, or end one that does not use what it holds."""

    job: JobId
    reason: str
    others: tuple[JobId, ...] = ()  # whose end made it so


class Resize(msgspec.Struct, frozen=True):
    """Let a running elastic job go on with `placements`: all it will hold, wider or narrower than now."""

    job: JobId
    attempt: int
    placements: tuple[Placement, ...]


class Warn(msgspec.Struct, frozen=True):
    """Tell the owner of a job that does not use its cards that it will be stopped."""

    job: JobId
    attempt: int


class Kill(msgspec.Struct, frozen=True):
    """End the processes of an attempt. Derived from a recorded intent, so it may be repeated.

    After a warning they have `grace_ms` to save what they can; 0: the engine's own grace for cancelled jobs.
    """

    job: JobId
    attempt: int
    grace_ms: int = 0
    evicted: bool = False


class Start(msgspec.Struct, frozen=True):
    """Start an attempt on what it was granted. Derived from a recorded grant, so it may be repeated."""

    job: JobId
    attempt: int
    placements: tuple[Placement, ...]


class Lack(msgspec.Struct, frozen=True):
    """Of `resource` a queue needs `need` and may have `have` more; `queue` is the one whose limit it is."""

    resource: Resource
    need: int
    have: int
    queue: str


class Wait(msgspec.Struct, frozen=True):
    """`job` waits at `gate`. The reasons' counts add up to the number of nodes.

    `lack` for QUOTA; `until_ms` when it is expected to start, where it has a reservation; `others` are the
    jobs it waits for.
    """

    job: JobId
    gate: Gate
    reasons: tuple[Reason, ...] = ()
    lack: Lack | None = None
    until_ms: int | None = None
    others: tuple[JobId, ...] = ()


class Tidy(msgspec.Struct, frozen=True):
    """The moves before this step were a look-over due at `asked_milli`; the next is due later."""

    asked_milli: int


Work = Start | Kill | Move | Resize
"""What an engine is told to do, derived from recorded intents."""

Step = Place | Move | Reserve | Unreserve | Evict | Withdraw | Warn | Resize | Kill | Wait | Tidy


class Plan(msgspec.Struct, frozen=True):
    """Steps in the order they were decided, against a world of `version`."""

    version: int
    steps: tuple[Step, ...] = ()
    wake_ms: int | None = None  # plan again by then, even if nothing happens
