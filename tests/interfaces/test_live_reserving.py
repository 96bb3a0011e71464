"""Reservations of a running service from the command line: made, kept, listed, taken back."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.support.command import complaint
from tests.support.local import wait_for
from tests.support.service import LiveService

DOCUMENT = """
apiVersion: aliquot.dev/v1
kind: Reservation
metadata: {name: written}
spec: {cards: 1, start: 2126-01-01, duration: 1h}
"""


@pytest.fixture(scope="module")
def service() -> Iterator[LiveService]:
    with LiveService() as running:
        yield running


def names(service: LiveService) -> set[str]:
    """Of those in force."""
    return {view.name for view in service.client.reservations()}


def test_what_is_reserved_is_closed_and_is_open_again_once_it_is_taken_back(service: LiveService) -> None:
    assert service.run("reservations").out == "no reservations\n"
    done = service.run("reserve", "driver", "--duration", "4h", "--reason", "new driver")
    assert done.code == 0, done.err
    heads, row = (line.split() for line in done.out.splitlines())
    assert heads == ["NAME", "STATE", "START", "END", "CLOSED", "LET", "IN", "WHO", "STILL", "RUNS", "REASON"]
    assert row[:2] == ["driver", "active"]
    assert row[-4:] == ["nobody", "stays", "new", "driver"]

    job = service.submit("true")
    explained = service.run("explain", job).out
    assert "driver" in explained, explained
    assert service.run("unreserve", "driver").code == 0
    assert service.client.wait(job).job.phase == "succeeded"
    assert "no reservation 'driver'" in service.run("unreserve", "driver").err


def test_some_cards_are_closed_to_all_but_some_people(service: LiveService) -> None:
    words = ("--gpus", "6", "--start", "now+1h", "--end", "now+3h", "--users", "ana,ben", "--evict", "5m")
    assert service.run("reserve", "course", *words).code == 0
    (view,) = json.loads(service.run("reservations", "--json").out)
    assert (view["wanted"], view["users"], view["grace_ms"]) == (6, ["ana", "ben"], 300_000)
    assert [len(part["cards"]) for part in view["parts"]] == [6]
    assert view["end_ms"] - view["start_ms"] == 7_200_000

    assert service.run("reserve", "more", "--gpus", "4", "--start", "now+2h", "--duration", "4h").code == 0
    listed = service.run("reservations").out
    assert "more closes 2 of 4 cards: no more were free of other reservations" in listed
    named = service.run(
        "reserve", "first", "--cards", "0,1", "--start", "now+9h", "--duration", "1h", "--json"
    )
    (part,) = json.loads(named.out)["parts"]
    assert part["cards"] == [card.uuid for card in service.client.gpus()[:2]]
    for name in ("course", "more", "first"):
        assert service.run("unreserve", name).code == 0


def test_it_outlives_the_service_and_other_documents_and_those_of_documents_do_not_go(
    service: LiveService,
) -> None:
    assert (
        service.run("reserve", "asked", "--gpus", "2", "--start", "2126-01-01", "--duration", "1h").code == 0
    )
    assert service.run("apply", service.write("site.yaml", DOCUMENT)).code == 0
    service.kill().start()
    wait_for(lambda: names(service) == {"asked", "written"}, "what the record says")
    rows = {line.split()[0]: line for line in service.run("reservations").out.splitlines()}
    assert set(rows) == {"NAME", "asked", "written"}
    assert rows["written"].endswith("documents")
    assert "is one of the documents" in complaint(service.run("unreserve", "written"))
    assert "already" in complaint(service.run("reserve", "written", "--duration", "1h"))
    assert service.run("apply", service.write("none.yaml", DOCUMENT.replace("written", "other"))).code == 0
    wait_for(lambda: names(service) == {"asked", "other"}, "the other documents")
    assert service.run("unreserve", "asked").code == 0
    assert names(service) == {"other"}


def test_who_is_let_in_and_is_nobody_here_is_named(service: LiveService) -> None:
    job = service.submit("sleep 600")
    words = ("--gpus", "1", "--start", "now+1h", "--duration", "1h")
    done = service.run("reserve", "zz", *words, "--users", "root,nosuch", "--jobs", f"{job},9999")
    said = "warning: zz lets in user 'nosuch', job '9999': not known here"
    assert done.code == 0
    assert said in done.out
    assert said in service.run("reservations").out
    assert service.run("reserve", "known", *words, "--users", "root", "--jobs", job).code == 0
    assert {view.name: len(view.strangers) for view in service.client.reservations()}["known"] == 0
    service.client.cancel(job)
    service.client.wait(job)
    assert f"known lets in job '{job}'" in service.run("reservations").out, "it is over"
    for name in ("zz", "known"):
        assert service.run("unreserve", name).code == 0


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--gpus", "1"), "--end: not one way to say how long it lasts (--end or --duration)"),
        (("--start", "soon", "--duration", "1h"), "--start: 'soon' is no date or time"),
        (("--gpus", "1", "--cards", "0", "--duration", "1h"), "--cards: a number of cards and cards by name"),
        (("--cards", "77", "--duration", "1h"), "--cards: no card '77'"),
        (("--gpus", "9", "--duration", "1h"), "spec.cards: 9 cards of 8 there are"),
        (("--nodes", "n77", "--duration", "1h"), "spec.nodes[0]: unknown node 'n77'"),
        (("--start", "2026-01-01", "--end", "2026-01-02"), "end: it is over already"),
        (("--duration", "many"), "spec.duration"),
    ],
)
def test_what_makes_no_sense_is_said_and_nothing_is_closed(
    service: LiveService, words: tuple[str, ...], why: str
) -> None:
    before = service.client.reservations()
    assert why in complaint(service.run("reserve", "w", *words))
    assert service.client.reservations() == before
