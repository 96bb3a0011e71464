"""What holds a waiting job, in words: the same for jobs of a scenario and of a live service."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from aliquot.control.words import counted, measured
from aliquot.core.months import format_day, format_moment, is_dated
from aliquot.core.queues import Measure, show_amount
from aliquot.core.steps import (
    Evict,
    Fenced,
    Gate,
    Lack,
    Near,
    Never,
    Place,
    Reserve,
    Resize,
    Short,
    SpotRoom,
    Wait,
)
from aliquot.core.units import FULL, format_memory, format_ms
from aliquot.core.wishes import Level

GATES: Final[dict[Gate, str]] = {
    Gate.ORDER: "a job before it waits, and the queue is strict first-in, first-out",
    Gate.QUOTA: "its queue may not take more now",
    Gate.BORROWING: "it goes beyond what is left of its queue's own, and not so much can be borrowed now",
    Gate.DEPENDENCY: "jobs it waits for are not over",
    Gate.ARRAY: "as many of its array run as may run at once",
    Gate.SPOT: "spot work holds as much as others are expected to leave",
    Gate.RESERVATION: "what is free is kept for a job before it, or reserved for a time",
    Gate.RELEASE: "those who hold its room are still ending",
    Gate.FIT: "nothing that is free fits",
    Gate.GANG: "not enough of its members fit at the same time",
    Gate.TOPOLOGY: "enough is free, but not linked or near each other as it asks",
    Gate.FRAGMENTATION: "enough is free in all, but nowhere enough in one place",
    Gate.NEVER: "it can never fit, even with nothing else on any node",
    Gate.BACKOFF: "a node refused it or lost sight of it; it is tried again later",
}
_OTHERS: Final = {Gate.ORDER: "Before it stands", Gate.RESERVATION: "What is free is kept for"}
_UNTIL: Final = {Gate.BACKOFF: "It is tried again from"}
MOST_NAMED: Final = 5
LEVELS: Final = {
    Level.NODE: "node",
    Level.LINKS: "NVLink domain",
    Level.RACK: "rack",
    Level.BLOCK: "block",
    Level.SITE: "site",
}


def gate_lines(wait: Wait) -> Iterator[str]:
    """What a gate says beside its name: the limit that is reached, the jobs that are waited for."""
    if wait.lack is not None:
        yield _lack(wait.lack)
    if wait.short is not None:
        yield _short(wait.short)
    if wait.near is not None:
        yield _near(wait.near)
    if wait.never is not None:
        yield never_line(wait.never)
    if wait.room is not None:
        yield _room(wait.room)
    if wait.unsearched:
        yield "Whether anybody could be stopped for it is looked at in a later plan: in this, others were."
    for fenced in wait.fenced:
        yield _fenced(fenced)
    if wait.others:
        yield f"{_OTHERS.get(wait.gate, 'It waits for')} {_few(wait.others)}."
    if wait.until_ms is not None:
        yield f"{_UNTIL.get(wait.gate, 'Room is reserved for it from')} {format_moment(wait.until_ms)} on."


def never_line(never: Never) -> str:
    """`It asks for 9 cards of one node, and none has more than 8 that would do: it waits until ...`"""
    if never.lack is not None:
        return _lack(never.lack)
    if never.near is not None:
        return _near(never.near)
    return f"It asks for {_LACKS[never.lacks](never)}: it waits until that changes."


def _no_model(never: Never) -> str:
    have = ", ".join(never.have) or "none"
    wanted = " or ".join(never.wanted) or "cards of a kind"
    return f"{wanted}, and no card here is one that would do (there are: {have})"


_LACKS: Final[dict[str, Callable[[Never], str]]] = {
    "model": _no_model,
    "cards": lambda one: f"{_count(one.need)} of one node, and none has more than {one.most} that would do",
    "all cards": lambda one: f"{_count(one.need)} at once, and there are {one.most} in all that would do",
    "memory": lambda one: (
        f"{format_memory(one.need or 0)} of a card, and none that would do has more than "
        f"{format_memory(one.most or 0)}"
    ),
    "cpu": lambda one: f"{_cores(one.need)} of one node, and none has more than {(one.most or 0) / FULL:g}",
    "host": lambda one: (
        f"{format_memory(one.need or 0)} of a node's own memory, and none has more than "
        f"{format_memory(one.most or 0)}"
    ),
    "links": lambda one: f"{_count(one.need)} linked by NVLink, and no node has so many that are",
    "together": lambda one: "what is there in parts, and no node has all of it",
}


def _count(cards: int | None) -> str:
    return f"{cards} {'card' if cards == 1 else 'cards'}"


def _cores(milli: int | None) -> str:
    return measured((milli or 0) / FULL, "core")


def _fenced(fenced: Fenced) -> str:
    """`node n3 is reserved for maintenance from 2h to 6h; the job would end at 3h.`"""
    more = len(fenced.nodes) - MOST_NAMED
    names = ", ".join(str(node) for node in fenced.nodes[:MOST_NAMED])
    names += f" and {more} more are" if more > 0 else (" are" if len(fenced.nodes) > 1 else " is")
    many = "nodes" if len(fenced.nodes) > 1 else "node"
    over = "nobody knows when the job would end"
    if fenced.over_ms is not None:
        over = f"the job would end at {format_moment(fenced.over_ms)}"
    first, last = format_moment(fenced.start_ms), format_moment(fenced.end_ms)
    return f"{many} {names} reserved for {fenced.reason} from {first} to {last}; {over}."


def company_line(place: Place, job: str) -> str:
    """`It shares card g3 of node n with job b: predicted together 1.5 of one's speed alone, a 0.8, b 0.7.`"""
    company = place.company
    assert company is not None, "asked only where there is one"
    there = ", ".join(f"{_cards(each.cards)} of node {each.node}" for each in place.placements)
    others = [other for other in company.jobs if other != job]
    speeds = ", ".join(
        f"{name} {_hundredths(speed)}" for name, speed in zip(company.jobs, company.speeds_milli, strict=True)
    )
    with_whom = f"{'job' if len(others) == 1 else 'jobs'} {', '.join(others)}"
    together = f"{_hundredths(company.total_milli)} of one's speed alone, {speeds}"
    return f"It shares {there} with {with_whom}: predicted together {together}."


def _cards(cards: Sequence[str]) -> str:
    return f"{'card' if len(cards) == 1 else 'cards'} {', '.join(cards)}"


def _hundredths(milli: int) -> str:
    return f"{milli / FULL:.2f}"


def _room(room: SpotRoom) -> str:
    most, held = f"{room.most_milli / FULL:g}", f"{room.held_milli / FULL:g}"
    hours = room.horizon_ms / 3_600_000
    coming = "hour" if hours == 1 else f"{hours:g} hours"
    of_all = f"{room.capacity_milli / FULL:g} cards in the coming {coming}"
    return f"Spot work may hold {most} of {of_all}, and holds {held}."


def _short(short: Short) -> str:
    if short.what == "members":
        return f"It needs {counted(short.need, 'member')} at once; {short.have} would find room now."
    if short.what == "array":
        return f"{short.have} of its array run, and {short.need} may at once."
    need, have, best = (_of_cards(short.what, amount) for amount in (short.need, short.have, short.best or 0))
    place = "node" if short.what == "cards" else "card"
    return f"It asks for {need}; {have} are free in all, at most {best} on one {place}."


def _near(near: Near) -> str:
    """`It needs 4 members of group workers inside one rack: the best of 10 racks has room for 3.`"""
    level = LEVELS[near.level]
    of = f" of group {near.group}" if near.group else ""
    if not near.domains:
        return f"It needs its members{of} inside one {level}, and no node says which {level} it is in."
    is_each = bool(near.slice) or near.groups
    what, held = (
        f"{counted(near.need, 'member')}{of} inside one {level}",
        f"the best of {near.domains} {level}s has room",
    )
    if is_each:
        each = "groups" if near.groups else f"slices of {counted(near.slice, 'member')}{of}"
        what = f"{near.need} {each}, each inside one {level}"
        held = f"all {near.domains} {level}s have room" if near.domains > 1 else f"the only {level} has room"
    if near.best is None:
        ever = "" if near.most is None else ", even with nothing else there"
        return f"It needs {what}: there is room for each of its wishes alone, but not for all at once{ever}."
    held = f"{held} for {near.best}{' at once' if near.groups else ''}"
    if near.most is not None and near.most < near.need:
        them = "them" if is_each and near.domains > 1 else "it"
        held += f", and for {near.most} with nothing else on {them}"
    return f"It needs {what}: {held}."


def _of_cards(what: str, amount: int) -> str:
    if what == "cards":
        return f"{amount} whole {'card' if amount == 1 else 'cards'}"
    return format_memory(amount) if what == "memory" else f"{amount / 10:g} % of a card"


def stopped_line(stopped: Sequence[Evict | Resize], cleared: Reserve | None) -> str:
    """`2 jobs are stopped for it (b, c): 12.0 card-min of work lost, the cheapest of 5 sets; ...`"""
    ended = [step.job for step in stopped if isinstance(step, Evict)]
    shrunk = [f"{step.job} from {step.was} to {step.width}" for step in stopped if isinstance(step, Resize)]
    parts = []
    if ended:
        jobs = "1 job is" if len(ended) == 1 else f"{len(ended)} jobs are"
        parts.append(f"{jobs} stopped for it ({_few(ended)})")
    if shrunk:
        parts.append(f"{'and it' if ended else 'It'} shrinks {_few(shrunk)}")
    line = f"{' '.join(parts)}: {_work(sum(step.cost_ms for step in stopped))} lost"
    if cleared is None or cleared.sets < 2:
        return f"{line}."
    other = "" if cleared.next_cost_ms is None else f"; the next best loses {_work(cleared.next_cost_ms)}"
    return f"{line}, the best of {cleared.sets} sets{other}."


def _few(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _work(card_ms: int) -> str:
    return f"{card_ms / 60_000:,.1f} card-min of work"


def _lack(lack: Lack) -> str:
    where = f"queue {lack.queue}" if lack.queue else "the pool"
    if lack.used is not None and lack.budget is not None and lack.renews_ms is not None:
        return _budget(lack, where)
    need, have = (_amount(lack, amount) for amount in (lack.need, lack.have))
    if lack.most is not None:
        most = f"{where} can never give it more than {_amount(lack, lack.most)}, whatever else runs or ends"
        return f"It asks for {need} of {lack.resource}; {most}: under this quota it will not start."
    if lack.maximum is not None and lack.used is not None:
        most, used = (_amount(lack, amount) for amount in (lack.maximum, lack.used))
        left = f"has {have} left" if lack.have else "is used up"
        return f"It asks for {need} of {lack.resource}; maximum {most} of {where} {left}: {used} in use."
    left = f"has {have} left, with what it may borrow" if lack.queue else f"has {have} left for it"
    return f"It asks for {need} of {lack.resource}; {where} {left}."


def _budget(lack: Lack, where: str) -> str:
    """`queue lab used 812.50 of 1000.00 this month; ... new budget on 2026-12-01.`"""
    used, budget, need = (f"{cents / 100:.2f}" for cents in (lack.used or 0, lack.budget or 0, lack.need))
    due = f", and {lack.due / 100:.2f} more is spoken for" if lack.due else ""
    renews = lack.renews_ms or 0
    new = f"new budget {'on' if is_dated(renews) else 'after'} {format_day(renews)}"
    if lack.in_vain_ms:
        due += (
            f"; stopped for it before with nothing saved, it has to run for over {format_ms(lack.in_vain_ms)}"
        )
    if lack.again_ms is None:
        what = "be finished" if lack.in_vain_ms else "start"
        new = f"it can never {what} within the budget: a whole month has less"
    cost = f"the job would cost {need} of it" if lack.need else "nobody knows what the job would cost"
    return f"{where} used {used} of {budget} this month{due}; {cost}; {new}."


def _amount(lack: Lack, amount: int) -> str:
    said = show_amount(lack.resource, amount)
    return f"{said} a month" if lack.resource.measure is Measure.MONEY else said
