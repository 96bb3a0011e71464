"""What is recorded of an accepted step: the intent, from which what is to be done follows."""

from __future__ import annotations

from aliquot.core.events import (
    Event,
    Evicting,
    Granted,
    JobCancelled,
    Moved,
    Reserved,
    Resized,
    Resizing,
    Searched,
    Tidied,
    Unreserved,
    Warned,
)
from aliquot.core.steps import (
    Evict,
    Kill,
    Move,
    Place,
    Reserve,
    Resize,
    Search,
    Step,
    Tidy,
    Unreserve,
    Wait,
    Warn,
    Withdraw,
)


def intent_of(step: Step, at: int) -> Event | None:
    """What is recorded of `step`; None where there is nothing to carry out."""
    match step:
        case Place():
            beside = () if step.company is None else step.company.jobs[:-1]
            return Granted(at, step.job, step.attempt, step.placements, beside)
        case Move():
            return Moved(at, step.job, step.attempt, step.member, step.placement)
        case Evict():
            return Evicting(at, step.job, step.attempt, step.cause, step.for_job, step.grace_ms)
        case Reserve():
            return Reserved(at, step.job, step.placements, step.from_ms, step.until_ms, step.firm)
        case Unreserve():
            return Unreserved(at, step.job)
        case Withdraw():
            return JobCancelled(at, step.job, step.reason, others=step.others)
        case Resize(restart=True):
            return Resizing(at, step.job, step.attempt, step.placements, step.for_job, step.grace_ms)
        case Resize():
            return Resized(at, step.job, step.attempt, step.placements)
        case Warn():
            return Warned(at, step.job, step.attempt)
        case Tidy():
            return Tidied(at, step.asked_milli)
        case Search():
            return Searched(at, step.jobs, step.over)
        case Wait() | Kill():
            return None
