"""All that can happen, as frozen records. The world is nothing but the fold of these.

Every event carries `at`, the engine's time in milliseconds when it was seen or decided. Identities are ids;
rows and indices never appear. Telemetry will have records of its own that are folded but not journalled.
"""

from __future__ import annotations

from enum import Enum

import msgspec

from aliquot.core.grants import Placement
from aliquot.core.ids import CardId, JobId, NodeId
from aliquot.core.inventory import Node
from aliquot.core.jobs import Job, Request
from aliquot.core.steps import Cause
from aliquot.core.windows import Window


class Outcome(Enum):
    """How an attempt ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    LOST = "lost"  # its node is proven dead; the job goes back to its queue

    __hash__ = object.__hash__  # as `lifecycle.Phase`


class Record(msgspec.Struct, frozen=True, tag=True, gc=False):
    """Base of all events."""

    at: int


class NodeJoined(Record, frozen=True):
    """A node is there, for the first time or again; what it reports replaces what was known of it."""

    node: Node


class NodeLost(Record, frozen=True):
    """A node stopped answering. Its grants stay until their attempts are proven over."""

    node: NodeId


class NodeDrained(Record, frozen=True):
    """No new work for a node (or work again, `drained=False`); what runs goes on."""

    node: NodeId
    drained: bool = True


class CardsFaulty(Record, frozen=True):
    """The set of unhealthy cards of a node, complete; empty when all are well."""

    node: NodeId
    cards: tuple[CardId, ...]


class CardsCrowded(Record, frozen=True):
    """What is taken of a node's cards beyond all grants, as measured: the complete set, empty for nothing.

    Each: card, compute in milli-cards, memory in MiB. Foreign processes, and jobs above what they hold.
    """

    node: NodeId
    taken: tuple[tuple[CardId, int, int], ...]


class JobSubmitted(Record, frozen=True):
    """A job was accepted."""

    job: Job


class JobCancelled(Record, frozen=True, omit_defaults=True):
    """Somebody gave a job up; or nobody did, and `reason` says why it can never start or go on.

    `at_once`: what runs is killed, and has no time to end by itself; said later, it hurries an end under way.
    `others`: whose end made it so. `by`: the user who gave it up, as a number; None: nobody, or not known.
    """

    job: JobId
    reason: str = ""
    at_once: bool = False
    others: tuple[JobId, ...] = ()
    by: int | None = None


class Granted(Record, frozen=True):
    """A Place was committed: the intent to start this attempt there.

    `beside`: who holds these cards already, and shares them; what all of them hold is divided anew.
    """

    job: JobId
    attempt: int
    placements: tuple[Placement, ...]
    beside: tuple[JobId, ...] = ()


class Moved(Record, frozen=True):
    """A Move was committed."""

    job: JobId
    attempt: int
    member: int
    placement: Placement


class Resized(Record, frozen=True):
    """A running job goes on with other placements, wider or narrower; `Started` confirms it.

    For engines that can change a job's width at once; what it held and no longer names is free.
    """

    job: JobId
    attempt: int
    placements: tuple[Placement, ...]


class Resizing(Record, frozen=True):
    """A running job is to go on with other placements in a new attempt; this one ends within `grace_ms`.

    For engines that can't change a job's width at once. What it holds is held until it has ended, and
    `placements` are kept for it firmly until it is granted them. 0: the grace is the job's own.
    """

    job: JobId
    attempt: int
    placements: tuple[Placement, ...]
    for_job: JobId | None = None
    grace_ms: int = 0


class Started(Record, frozen=True):
    """The engine confirms that the attempt runs."""

    job: JobId
    attempt: int


class StartRefused(Record, frozen=True):
    """A node refused the grant or the start failed; the job goes back to its queue, later each time."""

    job: JobId
    attempt: int
    reason: str


class Stopping(Record, frozen=True):
    """The work is over, the processes are not: everything stays booked."""

    job: JobId
    attempt: int


class Evicting(Record, frozen=True):
    """An Evict was committed: the attempt is to end within `grace_ms`, and the job goes back to its queue.

    What it holds is free only when it has ended.
    """

    job: JobId
    attempt: int
    cause: Cause
    for_job: JobId | None = None
    grace_ms: int = 0


class Reserved(Record, frozen=True):
    """Room is kept for a waiting job until it starts, is withdrawn, or `until_ms` passes.

    Firm: it was made by stopping others, and nobody else may take it. Else it is a backfill shadow: expected
    to be free at `from_ms`, and open to those who are over by then.
    """

    job: JobId
    placements: tuple[Placement, ...]
    from_ms: int
    until_ms: int | None = None
    firm: bool = False


class Unreserved(Record, frozen=True):
    """Room kept for a job is open to others again."""

    job: JobId


class WindowMade(Record, frozen=True):
    """Somebody closed cards for a time, ahead of it or at once. One of the same name is replaced."""

    window: Window


class WindowCancelled(Record, frozen=True):
    """A window is not, or no longer, to be kept; what it closed is open from now on."""

    name: str


class Idle(Record, frozen=True):
    """Measured: the cards of a running attempt have not been used since `since_ms`; None: they are again."""

    job: JobId
    attempt: int
    since_ms: int | None


class Warned(Record, frozen=True):
    """The owner of an idle job is told that it will be stopped."""

    job: JobId
    attempt: int


class Ended(Record, frozen=True, omit_defaults=True):
    """All processes of the attempt are gone; only now are the pieces free.

    `unseen`: a lost one of which its node lives and yet nobody knows how it went; the next begins later each
    time that is so again.
    """

    job: JobId
    attempt: int
    outcome: Outcome
    unseen: bool = False


class EpochBegan(Record, frozen=True):
    """The demand mix is frozen anew: requests with their counts."""

    number: int
    seed: int
    mix: tuple[tuple[Request, int], ...]


class Tidied(Record, frozen=True):
    """Grants were looked over for better places when this much had been asked for in all."""

    asked_milli: int


class Searched(Record, frozen=True):
    """Others to stop were looked for, in vain, for `jobs` and those like them, in this round of searches.

    `over`: everybody has had his turn, and the next round begins.
    """

    jobs: tuple[JobId, ...]
    over: bool = False


Event = (
    NodeJoined
    | NodeLost
    | NodeDrained
    | CardsFaulty
    | CardsCrowded
    | JobSubmitted
    | JobCancelled
    | Granted
    | Moved
    | Resized
    | Resizing
    | Started
    | StartRefused
    | Stopping
    | Evicting
    | Idle
    | Warned
    | Reserved
    | Unreserved
    | WindowMade
    | WindowCancelled
    | Ended
    | EpochBegan
    | Tidied
    | Searched
)
