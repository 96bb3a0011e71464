"""Reservations: cards that are closed for a time, for maintenance or for some people's jobs.

kind: Reservation
metadata: {name: new-driver}
spec: {nodes: [n3], start: 2h, duration: 4h}             # nobody is inside, who runs there is left

spec: {cards: 8, start: 24h, end: 32h, reason: course, allow: {users: [ana, ben]}, evict: 5m}
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from aliquot.config.fields import Field, Reader, Table, fail_at, read_fields
from aliquot.config.queues import queue_name
from aliquot.config.readers import count, duration, moment, name, text, words
from aliquot.config.tree import Item, nearest
from aliquot.core.errors import SpecError
from aliquot.core.ids import CardId, JobId, NodeId
from aliquot.core.inventory import Node
from aliquot.core.windows import MAINTENANCE, Inside, Window, check_window
from aliquot.core.workload import Announced

MOST_CARDS: Final = 10**6
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _listed(item: Item) -> tuple[Item, ...]:
    return item.elements() if item.items is not None else (item,)


RESERVATION: Final[Table] = {
    "nodes": Field(_listed),
    "labels": Field(lambda item: {key: text(child) for key, child in item.fields()}),
    "cards": Field(lambda item: item),
    "start": Field(lambda item: item, required=True),
    "end": Field(lambda item: item),
    "duration": Field(duration, "duration_ms"),
    "reason": Field(text),
    "allow": Field(lambda item: item),
    "evict": Field(moment, "grace_ms"),
    "made": Field(moment, "made_ms"),
    "cancelled": Field(moment, "cancelled_ms"),
}
ALLOW: Final[Table] = {"queues": Field(_listed), "users": Field(words), "jobs": Field(_listed)}


def read_reservation(
    word: str, spec: Item, nodes: Sequence[Node], queues: Sequence[str], jobs: Collection[str]
) -> Announced:
    """The window called `word`. `queues` and `jobs` are the names there are; no queues: any name will do."""
    window = _window(word, spec, nodes, queues, moment, jobs)
    values = read_fields(spec, RESERVATION)
    made, cancelled = values.get("made_ms", 0), values.get("cancelled_ms")
    if made >= window.end_ms:
        (spec.get("made") or spec).fail("it is made when it is over already", "made before its end")
    if cancelled is not None and cancelled <= made:
        (spec.get("cancelled") or spec).fail("it is cancelled before it is made", "cancelled later than made")
    return Announced(made, window, cancelled)


def read_live_reservation(word: str, spec: Item, nodes: Sequence[Node], queues: Sequence[str]) -> Window:
    """The same for a service of `nodes`: at dates, known at once, and any job may be named by its id."""
    for key in ("made", "cancelled"):
        if (item := spec.get(key)) is not None:
            item.fail(
                f"{key!r} is for simulations", "leave it out: what the documents no longer say is taken back"
            )
    return _window(word, spec, nodes, queues, instant, None)


def instant(item: Item) -> int:
    """Milliseconds of the Unix epoch of a date and time such as `2026-12-01T08:00`, by itself in UTC."""
    try:
        at = datetime.fromisoformat(item.scalar())
    except ValueError:
        item.fail(
            f"{item.text!r} is not a date and time", "such as 2026-12-01T08:00 or 2026-12-01T09:00+01:00"
        )
    at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return (at - _EPOCH) // timedelta(milliseconds=1)


def _window(
    word: str,
    spec: Item,
    nodes: Sequence[Node],
    queues: Sequence[str],
    when: Reader,
    jobs: Collection[str] | None,
) -> Window:
    values = read_fields(spec, RESERVATION)
    start: int = when(values["start"])
    window = Window(
        name=word,
        start_ms=start,
        end_ms=_end(spec, values, start, when),
        reason=values.get("reason", MAINTENANCE),
        nodes=_nodes(spec, values, nodes),
        inside=_inside(values["allow"], queues, jobs) if "allow" in values else Inside(),
        grace_ms=values.get("grace_ms"),
        **_cards(values["cards"], nodes) if "cards" in values else {},
    )
    try:
        check_window(window)
    except SpecError as error:
        fail_at(spec, error)
    _check_count(spec, window, nodes)
    return window


def _end(spec: Item, values: dict[str, Any], start: int, when: Reader) -> int:
    if ("end" in values) == ("duration_ms" in values):
        spec.fail("not one way to say how long it lasts", "either end or duration")
    return int(when(values["end"])) if "end" in values else start + int(values["duration_ms"])


def _nodes(spec: Item, values: dict[str, Any], nodes: Sequence[Node]) -> tuple[NodeId, ...]:
    """Those named, and those that have all the labels, in the order of the site."""
    wanted: dict[NodeId, None] = {}
    known = {node.id.name: node.id for node in nodes}
    for item in values.get("nodes", ()):
        if item.scalar() not in known:
            item.fail(f"unknown node {item.text!r}", nearest(item.scalar(), sorted(known)))
        wanted[known[item.scalar()]] = None
    labels: dict[str, str] | None = values.get("labels")
    if labels is not None:
        found = [node.id for node in nodes if labels.items() <= dict(node.labels).items()]
        if not found or not labels:
            (spec.get("labels") or spec).fail("no node has these labels", "labels of a cluster, pool or node")
        wanted |= dict.fromkeys(found)
    return tuple(node.id for node in nodes if node.id in wanted)


def _cards(item: Item, nodes: Sequence[Node]) -> dict[str, Any]:
    """`cards: 4` is a number of them, a list names them."""
    if item.items is None:
        return {"count": count(1, MOST_CARDS)(item)}
    known = {card.uuid for node in nodes for card in node.cards}
    cards = []
    for child in item.elements():
        if child.scalar() not in known:
            child.fail(f"unknown card {child.text!r}", nearest(child.scalar(), sorted(known)))
        cards.append(CardId(child.scalar()))
    if not cards:
        item.fail("no card is named", "name one, or a number of cards")
    return {"cards": tuple(cards)}


def _check_count(spec: Item, window: Window, nodes: Iterable[Node]) -> None:
    if window.count is None:
        return
    there = sum(len(node.cards) for node in nodes if not window.nodes or node.id in window.nodes)
    if window.count > there:
        (spec.get("cards") or spec).fail(f"{window.count} cards of {there} there are", f"{there} at most")


def _inside(item: Item, queues: Sequence[str], jobs: Collection[str] | None) -> Inside:
    said = read_fields(item, ALLOW)
    if not said:
        item.fail("nobody is let in", f"one of {', '.join(ALLOW)}, or leave it out")
    for child in said.get("queues", ()):
        if queue_name(child) not in queues and queues:
            child.fail(f"unknown queue {child.text!r}", nearest(child.scalar(), queues))
    for child in said.get("jobs", ()):
        if name(child) not in (jobs if jobs is not None else (child.scalar(),)):
            child.fail(
                f"unknown job {child.text!r}",
                nearest(child.scalar(), sorted(jobs or ())) or "a job of these documents",
            )
    return Inside(
        queues=tuple(queue_name(child) for child in said.get("queues", ())),
        users=said.get("users", ()),
        jobs=tuple(JobId(child.scalar()) for child in said.get("jobs", ())),
    )
