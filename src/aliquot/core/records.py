"""The rows of the world's tables, and the immutable world that everyone but its writer reads."""

from __future__ import annotations

from functools import reduce
from operator import or_

import immutables
import msgspec
from msgspec.structs import replace

from aliquot.core.company import Groups
from aliquot.core.decay import Account
from aliquot.core.events import Evicting, Resizing, Searched, Tidied
from aliquot.core.grants import Grant, Placement, Seat
from aliquot.core.ids import CardId, GrantId, JobId, NodeId
from aliquot.core.inventory import Node, NodeKind
from aliquot.core.jobs import After, Job, Request
from aliquot.core.ledger import Handles
from aliquot.core.lifecycle import Phase
from aliquot.core.tide import Tide
from aliquot.core.windows import Closure

QueueKey = tuple[int, int, int, JobId]  # (-priority, submitted, seq, id): the order jobs are considered in


class JobRecord(msgspec.Struct, frozen=True, gc=False):
    """A job that is not over, and where it is in its life."""

    job: Job
    phase: Phase = Phase.PENDING
    attempt: int = 1
    cancelled: bool = False
    at_once: bool = False  # cancelled, without a grace
    since_ms: int = 0
    not_before_ms: int = 0
    refusals: int = 0
    losses: int = 0  # in a row, of which nobody knows how they went
    granted_ms: int = 0  # of this attempt
    resized_ms: int = 0  # when its width last changed, or it was granted
    evictions: int = 0
    idle_ms: int | None = None  # since when its cards are not used; None: they are, or nobody measures
    warned_ms: int | None = None
    evicting: Evicting | None = None  # this attempt is being stopped for others
    waits_for: tuple[After, ...] = ()  # what has not come true yet
    doomed: JobId | None = None  # the job whose end made it impossible that this one starts
    asked: tuple[Asked, ...] = ()  # what this attempt is charged for
    guess_ms: int | None = None  # what jobs like it ran, as known when it was submitted
    resizing: Resizing | None = None  # it is being stopped to go on at another width, or waits to go on
    resizes: int = 0  # how often it was started anew for that
    in_vain_ms: int = 0  # it starts on a budget that stops only for longer than this; see `budget`

    @property
    def spared(self) -> int:
        """Attempts that were ended by no fault of the job."""
        return self.evictions + self.resizes

    @property
    def grace_ms(self) -> int:
        """What an attempt that is being stopped for others, or for another width, has left to it in all."""
        why = self.evicting or self.resizing
        return 0 if why is None else why.grace_ms

    @property
    def goes_on(self) -> bool:
        """Whether an attempt that is being stopped is not the job's last, however it ends."""
        return (self.evicting or self.resizing) is not None

    @property
    def is_wanted(self) -> bool:
        """Whether the tide counts it: no spot work, and it holds something or waits for turn and room."""
        if self.job.spot or self.phase is not Phase.PENDING:
            return not self.job.spot
        limited = self.job.array is not None and self.job.array.width is not None
        return not (self.waits_for or limited)


class Asked(msgspec.Struct, frozen=True, gc=False):
    """What a queue is charged for on cards of one model: milli-cards and MiB, as asked."""

    model: str
    milli: int
    mib: int


class Spent(msgspec.Struct, frozen=True, gc=False):
    """What a queue has used of cards of one model in a month: see `spending`.

    `used` milli-card ms of the month numbered `month` until `since_ms`, `milli` held ever since; of them
    `known` by jobs whose owners said how long they run, `ends` being the sum of milli x end over these.
    """

    month: int
    used: int
    milli: int
    since_ms: int
    known: int = 0
    ends: int = 0


class Kept(msgspec.Struct, frozen=True):
    """Room kept for a waiting job; see `events.Reserved`."""

    job: JobId
    placements: tuple[Placement, ...]
    from_ms: int
    made_ms: int
    until_ms: int | None = None
    firm: bool = False


class NodeRecord(msgspec.Struct, frozen=True):
    """A node, its row, and what keeps it from taking work."""

    node: Node
    row: int
    kind: int
    up: bool = True
    drained: bool = False
    faulty: frozenset[CardId] = frozenset()
    crowd: tuple[tuple[CardId, int, int], ...] = ()  # taken beyond all grants: card, compute milli, MiB
    index_of: dict[CardId, int] = {}


class Epoch(msgspec.Struct, frozen=True):
    """The demand mix in force: requests with their counts."""

    number: int = 0
    seed: int = 0
    mix: tuple[tuple[Request, int], ...] = ()


