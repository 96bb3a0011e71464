"""What the live commands say: cards, one job, why it waits, what a service goes by."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Sequence
from typing import Final

from aliquot.control.card_views import CardUse, CardView, Excess, Foreigner, TakenCard
from aliquot.control.views import (
    Accepted,
    AttemptView,
    InForce,
    JobDetail,
    LiveExplanation,
    Progress,
    ResizeView,
)
from aliquot.control.words import counted, shortened
from aliquot.core.units import format_memory
from aliquot.interfaces.cli.endings import exit_line, given_up_words, outcome_words
from aliquot.interfaces.cli.gates import GATES, gate_lines, never_line
from aliquot.interfaces.cli.job_rows import cards_of
from aliquot.interfaces.cli.plain import age, columns, now_ms

LONGEST_COMMAND: Final = 400  # characters that are shown of it
WHEN: Final = "; expected to start"


def accepted_lines(told: Accepted) -> Iterator[str]:
    """What is known of a job that was just accepted; nothing of one that starts at once and has no bounds."""
    from aliquot.interfaces.cli.expectations import expected_line, place_line, promise_lines

    what = f"array {told.id} of {told.jobs} jobs" if told.jobs > 1 else f"job {told.id}"
    if told.position is not None:
        place = place_line(
            told.position, told.waiting, "", told.queue_position, told.queue_waiting or told.waiting
        )
        starts = None if told.never is not None else told.expected
        when = "" if starts is None else f" {expected_line(starts, now_ms())}"
        yield f"{what} waits. {place}{when}"
    elif told.jobs > 1:
        yield what
    if told.promise is not None:
        yield from (f"{what}: {line}" for line in promise_lines(told.promise, _clock))
    if told.never is not None:
        yield f"warning: {what} can't start on what is here now. {never_line(told.never)}"


def rules_lines(rules: InForce) -> Iterator[str]:
    """What a service goes by."""
    yield f"policy {rules.policy}; queues: {', '.join(rules.queues) or 'none configured'}"
    yield from (f"note: {note}" for note in rules.notes)


def card_lines(cards: Sequence[CardView]) -> list[str]:
    """One row per card."""
    rows = [("NODE", "CARD", "MODEL", "STATE", "FREE", "FREE MEMORY", "IN USE", "JOBS", "UUID")]
    rows += [
        (
            card.node,
            "-" if card.index is None else str(card.index),
            card.model,
            card.fault or card.state,
            f"{card.free_compute_milli / 10:g} %",
            format_memory(card.free_memory_mib) + _size_of(card),
            in_use(card),
            users_of(card),
            card.uuid,
        )
        for card in cards
    ]
    return columns(rows)


def _size_of(card: CardView) -> str:
    return " of ?" if card.memory_mib is None else f" of {format_memory(card.memory_mib)}"


def in_use(card: CardView) -> str:
    """Memory in use and how busy the card is, as last seen; `?` for what is not known."""
    used = "?" if card.used_mib is None else format_memory(card.used_mib)
    busy = "?" if card.busy_percent is None else f"{card.busy_percent} %"
    return f"{used}, {busy}"


def users_of(card: CardView) -> str:
    """Jobs on a card, if over their grant how far and for how long, and processes that are no job's."""
    jobs = [f"{use.job} ({use.user}{_over(use)})" for use in card.jobs]
    return " ".join([*jobs, *(f"{foreigner_text(one)[:-1]}, foreign)" for one in card.foreign or ())]) or "-"


def foreigner_text(one: Foreigner) -> str:
    """`pid 4711 (ana, 1024 MiB)`, as far as it is known."""
    memory = "" if one.memory_mib is None else f", {format_memory(one.memory_mib)}"
    whose = f", of job {one.job}" if one.job else ""
    return f"pid {one.pid} ({one.user or '?'}{memory}{whose})"


def taken_line(taken: TakenCard) -> str:
    """`Card 0 of node n is not offered whole: 2 GiB and 5 % of it are taken by pid 47 (ana), no job here.`

    Of one that takes no work, why: `Card 2 of node n takes no work: it does not answer.`
    """
    if taken.fault:
        return f"Card {taken.index} of node {taken.node} takes no work: {taken.fault}."
    what = f"{format_memory(taken.memory_mib)} and {taken.compute_milli / 10:g} % of it"
    who = "by jobs above what they were granted, or it lets in one process only"
    if taken.foreign:
        is_of_jobs = any(one.job for one in taken.foreign)
        whose = "granted nothing of it" if is_of_jobs else "no job here"
        who = f"by {', '.join(map(foreigner_text, taken.foreign))}, {whose}"
    return f"Card {taken.index} of node {taken.node} is not offered whole: {what} are taken {who}."


