"""Reservations of a live site: what documents say becomes what is in force."""

from __future__ import annotations

import pytest

from aliquot.catalog import load_catalog
from aliquot.config.live_site import read_live_site
from aliquot.control.errors import ConflictError
from aliquot.control.parts import Rules
from aliquot.control.reserving import (
    changes_of,
    reservation_views,
    wanted_by,
    with_window,
    without_window,
)
from aliquot.control.views import Configuration
from aliquot.core.errors import DocumentError, NotFoundError, SpecError
from aliquot.core.events import WindowCancelled, WindowMade
from aliquot.core.months import begin_of
from aliquot.core.settings import Settings
from aliquot.core.windows import Closure, Window
from tests.config.documents import document
from tests.support.build import a_node, node_id

HOUR = 3_600_000
DECEMBER = begin_of(2026 * 12 + 11)


def a_window(name: str, end: int = 2 * HOUR) -> Window:
    """From now on."""
    return Window(name, 0, end, nodes=(node_id("n0"),))


def read(spec: str) -> tuple[Window, ...]:
    """The windows of a service on one node whose documents have one reservation."""
    text = document("Reservation", "w", spec)
    return read_live_site([("site.yaml", text)], None, load_catalog(), [a_node("n0")]).windows


def test_what_is_new_is_made_and_what_is_not_written_any_more_is_taken_back() -> None:
    there = [Closure(a_window(name), (), 1) for name in ("stays", "goes", "changes")]
    wanted = [a_window("stays"), a_window("changes", 3 * HOUR), a_window("new"), a_window("over", 1)]
    assert changes_of(wanted, there, HOUR) == [
        WindowCancelled(0, "goes"),
        WindowMade(0, a_window("changes", 3 * HOUR)),
        WindowMade(0, a_window("new")),
    ]


def test_a_service_takes_dates() -> None:
    (window,) = read("{nodes: [n0], start: 2026-12-01T00:00, end: 2026-12-01T03:00+01:00, evict: 5m}")
    assert (window.start_ms, window.end_ms) == (DECEMBER, DECEMBER + 2 * HOUR)
    (window,) = read("{cards: 2, start: 2026-12-01, duration: 2h, allow: {jobs: [anything]}}")
    assert (window.start_ms, window.end_ms, window.count) == (DECEMBER, DECEMBER + 2 * HOUR, 2)


@pytest.mark.parametrize(
    ("spec", "field", "why"),
    [
        ("{nodes: [n0], start: 2h, end: 4h}", "spec.start", "not a date and time"),
        ("{nodes: [n1], start: 2026-12-01, end: 2026-12-02}", "spec.nodes[0]", "unknown node 'n1'"),
        ("{nodes: [n0], start: 2026-12-01, end: 2026-12-02, made: 1h}", "spec.made", "for simulations"),
        ("{nodes: [n0], start: 2026-12-02, end: 2026-12-01}", "spec.end", "ends before it begins"),
        ("{cards: 9, start: 2026-12-01, end: 2026-12-02}", "spec.cards", "9 cards of 8"),
    ],
)
def test_what_is_wrong_is_named(spec: str, field: str, why: str) -> None:
    with pytest.raises(DocumentError) as caught:
        read(spec)
    assert caught.value.field == field
    assert why in str(caught.value)
    assert caught.value.hint


def rules(documented: tuple[str, ...] = (), asked: tuple[Window, ...] = ()) -> Rules:
    """Documents with some windows, and others that people asked for."""
    windows = tuple(a_window(name) for name in documented)
    return Rules("p", Settings(), Configuration(reserved=asked), windows=windows)


def asked_names(given: Rules) -> list[str]:
    """Of what people asked for."""
    return [window.name for window in given.configuration.reserved]


def test_what_people_ask_for_stands_beside_the_documents_until_it_is_over() -> None:
    first = with_window(rules(("doc",)), a_window("a"), HOUR)
    both = with_window(first, a_window("b", 9 * HOUR), HOUR)
    assert [window.name for window in wanted_by(both)] == ["doc", "a", "b"]
    later = with_window(both, a_window("a", 8 * HOUR), 3 * HOUR)
    assert asked_names(later) == ["b", "a"], "the first a was over, and its name was free again"
    assert asked_names(without_window(later, "b", 3 * HOUR)) == ["a"]


def test_one_of_the_documents_takes_the_place_of_one_of_its_name() -> None:
    given = rules(("same",), (a_window("same", 5 * HOUR), a_window("other")))
    assert wanted_by(given) == (a_window("same"), a_window("other"))


def test_a_name_is_taken_while_it_lasts_and_documents_are_not_changed() -> None:
    given = rules(("doc",), (a_window("a"),))
    for name in ("doc", "a"):
        with pytest.raises(ConflictError, match="already"):
            with_window(given, a_window(name), HOUR)
    with pytest.raises(ConflictError, match="one of the documents"):
        without_window(given, "doc", HOUR)
    with pytest.raises(NotFoundError, match="no reservation 'x'"):
        without_window(given, "x", HOUR)
    with pytest.raises(NotFoundError):
        without_window(given, "a", 2 * HOUR)
    with pytest.raises(SpecError, match="over already"):
        with_window(given, a_window("old", HOUR), HOUR)


def test_those_that_are_over_are_not_shown() -> None:
    closures = [Closure(a_window(name, end), (), 1) for name, end in (("now", 2 * HOUR), ("past", HOUR))]
    (view,) = reservation_views(closures, rules(("now",)), HOUR)
    assert (view.name, view.is_documented) == ("now", True)