class Tally(msgspec.Struct, frozen=True):
    """Counts since the world began, for budgets."""

    submitted: int = 0
    asked_milli: int = 0  # cards asked for, in milli-cards
    granted: int = 0
    moved: int = 0
    moves_ms: tuple[int, ...] = ()  # when the moves of the last hour were made
    tidied: int = 0  # the `asked_milli` at which grants were last tidied
    round: Round | None = None  # of searches for others to stop, where one plan is not enough for all

    def after(self, event: Tidied | Searched, version: int) -> Tally:
        """Once `event` is folded, by which the world came to be of `version`."""
        if isinstance(event, Tidied):
            return replace(self, tidied=event.asked_milli)
        if event.over:
            return replace(self, round=None)
        now = self.round or Round(event.at, version - 1)
        again = replace(now, searches=now.searches + 1, jobs=(*now.jobs, *event.jobs))
        return replace(self, round=again)


class Round(msgspec.Struct, frozen=True):
    """A round of searches: begun at `since_ms`, in vain so far for `jobs` and those like them.

    `events` that were no part of it had happened when it began; with `searches` of its own the world's
    version says whether anything else has since.
    """

    since_ms: int
    events: int
    searches: int = 0
    jobs: tuple[JobId, ...] = ()

    def is_alone(self, version: int) -> bool:
        """Whether nothing else has happened since it began, in a world of `version`."""
        return version == self.events + self.searches


class Frozen(msgspec.Struct, frozen=True):
    """An immutable world. `pending` is in queue order; `node_at[row]` names the node of a row.

    `residents[row]`: who holds something on that row, in another tuple as soon as a grant there changes; the
    id of that grant is then another object, equal to what it was.
    `strained`: rows that offer less than their node
    minus their bookings, since it is closed, faulty or over-committed. `waiting` is `pending` by queue,
    `kept` the room kept for waiting jobs, oldest first. `usage` is what (queue, model) is charged
    for; `past` its decayed milli-cards; `arrays` counts who holds
    something, `elastic` are the elastic jobs that hold something, as they started,
    `idle` those that hold cards and do not use them.
    """

    version: int
    chunks: Handles
    rows: int
    cards: int
    nodes: immutables.Map[NodeId, NodeRecord]
    node_at: tuple[NodeId, ...]
    kinds: tuple[NodeKind, ...]
    jobs: immutables.Map[JobId, JobRecord]
    grants: immutables.Map[JobId, tuple[Grant, ...]]
    pending: tuple[QueueKey, ...]
    epoch: Epoch
    strained: frozenset[int]
    residents: immutables.Map[int, tuple[GrantId, ...]]
    tally: Tally
    waiting: immutables.Map[str, tuple[QueueKey, ...]] = immutables.Map()
    kept: tuple[Kept, ...] = ()
    usage: immutables.Map[tuple[str, str], Asked] = immutables.Map()
    past: immutables.Map[str, Account] = immutables.Map()
    arrays: immutables.Map[str, int] = immutables.Map()
    elastic: tuple[JobId, ...] = ()
    idle: tuple[JobId, ...] = ()
    closures: tuple[Closure, ...] = ()  # windows that are not over, or were not when the last was made
    spent: immutables.Map[tuple[str, str], Spent] = immutables.Map()  # by (queue, model)
    company: Groups = immutables.Map()  # see `company`
    tide: Tide = Tide()  # what other work than spot has wanted

    @property
    def node_count(self) -> int:
        """Rows that have ever been used."""
        return self.rows


def queue_key(job: Job) -> QueueKey:
    """Higher priority first, then first submitted, then first accepted."""
    return (-job.priority, job.submitted_ms, job.seq, job.id)


def seat_of(placement: Placement, record: NodeRecord) -> Seat | None:
    """`placement` in rows and bits, or None where one of its cards is not on the node."""
    mask, index_of = 0, record.index_of
    for card in placement.cards:
        at = index_of.get(card)
        if at is None:
            return None
        mask |= 1 << at
    return None if mask.bit_count() != len(placement.cards) else _seat(placement, record, mask)


def remains_of(placement: Placement, record: NodeRecord) -> Seat:
    """`placement` in rows and bits as far as its cards are on the node."""
    found = (record.index_of.get(card) for card in placement.cards)
    return _seat(placement, record, reduce(or_, (1 << at for at in found if at is not None), 0))


def _seat(placement: Placement, record: NodeRecord, mask: int) -> Seat:
    # by position: twice as fast, and this is done twice for every decision
    return Seat(
        record.row,
        mask,
        placement.vector,
        placement.whole,
        placement.cpu,
        placement.host,
        placement.numa,
        placement.edges,
    )
