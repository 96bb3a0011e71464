"""Advance reservations: cards that are closed to most jobs from one moment to another, as somebody asked.

Maintenance is a window that lets nobody in; a window for people lets in the jobs of some queues, users or
names. It says what is closed, when, and what becomes of jobs that still run there when it begins; which jobs
may start in front of it is decided by the planner (`closing`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from aliquot.core.errors import SpecError
from aliquot.core.ids import CardId, JobId, NodeId
from aliquot.core.jobs import Job

MAINTENANCE: Final = "maintenance"
MOST_MS: Final = 100 * 365 * 86_400_000


class Inside(msgspec.Struct, frozen=True):
    """Whose jobs a window lets in: of these queues and all below them, of these users, or with these names.

    The name of an array, or of replicas, stands for all of them. All three empty: nobody's.
    """

    queues: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    jobs: tuple[JobId, ...] = ()


class Window(msgspec.Struct, frozen=True):
    """What was asked for; times are the engine's, in ms, `end_ms` is the first that is open again.

    Closed are the `cards`, or `count` cards of `nodes` (of any node where none is named), or else all of
    `nodes`, their cpu and memory too. `grace_ms`: what still runs there when it begins is stopped with so
    long a warning; None: it is left until it ends.
    """

    name: str
    start_ms: int
    end_ms: int
    reason: str = MAINTENANCE
    nodes: tuple[NodeId, ...] = ()
    cards: tuple[CardId, ...] = ()
    count: int | None = None
    inside: Inside = Inside()
    grace_ms: int | None = None


class Part(msgspec.Struct, frozen=True):
    """What a window closes of one node: some cards, or all there is (`whole`, without naming cards)."""

    node: NodeId
    cards: tuple[CardId, ...] = ()
    whole: bool = False


class Closure(msgspec.Struct, frozen=True):
    """A window in force, with what it closes, and the version of the world in which it was made."""

    window: Window
    parts: tuple[Part, ...]
    made: int


def check_window(window: Window, now: int | None = None) -> None:
    """Raise SpecError, naming the field, on the first thing that makes no sense, or is over at `now`."""
    if window.end_ms <= window.start_ms:
        raise SpecError(
            "it ends before it begins", field="end", value=window.end_ms, hint="an end later than its start"
        )
    if now is not None and window.end_ms <= now:
        raise SpecError("it is over already", field="end", value=window.end_ms, hint=f"later than {now}")
    if window.count is not None and window.cards:
        raise SpecError("a number of cards and cards by name", field="cards", hint="keep one of them")
    if window.count is not None and window.count < 1:
        raise SpecError("no card is closed", field="cards", value=window.count, hint="1 or more")
    if window.count is None and not window.cards and not window.nodes:
        raise SpecError("nothing is closed", field="nodes", hint="name nodes, cards or a number of cards")
    if window.grace_ms is not None and window.grace_ms < 0:
        raise SpecError("a grace below 0", field="evict", value=window.grace_ms, hint="0s or more")


def lets_in(window: Window, job: Job) -> bool:
    """Whether `job` may be there while the window lasts."""
    inside = window.inside
    if job.id in inside.jobs or (job.replica_of and JobId(job.replica_of) in inside.jobs):
        return True
    if job.array is not None and JobId(job.array.name) in inside.jobs:
        return True
    if job.user and job.user in inside.users:
        return True
    return any(job.queue == queue or job.queue.startswith(f"{queue}/") for queue in inside.queues)


def is_watched(closures: Iterable[Closure], now: int) -> bool:
    """Whether any of `closures` stops who is there, now or later: a plan is due though nobody waits."""
    return any(one.window.grace_ms is not None and one.window.end_ms > now for one in closures)
