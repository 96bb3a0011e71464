"""What holds a waiting job, in words: the same for jobs of a scenario and of a live service."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from aliquot.core.queues import Measure
from aliquot.core.steps import Evict, Gate, Lack, Reserve, Wait
from aliquot.core.units import FULL, format_memory

GATES: Final[dict[Gate, str]] = {
    Gate.ORDER: "a job before it waits, and the queue is strict first-in, first-out",
    Gate.QUOTA: "its queue may not take more now",
    Gate.DEPENDENCY: "jobs it waits for are not over",
    Gate.ARRAY: "as many of its array run as may run at once",
    Gate.RESERVATION: "what is free is kept for a job before it",
    Gate.RELEASE: "room was made for it, and those who held it are still ending",
    Gate.FIT: "nothing that is free fits",
    Gate.NEVER: "it can never fit, even with nothing else on any node",
    Gate.BACKOFF: "a node refused it; it is tried again later",
}
MOST_NAMED: Final = 5


def gate_lines(wait: Wait) -> Iterator[str]:
    """What a gate says beside its name: the limit that is reached, the jobs that are waited for."""
    if wait.lack is not None:
        yield _lack(wait.lack)
    if wait.others:
        more = len(wait.others) - MOST_NAMED
        names = ", ".join(wait.others[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
        yield f"It waits for {names}."


def stopped_line(stopped: Sequence[Evict], cleared: Reserve | None) -> str:
    """`2 jobs are stopped for it (b, c): 12.0 card-min of work lost, the cheapest of 5 sets; ...`"""
    more = len(stopped) - MOST_NAMED
    names = ", ".join(step.job for step in stopped[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
    jobs = "1 job is" if len(stopped) == 1 else f"{len(stopped)} jobs are"
    line = f"{jobs} stopped for it ({names}): {_work(sum(step.cost_ms for step in stopped))} lost"
    if cleared is None or cleared.sets < 2:
        return f"{line}."
    other = "" if cleared.next_cost_ms is None else f"; the next best loses {_work(cleared.next_cost_ms)}"
    return f"{line}, the best of {cleared.sets} sets{other}."


def _work(card_ms: int) -> str:
    return f"{card_ms / 60_000:,.1f} card-min of work"


def _lack(lack: Lack) -> str:
    where = f"queue {lack.queue}" if lack.queue else "the pool"
    need, have = (_amount(lack, amount) for amount in (lack.need, lack.have))
    return f"It asks for {need} of {lack.resource}; {where} has {have} left, with what it may borrow."


def _amount(lack: Lack, amount: int) -> str:
    measure = lack.resource.measure
    if measure is Measure.MEMORY:
        return format_memory(amount)
    if measure is Measure.MONEY:
        return f"{amount / 100:.2f} a month"
    return f"{amount / FULL:g}"
