"""The verbs of a plan. A plan is intent: nothing has happened until `commit` has turned it into events.

A plan places, keeps room, stops one job for another, moves, and explains waiting.
"""

from __future__ import annotations

from enum import Enum

import msgspec

from aliquot.core.grants import Placement
from aliquot.core.ids import JobId, NodeId
from aliquot.core.queues import Resource
from aliquot.core.wishes import Level


class Gate(Enum):
    """What holds a waiting job."""

    ORDER = "order"  # a job before it waits and the queue is strict
    QUOTA = "quota"  # its queue has used up what it may take
    BORROWING = "borrowing"  # beyond what is left of its queue's own, and not so much is left to borrow
    DEPENDENCY = "dependency"  # jobs it waits for are not over
    ARRAY = "array"  # as many of its array are under way as may be
    SPOT = "spot"  # spot work holds as much as the demand of other work is expected to leave
    RESERVATION = "reservation"  # what is free is kept for a job before it, or closed for a time
    RELEASE = "release"  # those who hold its room are still ending
    FIT = "fit"  # nothing free fits
    GANG = "gang"  # some of its members would fit, not enough at once
    TOPOLOGY = "topology"  # the cards are free, but not linked or not near each other as asked
    FRAGMENTATION = "fragmentation"  # enough is free in all, nowhere enough in one place
    NEVER = "never"  # no node of the site could ever hold it
    BACKOFF = "backoff"  # a node refused it, or nobody saw how it ended; tried again later


class Cause(Enum):
    """Why a running job is stopped for others."""

    PRIORITY = "priority"  # a job of higher priority needs the room
    RECLAIM = "reclaim"  # its queue borrowed what another's nominal needs
    SPOT = "spot"  # it took what nobody else wanted, and now somebody does
    IDLE = "idle"  # it held cards and did not use them
    DEFRAGMENT = "defragment"  # moved by stop and restart, to let a wider job in
    RESERVATION = "reservation"  # a window has begun that stops what still runs under it
    BUDGET = "budget"  # its queue has used up what it has for the month, and stops its jobs then


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


class Company(msgspec.Struct, frozen=True):
    """`jobs` on one set of cards, the new one last, and the speed predicted for each, in milli of its own.

    `before_milli`: what those who were there get through without it.
    """

    jobs: tuple[JobId, ...]
    speeds_milli: tuple[int, ...]
    before_milli: int

    @property
    def total_milli(self) -> int:
        """What all of them get through."""
        return sum(self.speeds_milli)


class Place(msgspec.Struct, frozen=True):
    """Grant all members of `job` at once, or none. Keeps the terms of its score; the runner-up if asked for.

    A smaller score is better. `terms` add up to it for the policies that have terms. With `company` it goes
    to cards that others hold.
    """

    job: JobId
    attempt: int
    placements: tuple[Placement, ...]
    score: float = 0.0
    terms: tuple[Term, ...] = ()
    runner_up: RunnerUp | None = None
    company: Company | None = None


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
    """Let a running job go on with `placements`: all it will hold, wider or narrower than now.

    An elastic job, or a gang that has more members than its minimum. Where it gives way to `for_job`: from
    width `was` to `width`, and `cost_ms` is what that loses, in milliseconds of one whole card. With
    `restart` it goes on in another attempt, once this one has ended within `grace_ms`; see `events.Resizing`.
    """

    job: JobId
    attempt: int
    placements: tuple[Placement, ...]
    for_job: JobId | None = None
    was: int = 0
    width: int = 0
    cost_ms: int = 0
    restart: bool = False
    grace_ms: int = 0


class Warn(msgspec.Struct, frozen=True):
    """Tell the owner of a job that does not use its cards that it will be stopped."""

    job: JobId
    attempt: int


class Kill(msgspec.Struct, frozen=True):
    """End the processes of an attempt. Derived from a recorded intent, so it may be repeated.

    After a warning they have `grace_ms` to save what they can; 0: the engine's own grace for cancelled jobs.
    `evicted` for others, or `resized`: to go on at another width at once. `at_once`: without any warning.
    """

    job: JobId
    attempt: int
    grace_ms: int = 0
    evicted: bool = False
    resized: bool = False
    at_once: bool = False


class Start(msgspec.Struct, frozen=True):
    """Start an attempt on what it was granted. Derived from a recorded grant, so it may be repeated.

    `spared`: how many attempts before it were ended by no fault of the job, but for others or another width.
    `losses`: of how many in a row just before it nobody knows how they went.
    """

    job: JobId
    attempt: int
    placements: tuple[Placement, ...]
    spared: int = 0
    losses: int = 0


class Lack(msgspec.Struct, frozen=True):
    """Of `resource` a queue needs `need` and may have `have` more; `queue` is the one whose limit it is.

    `borrows`: the job would have to borrow, as its own queue's nominal does not cover it. Of money with a
    `budget`, `have` is what is left of that in this month; else what may run at once. `most`: all that the
    quotas could ever give it, less than it needs; None: enough may come free. `maximum`: the hard one that is
    in the way, told by `planner.explain_wait`; `used` is then what counts against it.
    """

    resource: Resource
    need: int
    have: int
    queue: str
    borrows: bool = False
    used: int | None = None  # of a budget, until now; of a maximum, at once
    due: int = 0  # what those who run are expected to use of it
    budget: int | None = None
    renews_ms: int | None = None  # when there is a new one
    most: int | None = None
    again_ms: int | None = None  # of a budget: when the job may start with it; None: never
    in_vain_ms: int = 0  # what it has to be able to run at least, after it was stopped for a budget in vain
    maximum: int | None = None

    @property
    def is_for_ever(self) -> bool:
        """Whether it will be short of it as long as quotas and budgets are what they are."""
        return self.most is not None or (self.budget is not None and self.again_ms is None)


