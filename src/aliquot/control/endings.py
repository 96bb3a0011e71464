"""How attempts ended, in a word: the journal says whether a job goes on, its supervisors say why.

The record calls every attempt lost that another may follow. What people are told is what happened: it failed
and is tried again, it made room for others, or nobody saw how it ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from msgspec.structs import replace

from aliquot.control.views import AttemptView, Exit
from aliquot.core.events import Outcome

GANG: Final = "gang"
"""The reason of members that end since another did: it says nothing of their attempt."""

UNRUNNABLE: Final = 127
"""What a shell reports for a command that is not there."""

UNSEEN: Final = "unseen"
"""How a member ended of which nobody knows more than why nothing follows."""

REFUSED: Final = "refused"
"""How an attempt ended that the host did not begin, and why a job failed for which it never did."""

NAMED: Final = ("cancelled", "preempted", "moved", "resized", "lost")
"""Reasons that are how an attempt ended, whatever its processes made of it."""


def with_exits(attempt: AttemptView, exits_of: Callable[[], tuple[Exit | None, ...]]) -> AttemptView:
    """An attempt as people are told of it; `exits_of` is asked where it is over and that is not known yet."""
    if attempt.outcome is None:
        return attempt
    attempt = attempt if attempt.exits else replace(attempt, exits=exits_of())
    return replace(attempt, outcome=_outcome(attempt))


def own_exits(exits: Iterable[Exit | None]) -> list[Exit | None]:
    """Those that no other member brought about, the first to end first; None where nobody saw one."""
    own = [one for one in exits if one is None or one.reason != GANG]
    return sorted(own, key=lambda one: 0 if one is None else one.ended_ms)


def reason_of(exits: Iterable[Exit | None]) -> str:
    """Who or what ended an attempt, such as `time-limit`; empty where nobody did."""
    return next((one.reason for one in own_exits(exits) if one is not None and one.reason), "")


def status_of(exits: Iterable[Exit | None]) -> int | None:
    """The exit code of an attempt: of its members that ended by themselves, the first that is not 0.

    None where nobody saw how it ended.
    """
    codes = [_code(one) for one in own_exits(exits)]
    failed = next((code for code in codes if code), None)
    return failed if failed is not None or None in codes else next(iter(codes), None)


def _code(ending: Exit | None) -> int | None:
    if ending is None or ending.how == UNSEEN:
        return None
    return ending.status or (0 if ending.how == "exited" else UNRUNNABLE)


def _outcome(attempt: AttemptView) -> str | None:
    if attempt.outcome not in {Outcome.FAILED.value, Outcome.LOST.value}:
        return attempt.outcome
    reason = reason_of(attempt.exits)
    if reason in NAMED:
        return reason
    own = own_exits(attempt.exits)
    is_known = bool(own) and None not in own
    return attempt.outcome if not is_known or reason in _NOT_ITS_OWN else Outcome.FAILED.value


_NOT_ITS_OWN: Final = frozenset({"supervisor-stopped", "superseded"})
"""Reasons that leave unknown how the work would have gone."""
