"""What goes in and out of a live service, as plain records: the words of the API and of its client.

Times are milliseconds of the Unix epoch, memory is MiB, compute thousandths of a card. None is unknown, or
not to be known by the caller.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

from aliquot.control.card_views import Excess, TakenCard
from aliquot.control.end_views import GivenUp
from aliquot.core.promise import Crowding, Promise
from aliquot.core.queueing.outlook import Expected
from aliquot.core.queueing.overcommit import Overcommit
from aliquot.core.steps import Never, Place, Wait
from aliquot.core.windows import Window

WARN_BEFORE: Final = "30s"
"""How long before TERM a job's own warning comes, unless it says so."""


class Caller(NamedTuple):
    """Who speaks, as the kernel says."""

    uid: int
    gid: int


class Submission(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A job to run. `spec` is that of a document of kind Job: gpu, cpu, memory, queue, priority, estimate."""

    command: tuple[str, ...]
    spec: dict[str, Any] = {}
    name: str = ""
    cwd: str = "/"
    env: dict[str, str] = {}
    umask: int = 0o022
    time: str | None = None  # such as 4h; then the job is ended
    grace: str = "10s"  # between TERM and KILL
    warn: str = ""  # a signal such as USR1, sent `warnBefore` before TERM
    warn_before: str = msgspec.field(default=WARN_BEFORE, name="warnBefore")
    retries: int = 0
    key: str = ""  # of the caller's choice: what he submits again under the same key is the same job


class Accepted(msgspec.Struct, frozen=True):
    """On the disk: this job will not be lost. `jobs`: of an array, whose id this is, so many.

    What follows is known of it so far: of an array, of its first job. Places count from 1, among all who wait
    and among those of its queue; `expected` and `promise` are None where there was no time to look ahead.
    """

    id: str
    jobs: int = 1
    phase: str = ""
    position: int | None = None
    waiting: int = 0
    queue_position: int | None = None
    queue_waiting: int = 0
    expected: Expected | None = None  # when it starts, or has started
    promise: Promise | None = None  # where it has bounds
    never: Never | None = None  # where it can't start as things are


class SiteFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of documents as it was read."""

    name: str
    text: str


class Configuration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a service goes by: its documents, and which of their policies, or a built-in one by name.

    `policy` None: the first of the documents', else the usual one. `reserved`: reservations that were made
    one by one, beside those of the documents; other documents leave them as they are.
    """

    files: tuple[SiteFile, ...] = ()
    policy: str | None = None
    reserved: tuple[Window, ...] = ()


class InForce(msgspec.Struct, frozen=True):
    """What a service goes by now. `notes`: what a person should know about it."""

    policy: str
    queues: tuple[str, ...]
    configuration: Configuration
    notes: tuple[str, ...] = ()


class Exit(msgspec.Struct, frozen=True):
    """How one member of an attempt ended. `status` is the exit code that a shell would report.

    `how`: exited, signalled (by `signal`), unrunnable (126 and 127, as of a shell), refused by the host, or
    unseen: nobody knows, only the `reason` why it is not tried again.
    `reason`: why it was ended, empty where nobody ended it: cancelled, time-limit, MemoryLimit (of a card),
    memory-limit (of the host), gang (another member was over), preempted, moved, resized,
    supervisor-stopped, superseded, lost (its supervisor was killed, as those of the attempts before).
    """

    how: str
    status: int
    reason: str = ""
    text: str = ""
    wall_ms: int = 0
    user_ms: int = 0
    system_ms: int = 0
    max_rss_kib: int = 0
    lost_bytes: int = 0  # of its output, for want of room on the disk
    signal: int = 0  # by number
    ended_ms: int = 0  # when; 0 where that is not on record


class CardGrant(msgspec.Struct, frozen=True):
    """What one member holds on its node."""

    node: str
    cards: tuple[str, ...]
    whole: bool
    compute_milli: int  # of each card
    memory_mib: int  # of each card
    cpu_milli: int
    host_mib: int


class AttemptView(msgspec.Struct, frozen=True):
    """One attempt. `outcome`: None while it is not over; succeeded, failed or cancelled; refused by the node;

    preempted, moved or resized, and the job goes on in another; lost: nobody saw how it ended. Another
    follows one that was refused or lost, and one that failed where there are retries left.
    """

    number: int
    granted_ms: int
    holds: tuple[CardGrant, ...]
    started_ms: int | None = None
    ended_ms: int | None = None
    outcome: str | None = None
    text: str = ""
    exits: tuple[Exit | None, ...] = ()


class ResizeView(msgspec.Struct, frozen=True):
    """A job is stopped at width `was` to go on at `width`: cards, or members of a gang.

    `for_job`: whom it makes room for; empty where it takes what is free.
    """

    was: int
    width: int
    since_ms: int
    for_job: str = ""


class JobSummary(msgspec.Struct, frozen=True):
    """A job in a list. `phase`: pending, starting, running, stopping, succeeded, failed or cancelled.

    With `counts` it stands for an array, whose id this is: jobs by phase. Its phase is that of those furthest
    from their end, `cards` are one job's, `started_ms` is the first start and `over_ms` the last end of all.
    """

    id: str
    name: str
    owner: int
    user: str
    queue: str
    priority: int
    phase: str
    cards: int
    attempt: int
    submitted_ms: int
    started_ms: int | None = None
    over_ms: int | None = None
    exit_status: int | None = None
    reason: str = ""  # of a job that failed: what ended it, such as time-limit; see `Exit` and `GivenUp`
    expected: Expected | None = None  # when it is expected to start, as of the last look ahead
    members: int = 1  # processes that start and end together
    array: str = ""  # the array it is one of
    counts: dict[str, int] | None = None
    width: int | None = None  # while it holds something: its cards, or the members of a gang it runs with
    resizing: ResizeView | None = None


class Progress(msgspec.Struct, frozen=True):
    """What one member has reported of itself in the last attempt; None is not known.

    Speeds are of the last minute. `mfu`: model flops as a part of what its cards could do at most.
    """

    member: int
    reports: int
    beat_ms: int  # when it last reported
    step: int | None = None
    tokens: int | None = None
    steps_per_s: float | None = None
    tokens_per_s: float | None = None
    flops_per_s: float | None = None
    mfu: float | None = None
    checkpoint_ms: int | None = None  # when it last said that it had saved what was done


class JobDetail(msgspec.Struct, frozen=True):
    """A job with its attempts, oldest first. `command` and `cwd` are for its owner only."""

    job: JobSummary
    attempts: tuple[AttemptView, ...]
    position: int | None = None  # in the queue, from 1
    waiting: int = 0
    is_cancelled: bool = False
    command: tuple[str, ...] | None = None
    cwd: str | None = None
    output: str | None = None  # the file its output goes to
    progress: tuple[Progress, ...] = ()  # of members that have reported
    queue_position: int | None = None  # among those of its queue, from 1, as of the last look ahead
    queue_waiting: int = 0
    expected: Expected | None = (
        None  # while it waits: when it is expected to start, as of the last look ahead
    )
    promise: Promise | None = None  # where it has bounds
    unenforced: tuple[str, ...] = ()  # what this host does not enforce of what it was granted or limited to
    never: Never | None = None  # where it waits and can't start as things are
    excesses: tuple[Excess, ...] = ()  # cards of which it uses more memory than it was granted
    gone: tuple[str, ...] = ()  # cards it holds that are not in their node any more
    given_up: GivenUp | None = None  # where it is cancelled: by whom, or why

    @property
    def is_over(self) -> bool:
        """Whether nothing of it is left."""
        return self.job.over_ms is not None


class QuotaView(msgspec.Struct, frozen=True):
    """What a queue may have of one thing and has: thousandths of a card, MiB, or cents a month.

    `borrowed`: what it uses above its nominal. `waiting`: what those who wait in it ask for. `maximum` None:
    none.
    """

    resource: str
    nominal: int
    used: int
    borrowed: int
    waiting: int
    maximum: int | None = None


class BudgetView(msgspec.Struct, frozen=True):
    """Money of a queue for one calendar month in UTC, in cents; each month begins with the whole budget.

    `due`: what those who run are expected to use besides until the month turns, where that is known. `left`:
    what neither is used nor due, never below 0. `unpriced`: card models that were used and have no price, so
    that more was used than anybody knows.
    """

    month: str  # such as 2026-12
    nominal: int
    used: int
    due: int
    left: int
    renews_ms: int  # when the month turns
    unpriced: tuple[str, ...] = ()


class QueueView(msgspec.Struct, frozen=True):
    """One queue and those below it: what waits, what runs, what it holds.

    `quotas`: one for each thing it has a quota of, and always for cards; empty without configured queues.
    `budget`: its own for this month; None: it has none, though a queue above it may.
    """

    name: str
    priority: int
    waiting: int
    running: int
    cards_milli: int  # thousandths of a card
    at_risk: int = 0  # waiting jobs whose bounds are in danger
    cannot: int = 0  # waiting jobs whose bounds cannot be met
    crowding: Crowding | None = None  # of all cards, as of the last look ahead
    quotas: tuple[QuotaView, ...] = ()
    is_configured: bool = False  # in a document; else only some job names it
    budget: BudgetView | None = None
    overcommits: tuple[Overcommit, ...] = ()  # where it, a queue above it or the pool has too much


class LiveExplanation(msgspec.Struct, frozen=True):
    """Why a job is where it is, or waits.

    `place` is given while it holds something, `wait` while it waits, neither once it is over. Without
    `is_scored` only the placements are known: what the choice cost is not kept over a restart.
    """

    job: str
    phase: str
    policy: str
    placement: tuple[str, ...]  # names of what scores: one, or several that are weighed together
    at_ms: int
    submitted_ms: int
    placed_ms: int | None = None
    place: Place | None = None
    resizing: ResizeView | None = None
    is_scored: bool = False
    wait: Wait | None = None
    position: int | None = None  # among all who wait, from 1
    waiting: int = 0
    queue: str = ""
    queue_position: int | None = None  # among those of its queue, from 1
    queue_waiting: int = 0
    expected: Expected | None = None  # while it waits
    promise: Promise | None = None  # where it has bounds
    overcommits: tuple[Overcommit, ...] = ()  # of its queue, those above it and the pool, while it waits
    never: Never | None = None  # where it can't start as things are
    taken: tuple[TakenCard, ...] = ()  # while it waits for cards: what of them is taken by no grant
    given_up: GivenUp | None = None  # where it is cancelled: by whom, or why
    refused: str = ""  # while it waits: why the host did not begin its last attempt


class Site(msgspec.Struct, frozen=True):
    """What serves here."""

    version: str
    driver: str
    policy: str
    nodes: tuple[str, ...]
    cards: int
    notes: tuple[str, ...]  # what a person should know


class Mistake(msgspec.Struct, frozen=True):
    """Every answer that is an error. `index`: of a batch, which job is wrong, from 0; None: all of it.

    `file` and `line`: of a document that is wrong.
    """

    error: str
    field: str = ""
    hint: str = ""
    index: int | None = None
    file: str = ""
    line: int | None = None


class Done(msgspec.Struct, frozen=True):
    """It was done, or noted on the disk to be done."""

    done: bool = True
