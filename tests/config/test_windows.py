"""Reservations of documents: what they close, for how long, for whom; and what is wrong about some."""

from __future__ import annotations

from pathlib import Path

import pytest

from aliquot.core.ids import JobId
from aliquot.core.windows import Inside, Window
from aliquot.core.workload import Announced
from tests.config.documents import CLUSTER, check_error, document, job, load
from tests.support.build import node_id

HOUR = 3_600_000
QUEUES = document("Queue", "lab", "{}")


def reservation(spec: str, name: str = "w") -> str:
    """A reservation document."""
    return document("Reservation", name, spec)


def read(folder: Path, spec: str, *more: str) -> Announced:
    """The only reservation of a small site."""
    (found,) = load(folder, CLUSTER, *more, reservation(spec)).windows
    return found


def test_a_node_for_two_hours(tmp_path: Path) -> None:
    assert read(tmp_path, "{nodes: [n-0], start: 2h, duration: 4h}") == Announced(
        0, Window("w", 2 * HOUR, 6 * HOUR, nodes=(node_id("n-0", "site"),))
    )


def test_all_that_can_be_said(tmp_path: Path) -> None:
    spec = (
        "{nodes: n-1, cards: 2, start: 0, end: 1h, reason: course, evict: 5m, made: 0s, cancelled: 30m,"
        " allow: {queues: [lab], users: [ana, ben], jobs: [exam]}}"
    )
    found = read(tmp_path, spec, QUEUES, job("{gpu: {}, replicas: 2, queue: lab}", "exam"))
    inside = Inside(("lab",), ("ana", "ben"), (JobId("exam"),))
    assert found.cancelled_ms == HOUR // 2
    assert found.window == Window(
        "w", 0, HOUR, "course", (node_id("n-1", "site"),), (), 2, inside, grace_ms=300_000
    )


def test_nodes_by_label_and_cards_by_name(tmp_path: Path) -> None:
    card = "{model: A100-SXM4-40GB, count: 1}"
    pool = document("Pool", "extra", f"{{nodes: [{{name: x, cards: {card}, cpu: 8, memory: 64GiB}}]}}")
    labelled = pool.replace("{name: extra}", "{name: extra, labels: {rack: r7}}")
    assert read(tmp_path, "{labels: {rack: r7}, start: 1h, end: 2h}", labelled).window.nodes == (
        node_id("x", "site"),
    )
    named = load(tmp_path, CLUSTER).nodes[0].cards[2].uuid
    assert read(tmp_path, f"{{cards: [{named}], start: 1h, end: 2h}}").window.cards == (named,)


@pytest.mark.parametrize(
    ("spec", "field", "why"),
    [
        ("{nodes: [n-7], start: 0, end: 1h}", "spec.nodes[0]", "unknown node 'n-7'"),
        ("{cards: [no], start: 0, end: 1h}", "spec.cards[0]", "unknown card 'no'"),
        ("{cards: 9, start: 0, end: 1h}", "spec.cards", "9 cards of 8 there are"),
        ("{nodes: [n-0], cards: 5, start: 0, end: 1h}", "spec.cards", "5 cards of 4 there are"),
        ("{cards: 0, start: 0, end: 1h}", "spec.cards", ""),
        ("{labels: {a: b}, start: 0, end: 1h}", "spec.labels", "no node has these labels"),
        ("{nodes: [n-0], start: 2h, end: 1h}", "spec.end", "ends before it begins"),
        ("{nodes: [n-0], start: 1h, end: 1h}", "spec.end", "ends before it begins"),
        ("{nodes: [n-0], start: 1h}", "spec", "not one way to say how long"),
        ("{nodes: [n-0], start: 1h, end: 2h, duration: 1h}", "spec", "not one way to say how long"),
        ("{nodes: [n-0], end: 2h}", "spec", "'start' is missing"),
        ("{start: 1h, end: 2h}", "spec", "nothing is closed"),
        ("{nodes: [n-0], start: 1h, end: 2h, allow: {}}", "spec.allow", "nobody is let in"),
        ("{nodes: [n-0], start: 1h, end: 2h, allow: {jobs: [no]}}", "spec.allow.jobs[0]", "unknown job 'no'"),
        ("{nodes: [n-0], start: 1h, end: 2h, made: 3h}", "spec.made", "over already"),
        ("{nodes: n-0, start: 1h, end: 2h, made: 1h, cancelled: 1h}", "spec.cancelled", "before it is made"),
        ("{nodes: [n-0], start: 1h, end: 2h, node: n-0}", "spec.node", "unknown key 'node'"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, spec: str, field: str, why: str) -> None:
    check_error(tmp_path, f"{CLUSTER}---\n{reservation(spec)}", field, why)


def test_an_unknown_queue_is_named_where_there_are_queues(tmp_path: Path) -> None:
    text = reservation("{nodes: [n-0], start: 0, end: 1h, allow: {queues: [labor]}}")
    whole = f"{CLUSTER}---\n{QUEUES}---\n{text}"
    check_error(tmp_path, whole, "spec.allow.queues[0]", "unknown queue 'labor'")


def test_two_of_one_name_are_refused(tmp_path: Path) -> None:
    text = reservation("{nodes: [n-0], start: 0, end: 1h}")
    check_error(tmp_path, f"{CLUSTER}---\n{text}---\n{text}", "", "a second reservation named 'w'")