class Short(msgspec.Struct, frozen=True):
    """Of `what` a job needs `need` at once; the site has `have`, and at most `best` in one place.

    "members" that find room; "array", of which `have` run and `need` may at once; "cards" that are idle, by
    node; "compute" (1/1000 of a card) and "memory" (MiB) of shared cards, by card.
    """

    what: str
    need: int
    have: int
    best: int | None = None


class Near(msgspec.Struct, frozen=True):
    """`need` members of `group` (empty: of the job) have to be inside one domain of `level`, of `domains`.

    The best has room for `best` now, for `most` with nothing else on it. With a `slice`, slices of so many
    members are counted, over all domains; with `groups`, as many groups as `need`, each inside one domain, of
    which all domains have room for `best` and `most` at once. `best` is None where each wish of the job could
    be kept alone.
    """

    level: Level
    need: int
    best: int | None
    domains: int
    most: int | None
    group: str = ""
    slice: int = 0
    groups: bool = False


class Never(msgspec.Struct, frozen=True):
    """Why a job can't start on what is here now, however long it waits. It is kept: that may change.

    `need` is asked for, `most` the most there is. `lacks`: model (of those that are `wanted`; there are
    `have`), cards of one node, "all cards" of the site, memory of a card, cpu (thousandths of a core) or host
    (MiB) of a node, links between cards, "together" (each is there, but not on one node), members "near" each
    other (`near`), or quota (`lack`).
    """

    lacks: str
    need: int | None = None
    most: int | None = None
    wanted: tuple[str, ...] = ()
    have: tuple[str, ...] = ()
    lack: Lack | None = None
    near: Near | None = None


class SpotRoom(msgspec.Struct, frozen=True):
    """Spot work may hold `most_milli` of `capacity_milli` cards for `horizon_ms`, and holds `held_milli`."""

    most_milli: int
    held_milli: int
    capacity_milli: int
    horizon_ms: int


class Fenced(msgspec.Struct, frozen=True):
    """`nodes` (or cards of them) are closed to a job from `start_ms` to `end_ms`, for `reason`.

    `over_ms`: when the job would be over if it started now; None: nobody knows.
    """

    name: str
    reason: str
    nodes: tuple[NodeId, ...]
    start_ms: int
    end_ms: int
    over_ms: int | None = None


class Wait(msgspec.Struct, frozen=True):
    """`job` waits at `gate`. The reasons' counts add up to the number of nodes.

    A plan itself knows of the finer gates only QUOTA and FIT; `planner.explain_wait` tells BORROWING from
    both (where the whole pool is in use a borrower still asks for room), and GANG, TOPOLOGY, FRAGMENTATION.
    `lack` for QUOTA and BORROWING, `short` for GANG, FRAGMENTATION and ARRAY; `until_ms` when it is expected
    to start, where it has a reservation, and for BACKOFF when it is tried again; `others` are the jobs it
    waits for: for ORDER the first of its queue, for RESERVATION those for whom something is kept.
    """

    job: JobId
    gate: Gate
    reasons: tuple[Reason, ...] = ()
    lack: Lack | None = None
    until_ms: int | None = None
    others: tuple[JobId, ...] = ()
    short: Short | None = None
    room: SpotRoom | None = None  # for SPOT
    fenced: tuple[Fenced, ...] = ()  # for RESERVATION, where windows and not other jobs hold it
    near: Near | None = None  # for TOPOLOGY between nodes, and NEVER where no domain is large enough
    never: Never | None = None  # for NEVER else: what no node, or not all of them, could hold
    unsearched: bool = False  # whether anybody could be stopped for it is looked at in a later plan

    @property
    def is_for_ever(self) -> bool:
        """Whether nothing that ends lets it start: it fits nowhere, or its queue can never have so much."""
        return self.gate is Gate.NEVER or (self.lack is not None and self.lack.is_for_ever)


class Tidy(msgspec.Struct, frozen=True):
    """The moves before this step were a look-over due at `asked_milli`; the next is due later."""

    asked_milli: int


class Search(msgspec.Struct, frozen=True):
    """Others to stop were looked for, in vain, for `jobs`; `over`: the round is. See `events.Searched`."""

    jobs: tuple[JobId, ...]
    over: bool = False


Work = Start | Kill | Move | Resize
"""What an engine is told to do, derived from recorded intents."""

Step = Place | Move | Reserve | Unreserve | Evict | Withdraw | Warn | Resize | Kill | Wait | Tidy | Search


class Plan(msgspec.Struct, frozen=True):
    """Steps in the order they were decided, against a world of `version`."""

    version: int
    steps: tuple[Step, ...] = ()
    wake_ms: int | None = None  # plan again by then, even if nothing happens
