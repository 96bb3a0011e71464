"""Who gave a job up; or why it was given up where nobody did that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from aliquot.control.chronicle import Life
from aliquot.control.end_views import GivenUp
from aliquot.core.ids import JobId
from aliquot.core.lifecycle import Phase

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


def _because(other: JobId, life: Life | None) -> str:
    name = f" ({life.name})" if life is not None and life.name else ""
    how = "did not" if life is None else _HOW.get(life.phase, "did not")
    return f"job {other}{name}, which had to succeed, {how}"