def excess_line(excess: Excess, now: int) -> str:
    """`over its grant on GPU-1: uses 12 GiB of 10 GiB since 4 s; is ended (MemoryLimit) in 6 s unless ...`"""
    used, granted = format_memory(excess.used_mib), format_memory(excess.granted_mib)
    left = age(excess.until_ms - now)
    return (
        f"over its grant on {excess.card}: uses {used} of {granted} since {_clock(excess.since_ms)} "
        f"({age(now - excess.since_ms)}); is ended (MemoryLimit) in {left} unless it comes down"
    )


def _over(use: CardUse) -> str:
    if use.over_since_ms is None or use.used_mib is None:
        return ""
    used, granted = format_memory(use.used_mib), format_memory(use.memory_mib)
    return f", over its grant for {age(now_ms() - use.over_since_ms)}: {used} of {granted}"


def detail_lines(detail: JobDetail) -> Iterator[str]:
    """All about one job."""
    job = detail.job
    name = f" ({job.name})" if job.name else ""
    given_up = ", cancelled" if detail.is_cancelled and job.phase == "stopping" else ""
    yield f"job {job.id}{name} of {job.user or 'nobody known'}: {job.phase}{given_up}"
    if job.resizing is not None:
        yield f"  {resize_line(job.resizing)}"
    if detail.given_up is not None and (why := given_up_words(detail.given_up)):
        yield f"  cancelled{why}"
    yield from (f"  {line}" for line in _waiting_lines(detail))
    many = f", members {job.members}" if job.members > 1 else ""
    yield f"  submitted {_clock(job.submitted_ms)}, priority {job.priority}, cards {cards_of(job)}{many}"
    if detail.command is not None:
        yield f"  command   {command_text(detail.command)}"
        yield f"  folder    {detail.cwd}"
    if detail.output is not None:
        yield f"  output    {detail.output}"
    yield from (f"  its card {card} is gone: the job has to be started elsewhere" for card in detail.gone)
    yield from (f"  {excess_line(excess, now_ms())}" for excess in detail.excesses)
    yield from (f"  not enforced: {lapse}" for lapse in detail.unenforced if not detail.is_over)
    for at, attempt in enumerate(detail.attempts, 1):
        is_last = at == len(detail.attempts)
        ending = job.phase == "stopping"
        words = outcome_words(attempt, is_last=is_last, is_over=detail.is_over, is_ending=ending)
        yield from _attempt_lines(attempt, words)
    for said in detail.progress:
        yield f"  {_progress_line(said, of_many=len(detail.progress) > 1)}"


def command_text(command: Sequence[str]) -> str:
    """As a shell would take it; of a script of megabytes the beginning, since JSON has all of it."""
    return shortened(shlex.join(command), LONGEST_COMMAND)


def _waiting_lines(detail: JobDetail) -> Iterator[str]:
    """Its place in line and when it starts, while it waits; what becomes of its bounds."""
    from aliquot.interfaces.cli.expectations import expected_line, place_line, promise_lines

    if detail.position is not None:
        yield place_line(
            detail.position, detail.waiting, detail.job.queue, detail.queue_position, detail.queue_waiting
        )
    if detail.never is not None:
        yield f"It can't start on what is here now. {never_line(detail.never)}"
    elif detail.expected is not None:
        yield expected_line(detail.expected, now_ms())
    if detail.promise is not None:
        yield from promise_lines(detail.promise, _clock)


def waiting_line(said: LiveExplanation) -> str:
    """Where a waiting job stands, on one line; nothing once it does not wait."""
    from aliquot.interfaces.cli.rough import starts_in

    if said.wait is None:
        return ""
    place = f"place {said.position} of {said.waiting}" if said.position is not None else "waiting"
    reasons = never_line(said.never).rstrip(".") if said.never is not None else "; ".join(_reasons(said))
    starts = starts_in(said.expected, said.at_ms)
    when = f"{WHEN} in {starts}" if starts and starts != "unknown" else ""
    return f"job {said.job} waits, {place}: {GATES[said.wait.gate]}{f' ({reasons})' if reasons else ''}{when}"


def explanation_lines(said: LiveExplanation) -> Iterator[str]:
    """Why a job is where it is, or waits."""
    if said.resizing is not None:
        yield f"{said.job} {resize_line(said.resizing)}."
    if said.wait is not None:
        waited = age(said.at_ms - said.submitted_ms)
        yield f"{said.job} has waited {waited} under policy {said.policy}: {GATES[said.wait.gate]}."
        if said.refused:
            yield f"  Its last attempt could not be started here: {said.refused}."
        yield from (f"  {line}" for line in _outlook_lines(said))
        told = said.wait.near or said.wait.never  # by the lines of its gate
        if said.never is not None and said.never.lack is None and told is None:
            yield f"  {never_line(said.never)}"
        yield from (f"  {line}" for line in gate_lines(said.wait))
        yield from (f"  {reason}" for reason in _reasons(said))
        yield from (f"  {taken_line(taken)}" for taken in said.taken)
    elif said.place is not None and said.placed_ms is not None:
        yield from _placed(said)
    else:
        why = "" if said.given_up is None else given_up_words(said.given_up)
        attempts = "" if said.placed_ms is None else f" 'aliquot job {said.job}' has its attempts."
        yield f"{said.job} is over: {said.phase}{why}.{attempts}"


