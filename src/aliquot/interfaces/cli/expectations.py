"""Expected starts, places in line and promises as sentences. Every number comes from the forecast."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from aliquot.core.promise import Answer, Crowding, Part, Promise, Term
from aliquot.core.queueing.outlook import ENOUGH, Expected, Method, Unsaid
from aliquot.core.queueing.overcommit import Overcommit, overcommit_sentence
from aliquot.core.units import format_ms
from aliquot.interfaces.cli.rough import rough, round_off

if TYPE_CHECKING:
    from aliquot.core.report.result import RunResult

Moment = Callable[[int], str]
"""A moment of the engine's time, as people read it."""

_UNSAID: Final[dict[Unsaid, str]] = {
    Unsaid.NO_END: "what it waits for has no known end",
    Unsaid.NOT_YET: "nobody has looked ahead since it came; ask again in a moment",
    Unsaid.TOO_FAR: "it lies further ahead than was looked",
}
_TERMS: Final[dict[Term, str]] = {
    Term.START_BY: "Start by",
    Term.FINISH_BY: "Finish by",
    Term.SPEED: "Speed of at least",
}


def expected_line(expected: Expected, now: int) -> str:
    """`Expected to start in 12 min to 40 min (around 20 min); 81 % of the last 312 such intervals held.`"""
    if expected.at_ms is None:
        why = "" if expected.unsaid is None else f", because {_UNSAID[expected.unsaid]}"
        return f"When it starts is unknown{why}."
    counted = ", by counts of free cards" if expected.method is Method.COUNTS else ""
    if expected.low_ms is None or expected.high_ms is None or expected.middle_ms is None:
        return (
            f"Expected to start {_within(expected.at_ms - now)} if nobody else comes and all ends as expected"
            f"{counted}; no interval yet: {expected.seen} of {ENOUGH} starts that it takes were seen."
        )
    low, middle, high = (rough(at - now) for at in (expected.low_ms, expected.middle_ms, expected.high_ms))
    between = f"{low} to {high} (around {middle})" if low != high else f"about {high}"
    held = "no such interval has been tested yet"
    if expected.held_milli is not None:
        held = f"{expected.held_milli / 10:.0f} % of the last {expected.held_jobs:,} such intervals held"
    return f"Expected to start in {between}{counted}; {held}."


def crowding_line(crowding: Crowding | None, now: int) -> str:
    """`Crowded: 97 % of the cards busy for 20 min, ...`; nothing while it is not."""
    if (
        crowding is None
        or not crowding.is_crowded
        or crowding.since_ms is None
        or crowding.busy_milli is None
    ):
        return ""
    return (
        f"Crowded: {crowding.busy_milli / 10:g} % of the cards are in use, and nearly all have been for "
        f"{rough(now - crowding.since_ms)}; of the waiting jobs with bounds {crowding.at_risk} are at risk "
        f"and {crowding.cannot} cannot be met."
    )


def overcommit_line(over: Overcommit) -> str:
    """`Overcommitted: queue lab uses 6 of cards and may have 4: ...`."""
    return f"Overcommitted: {overcommit_sentence(over)}."


def promise_lines(promise: Promise, moment: Moment) -> Iterator[str]:
    """One line for each term: `Start by 2 h: at risk; expected from 12 min to 3 h.`"""
    for part in promise.parts:
        asked = f"{_TERMS[part.term]} {_value(part, part.bound, moment)}"
        yield f"{asked}: {part.answer.value}{_range(part, moment)}."


def place_line(
    position: int, waiting: int, queue: str, queue_position: int | None, queue_waiting: int
) -> str:
    """`Place 3 of 10 in line, 1 of 4 in queue ai-lab.` One queue: `Place 3 of 10 in the queue.`"""
    if queue_position is None or queue_waiting == waiting:
        return f"Place {position} of {waiting} in the queue."
    name = f"queue {queue}" if queue else "its queue"
    return f"Place {position} of {waiting} in line, {queue_position} of {queue_waiting} in {name}."


def predicted_lines(results: Sequence[RunResult]) -> Iterator[str]:
    """How right predicted starts were, for each run that predicted."""
    for result in results:
        said = result.predicted_start
        if said is None:
            continue
        about = f"Predicted starts under {result.name}"
        if said.inside_milli is None or said.pinball_ms is None or said.width_ms is None:
            yield f"{about}: too few jobs waited to make intervals; {said.unsaid:,} did and then started."
            continue
        yield (
            f"{about}: {said.inside_milli / 10:.1f} % of {said.jobs:,} intervals held, meant to hold 80 %; "
            f"half of them are narrower than {format_ms(round_off(said.width_ms))}; "
            f"mean pinball loss {format_ms(round_off(said.pinball_ms))}; "
            f"{said.unsaid:,} starts came before enough was known."
        )


def _range(part: Part, moment: Moment) -> str:
    """What is expected, as far as it is known."""
    if part.term is Term.SPEED:
        return "" if part.low is None else f"; {_value(part, part.low, moment)} is sure"
    if part.low is not None and part.high is not None:
        if part.low == part.high:
            return f"; {moment(part.low)}"
        return f"; expected from {moment(part.low)} to {moment(part.high)}"
    if part.guess is not None:
        return f"; {moment(part.guess)} if nobody else comes, and nothing to judge that by yet"
    if part.answer is Answer.UNKNOWN and part.term is Term.FINISH_BY:
        return "; start or run time is unknown"
    if part.answer is Answer.AT_RISK:
        return "; how long it runs is unknown, and its start alone may be too late"
    return "" if part.answer is Answer.CANNOT else "; the start is unknown"


def _value(part: Part, value: int, moment: Moment) -> str:
    return f"{value / 10:g} % of full" if part.term is Term.SPEED else moment(value)


def _within(ms: int) -> str:
    return f"in {rough(ms)}" if ms >= 1000 else "at once"
