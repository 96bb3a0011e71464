"""The one table of job phases. News that is not in the table, late or repeated, changes nothing."""

from __future__ import annotations

from enum import Enum
from typing import Final

from aliquot.core.events import Ended, Outcome
from aliquot.core.grants import GrantState


class Phase(Enum):
    """Where a job is in its life."""

    PENDING = "pending"
    STARTING = "starting"  # granted, not confirmed
    RUNNING = "running"
    STOPPING = "stopping"  # processes are ending; still holds everything
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    __hash__ = object.__hash__  # members are unique; the usual hash of their name costs a call each time


class News(Enum):
    """What an event means to a job's phase."""

    GRANTED = "granted"
    STARTED = "started"
    REFUSED = "refused"
    CANCELLED = "cancelled"
    STOPPING = "stopping"
    EVICTED = "evicted"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    LOST = "lost"
    UNSEEN = "unseen"  # lost, and not with its node

    __hash__ = object.__hash__


HOLDING: Final = frozenset({Phase.STARTING, Phase.RUNNING, Phase.STOPPING})

STATE_OF_PHASE: Final = {
    Phase.STARTING: GrantState.ASSUMED,
    Phase.RUNNING: GrantState.RUNNING,
    Phase.STOPPING: GrantState.TERMINATING,
}
NEWS_OF_OUTCOME: Final = {
    Outcome.SUCCEEDED: News.SUCCEEDED,
    Outcome.FAILED: News.FAILED,
    Outcome.LOST: News.LOST,
}

_ENDS: Final = {
    News.SUCCEEDED: Phase.SUCCEEDED,
    News.FAILED: Phase.FAILED,
    News.LOST: Phase.PENDING,
    News.UNSEEN: Phase.PENDING,
}

TABLE: Final[dict[tuple[Phase, News], Phase]] = {
    (Phase.PENDING, News.GRANTED): Phase.STARTING,
    (Phase.PENDING, News.CANCELLED): Phase.CANCELLED,
    (Phase.STARTING, News.STARTED): Phase.RUNNING,
    (Phase.STARTING, News.REFUSED): Phase.PENDING,
    (Phase.STARTING, News.CANCELLED): Phase.STOPPING,
    (Phase.STARTING, News.STOPPING): Phase.STOPPING,
    (Phase.STARTING, News.EVICTED): Phase.STOPPING,
    (Phase.RUNNING, News.EVICTED): Phase.STOPPING,
    (Phase.STOPPING, News.REFUSED): Phase.PENDING,
    (Phase.RUNNING, News.CANCELLED): Phase.STOPPING,
    (Phase.RUNNING, News.STOPPING): Phase.STOPPING,
    **{(phase, news): after for phase in HOLDING for news, after in _ENDS.items()},
}


def news_of(event: Ended) -> News:
    """What the end of an attempt means to its job."""
    is_unseen = event.unseen and event.outcome is Outcome.LOST
    return News.UNSEEN if is_unseen else NEWS_OF_OUTCOME[event.outcome]


def next_phase(phase: Phase, news: News) -> Phase | None:
    """The phase after `news`, or None where it changes nothing."""
    return TABLE.get((phase, news))
