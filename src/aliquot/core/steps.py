"""The verbs of a plan. A plan is intent: nothing has happened until `commit` has turned it into events.

So far a plan places, moves, kills and explains waiting; the verbs that make room come with their deciders.
"""

from __future__ import annotations

from enum import Enum

import msgspec

from aliquot.core.grants import Placement
from aliquot.core.ids import JobId, NodeId


class Gate(Enum):
    """What holds a waiting job."""

    ORDER = "order"  # a job before it waits and the queue is strict
    FIT = "fit"  # nothing free fits
    NEVER = "never"  # no node of the site could ever hold it
    BACKOFF = "backoff"  # a node refused it; tried again later


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


class Kill(msgspec.Struct, frozen=True):
    """End the processes of an attempt. Derived from a recorded intent, so it may be repeated."""

    job: JobId
    attempt: int


class Start(msgspec.Struct, frozen=True):
    """Start an attempt on what it was granted. Derived from a recorded grant, so it may be repeated."""

    job: JobId
    attempt: int
    placements: tuple[Placement, ...]


class Wait(msgspec.Struct, frozen=True):
    """`job` waits at `gate`. The reasons' counts add up to the number of nodes."""

    job: JobId
    gate: Gate
    reasons: tuple[Reason, ...] = ()


class Tidy(msgspec.Struct, frozen=True):
    """The moves before this step were a look-over due at `asked_milli`; the next is due later."""

    asked_milli: int


Step = Place | Move | Kill | Wait | Tidy


class Plan(msgspec.Struct, frozen=True):
    """Steps in the order they were decided, against a world of `version`."""

    version: int
    steps: tuple[Step, ...] = ()
    wake_ms: int | None = None  # plan again by then, even if nothing happens
