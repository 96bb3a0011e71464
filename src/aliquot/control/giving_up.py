"""Who gave a job up; or why it was given up where nobody did that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from aliquot.control.chronicle import Life
from aliquot.control.end_views import GivenUp
from aliquot.core.events import Event, JobCancelled
from aliquot.core.ids import JobId
from aliquot.core.lifecycle import Phase
from aliquot.core.world import World

DEPENDENCY: Final = "dependency"  # a job that had to succeed before it did not
IDLE: Final = "idle"  # it did not use the cards it held
_HOW: Final = {Phase.FAILED: "failed", Phase.CANCELLED: "was cancelled"}


def given_up(
    life: Life, life_of: Callable[[JobId], Life | None], user_name: Callable[[int], str]
) -> GivenUp | None:
    """Of a job that is given up, or whose end is under way for that; None of any other, and if unknown."""
    event = life.cancel
    if event is None or (life.over_ms is not None and life.phase is not Phase.CANCELLED):
        return None
    why = [_because(other, life_of(other)) for other in event.others] or [event.reason]
    user = "" if event.by is None else user_name(event.by)
    return GivenUp(event.by, user, reason_given(life), "; ".join(why))


def reason_given(life: Life) -> str:
    """Why nobody had to give it up, in a word; empty where somebody did."""
    if life.cancel is None or not life.cancel.reason:
        return ""
    return IDLE if life.attempts else DEPENDENCY


class Withdrawals:
    """An observer of a run that notes whom nobody gave up, and whose end was the cause."""

    def __init__(self) -> None:
        self._cancelled: dict[JobId, JobCancelled] = {}

    def see(self, events: Sequence[Event], world: World) -> None:
        """Note who is given up."""
        for event in events:
            if isinstance(event, JobCancelled):
                self._cancelled.setdefault(event.job, event)

    def of(self, job: JobId) -> GivenUp | None:
        """Why a job that never started was given up; None where that was its owner's doing, or it was not."""
        event = self._cancelled.get(job)
        if event is None or not event.others:
            return None
        why = (_did_not_succeed(other, "", self._phase(other)) for other in event.others)
        return GivenUp(reason=DEPENDENCY, why="; ".join(why))

    def _phase(self, over: JobId) -> Phase:
        """Of a job that is over and did not succeed."""
        return Phase.CANCELLED if over in self._cancelled else Phase.FAILED


def _because(other: JobId, life: Life | None) -> str:
    return _did_not_succeed(other, "" if life is None else life.name, None if life is None else life.phase)


def _did_not_succeed(job: JobId, name: str, phase: Phase | None) -> str:
    """`job 3 (train), which had to succeed, failed`."""
    how = "did not" if phase is None else _HOW.get(phase, "did not")
    return f"job {job}{f' ({name})' if name else ''}, which had to succeed, {how}"