def resize_line(said: ResizeView) -> str:
    """That a job is on its way to another width, and for whom."""
    why = "it grows into cards that are free"
    if said.width < said.was:
        why = f"it makes room for {f'job {said.for_job}' if said.for_job else 'others'}"
    change = f"is being resized from {said.was} to {said.width} since {_clock(said.since_ms)}"
    return f"{change}: {why}, and goes on once it has ended"


def promised_lines(said: LiveExplanation) -> Iterator[str]:
    """What can be said of its bounds; nothing where it has none."""
    from aliquot.interfaces.cli.expectations import promise_lines

    if said.promise is not None:
        yield from promise_lines(said.promise, _clock)


def _outlook_lines(said: LiveExplanation) -> Iterator[str]:
    """Its place in line, when it is expected to start, and what that promises."""
    from aliquot.interfaces.cli.expectations import expected_line, overcommit_line, place_line

    if said.position is not None:
        yield place_line(said.position, said.waiting, said.queue, said.queue_position, said.queue_waiting)
    is_for_ever = said.never is not None or (said.wait is not None and said.wait.is_for_ever)
    if said.expected is not None and not is_for_ever:
        yield expected_line(said.expected, said.at_ms)
    yield from promised_lines(said)
    yield from map(overcommit_line, said.overcommits)


def _placed(said: LiveExplanation) -> Iterator[str]:
    """The choice in the words that experiments use too, under a first line with the time of day."""
    from aliquot.control.experiments import Explanation
    from aliquot.interfaces.cli.sentences import explain_lines

    assert said.place is not None
    assert said.placed_ms is not None
    waited = age(said.placed_ms - said.submitted_ms)
    when = _clock(said.placed_ms)
    yield f"{said.job} was placed at {when} by policy {said.policy}, after waiting {waited}."
    told = explain_lines(
        Explanation(
            said.job, said.policy, said.placement, said.at_ms, said.submitted_ms,
            placed_ms=said.placed_ms, place=said.place,
        )
    )[1:]  # fmt: skip  # the first line is ours
    placements = len(said.place.placements)
    # the runner-up of a live choice is not kept, so nothing is said of other nodes
    yield from (line for line in (told if said.is_scored else told[:placements]) if "other node" not in line)


def _reasons(said: LiveExplanation) -> list[str]:
    from aliquot.interfaces.cli.sentences import explain_reason

    return [explain_reason(reason) for reason in said.wait.reasons] if said.wait is not None else []


def _attempt_lines(attempt: AttemptView, outcome: str) -> Iterator[str]:
    times = f"granted {_clock(attempt.granted_ms)}"
    if attempt.started_ms is not None:
        times += f", started {_clock(attempt.started_ms)}"
    if attempt.ended_ms is not None:
        times += f", over {_clock(attempt.ended_ms)}"
    yield f"  attempt {attempt.number}: {outcome}{f' ({attempt.text})' if attempt.text else ''}; {times}"
    for hold in attempt.holds:
        what = (
            "whole"
            if hold.whole
            else f"{hold.compute_milli / 10:g} % and {format_memory(hold.memory_mib)} each"
        )
        yield f"    {hold.node}: {f'{what}: ' if hold.cards else ''}{' '.join(hold.cards) or 'no card'}"
    for ending in attempt.exits:
        yield f"    {exit_line(ending)}"
        if ending is not None and ending.lost_bytes:
            lost, are = counted(ending.lost_bytes, "byte"), "is" if ending.lost_bytes == 1 else "are"
            yield f"    {lost} of its output {are} lost: there was too little room on the disk"


def _progress_line(said: Progress, *, of_many: bool) -> str:
    """What a job says of itself; what it does not say is left out."""
    now = now_ms()
    parts = [f"reported {age(now - said.beat_ms)} ago"]
    if said.step is not None:
        parts.append(f"step {said.step}")
    if said.steps_per_s is not None:
        parts.append(f"{said.steps_per_s:.3g} steps/s")
    if said.tokens_per_s is not None:
        parts.append(f"{said.tokens_per_s:.4g} tokens/s")
    if said.flops_per_s is not None:
        share = "" if said.mfu is None else f" ({said.mfu * 100:.1f} % of what its cards can do)"
        parts.append(f"{said.flops_per_s / 1e12:.3g} TFLOP/s{share}")
    saved = "never" if said.checkpoint_ms is None else f"{age(now - said.checkpoint_ms)} ago"
    parts.append(f"checkpoint {saved}")
    return f"{f'member {said.member} ' if of_many else ''}{', '.join(parts)}"


def _clock(ms: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(ms / 1000))
