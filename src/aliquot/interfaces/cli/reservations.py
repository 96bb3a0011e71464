"""Reservations of a running service: what a person asks for, and those there are as rows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from aliquot.control.card_views import CardView
from aliquot.control.live import Remote
from aliquot.control.reservation_views import Reservation, ReservationView
from aliquot.control.words import counted
from aliquot.core.errors import SpecError
from aliquot.core.units import format_ms
from aliquot.interfaces.cli.moments import spell_moment
from aliquot.interfaces.cli.plain import columns, now_ms

HEADS = ("NAME", "STATE", "START", "END", "CLOSED", "LET IN", "WHO STILL RUNS", "REASON", "FROM")


class ReserveAsk(NamedTuple):
    """The options of `reserve`, as written; lists may hold commas."""

    start: str
    end: str | None
    duration: str | None
    nodes: Sequence[str]
    gpus: int | None
    cards: Sequence[str]
    queues: Sequence[str]
    users: Sequence[str]
    jobs: Sequence[str]
    evict: str | None
    reason: str | None


def reservation_of(name: str, asked: ReserveAsk, remote: Remote, now: datetime) -> Reservation:
    """In the words of a document. Without nodes and cards it is about every node. Raises SpecError."""
    if (asked.end is None) == (asked.duration is None):
        raise SpecError("not one way to say how long it lasts", field="--end", hint="--end or --duration")
    if asked.gpus is not None and asked.cards:
        raise SpecError("a number of cards and cards by name", field="--cards", hint="--gpus or --cards")
    spec: dict[str, Any] = {
        "start": spell_moment(asked.start, "--start", now),
        "end": None if asked.end is None else spell_moment(asked.end, "--end", now),
        "duration": asked.duration,
        "nodes": _split(asked.nodes),
        "cards": asked.gpus if asked.gpus is not None else _uuids(_split(asked.cards), remote),
        "allow": {
            key: words for key in ("queues", "users", "jobs") if (words := _split(getattr(asked, key)))
        },
        "evict": asked.evict,
        "reason": asked.reason,
    }
    if not spec["nodes"] and not spec["cards"] and asked.gpus is None:
        spec["nodes"] = list(remote.site().nodes)
    # a number of 0 is said, and refused by whoever reads it
    return Reservation(name, {key: value for key, value in spec.items() if value not in (None, [], {})})


def reservation_lines(views: Sequence[ReservationView]) -> list[str]:
    """One row each."""
    if not views:
        return ["no reservations"]
    now = now_ms()
    rows = [HEADS, *(_cells(view, now) for view in views)]
    width = len(HEADS) if any(view.is_documented for view in views) else len(HEADS) - 1
    return [*columns([row[:width] for row in rows]), *short_lines(views), *stranger_lines(views)]


def short_lines(views: Sequence[ReservationView]) -> list[str]:
    """Those that found fewer cards than they asked for."""
    counts = [(view, sum(len(part.cards) for part in view.parts)) for view in views]
    return [
        f"{view.name} closes {count} of {counted(view.wanted, 'card')}:"
        " no more were free of other reservations"
        for view, count in counts
        if view.wanted is not None and count < view.wanted
    ]


def stranger_lines(views: Sequence[ReservationView]) -> list[str]:
    """Those that let in somebody who is nobody here: where a name is misspelt, nobody else has its place."""
    return [
        f"warning: {view.name} lets in {', '.join(view.strangers)}: not known here, and no one else instead"
        for view in views
        if view.strangers
    ]


def _cells(view: ReservationView, now: int) -> tuple[str, ...]:
    state = "active" if view.start_ms <= now else f"in {format_ms((view.start_ms - now) // 1000 * 1000)}"
    told = [("queue", view.queues), ("user", view.users), ("job", view.jobs)]
    inside = ", ".join(f"{kind} {name}" for kind, names in told for name in names)
    stays = "stays" if view.grace_ms is None else f"is stopped, {format_ms(view.grace_ms)} after a warning"
    return (
        view.name, state, _clock(view.start_ms), _clock(view.end_ms), _closed(view), inside or "nobody",
        stays, view.reason, "documents" if view.is_documented else "",
    )  # fmt: skip  # as the heading


def _closed(view: ReservationView) -> str:
    parts = [
        f"{part.node}: {len(part.cards)} {'card' if len(part.cards) == 1 else 'cards'}"
        if part.cards
        else part.node
        for part in view.parts
    ]
    return ", ".join(parts) or "nothing that is there"


def _uuids(words: Sequence[str], remote: Remote) -> list[str]:
    """Cards by UUID, or by their number where only one has it."""
    if not words:
        return []
    cards = remote.gpus()
    return [_uuid(word, cards) for word in words]


def _uuid(word: str, cards: Sequence[CardView]) -> str:
    found = [card.uuid for card in cards if word in {card.uuid, str(card.index)}]
    if len(found) != 1:
        problem = "several cards have this number" if found else f"no card {word!r}"
        raise SpecError(problem, field="--cards", value=word, hint="a UUID of 'aliquot gpus', or a number")
    return found[0]


def _split(words: Sequence[str]) -> list[str]:
    return [part for word in words for part in word.split(",") if part]


def _clock(ms: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(ms / 1000))
