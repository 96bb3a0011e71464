"""How attempts and their processes ended, in words that say what happened."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator
from typing import Final

from aliquot.control.end_views import GivenUp
from aliquot.control.endings import GANG, REFUSED, UNSEEN, reason_of
from aliquot.control.views import AttemptView, Exit, JobDetail
from aliquot.core.units import format_ms

WHY: Final = {
    "cancelled": "it was cancelled",
    "time-limit": "it ran into its time limit",
    "MemoryLimit": "it used more memory of a card than it was granted",
    "memory-limit": "it used more memory of the host than it was granted",
    GANG: "another member of its gang was over",
    "preempted": "it made room for others",
    "moved": "it goes on elsewhere",
    "resized": "it goes on at another width",
    "supervisor-stopped": "somebody stopped its supervisor",
    "lost": "its supervisor was killed time after time",
    REFUSED: "its start was refused here time after time, while others began",
    "superseded": "a later attempt took its place",
}
"""Why an attempt was ended, by the reason that is on record."""

_AGAIN: Final = frozenset({"failed", "lost", REFUSED})
"""How attempts end that are tried again; others that follow one go on, which their outcome says."""


def outcome_words(attempt: AttemptView, *, is_last: bool, is_over: bool, is_ending: bool = False) -> str:
    """`failed, tried again`; while it is not over how far it is. `is_over`, `is_ending`: of the job."""
    if attempt.outcome is None:
        runs = "is ending" if is_ending else "runs"
        return runs if attempt.started_ms is not None else "starting"
    outcome = "lost, nobody saw how it ended" if attempt.outcome == "lost" else attempt.outcome
    if attempt.outcome not in _AGAIN or (is_last and is_over):
        return outcome
    return f"{outcome}, {'to be tried again' if is_last else 'tried again'}"


def exit_line(ending: Exit | None) -> str:
    """`ended by signal 15 (TERM), exit code 143, after 1 s: it ran into its time limit (time-limit); ...`"""
    if ending is None:
        return "ended, and nobody saw how"
    if ending.how not in _RAN:
        return _not_seen(ending) if ending.how == UNSEEN else _not_run(ending)
    why = f": {_because(ending.reason)}" if ending.reason else ""
    said = f" ({ending.text})" if ending.text else ""
    used = f"cpu {format_ms(ending.user_ms + ending.system_ms)}, at most {ending.max_rss_kib // 1024} MiB"
    return f"{_how(ending)}{said} after {format_ms(ending.wall_ms)}{why}; {used}"


def end_line(detail: JobDetail) -> str:
    """What is worth saying about the end of a job beside its exit code, or nothing."""
    job = detail.job
    exits = detail.attempts[-1].exits if detail.attempts else ()
    reason = reason_of(exits)
    said = "" if reason else next(_told(exits), "")
    if job.phase == "succeeded" or (not reason and not said and job.exit_status is not None):
        return ""
    if detail.given_up is not None and job.phase == "cancelled":
        is_own = detail.given_up.by == job.owner  # who did it himself knows
        return f"job {job.id} {job.phase}{'' if is_own else given_up_words(detail.given_up)}"
    if reason and job.phase == reason:
        return f"job {job.id} {job.phase}"
    why = f"{reason}, {WHY[reason]}" if reason in WHY else reason or said
    if reason == REFUSED:
        why += "".join(f": {text}" for text in dict.fromkeys(_told(exits)))
    return f"job {job.id} {job.phase}{f': {why}' if why else ''}"


def given_up_words(given_up: GivenUp) -> str:
    """` by root`, or `, since job 3 (train), which had to succeed, failed (dependency)`; else nothing."""
    if given_up.by is not None:
        return f" by {given_up.user}"
    return f", since {given_up.why} ({given_up.reason})" if given_up.why else ""


_RAN: Final = frozenset({"exited", "signalled"})


def _how(ending: Exit) -> str:
    if ending.how == "exited":
        return f"exited with {ending.status}"
    number = ending.signal or ending.status - 128
    name = _name_of(number)
    return f"ended by signal {number}{f' ({name})' if name else ''}, exit code {ending.status},"


def _not_seen(ending: Exit) -> str:
    why = f": {_because(ending.reason)}" if ending.reason else ""
    return f"ended, and nobody saw how{why}"


def _not_run(ending: Exit) -> str:
    """Its command never was a process of its own."""
    code = f"; exit code {ending.status}" if ending.status else ""
    what = "could not be run" if ending.how == "unrunnable" else "could not be started here"
    why = ending.text or (WHY.get(ending.reason, ending.reason) if ending.reason else "nobody knows why")
    return f"{what}: {why}{code}"


def _because(reason: str) -> str:
    why = WHY.get(reason, reason)
    return why if reason in why else f"{why} ({reason})"


def _told(exits: Iterable[Exit | None]) -> Iterator[str]:
    return (one.text for one in exits if one is not None and one.text and one.reason != GANG)


def _name_of(number: int) -> str:
    try:
        return signal.Signals(number).name.removeprefix("SIG")
    except ValueError:  # a real-time one
        return ""
