"""Expected starts and promises in words."""

from __future__ import annotations

import pytest

from aliquot.core.promise import Answer, Crowding, Part, Promise, Term
from aliquot.core.queueing.outlook import Expected, Method, Unsaid
from aliquot.core.units import format_ms
from aliquot.interfaces.cli.expectations import (
    crowding_line,
    expected_line,
    place_line,
    promise_lines,
)
from aliquot.interfaces.cli.rough import starts_in

MINUTE = 60_000
KNOWN = Expected(
    21 * MINUTE,
    low_ms=13 * MINUTE,
    middle_ms=21 * MINUTE,
    high_ms=41 * MINUTE,
    held_milli=812,
    held_jobs=1200,
)


@pytest.mark.parametrize(
    ("expected", "line", "short"),
    [
        pytest.param(
            KNOWN,
            "Expected to start in 12 min to 40 min (around 20 min); "
            "81 % of the last 1,200 such intervals held.",
            "12 min to 40 min",
            id="interval",
        ),
        pytest.param(
            Expected(21 * MINUTE, Method.COUNTS, seen=7),
            "Expected to start in 20 min if nobody else comes and all ends as expected, by counts of free "
            "cards; no interval yet: 7 of 50 starts that it takes were seen.",
            "about 20 min",
            id="guess",
        ),
        pytest.param(
            Expected(unsaid=Unsaid.NO_END),
            "When it starts is unknown, because what it waits for has no known end.",
            "unknown",
            id="no end",
        ),
        pytest.param(
            Expected(unsaid=Unsaid.TOO_FAR),
            "When it starts is unknown, because it lies further ahead than was looked.",
            "unknown",
            id="too far",
        ),
    ],
)
def test_when_a_job_starts(expected: Expected, line: str, short: str) -> None:
    assert expected_line(expected, MINUTE) == line
    assert starts_in(expected, MINUTE) == short


def test_promises_are_one_line_for_each_term_with_its_numbers() -> None:
    promise = Promise(
        Answer.AT_RISK,
        (
            Part(Term.START_BY, Answer.AT_RISK, 30 * MINUTE, 12 * MINUTE, 40 * MINUTE, 20 * MINUTE),
            Part(Term.FINISH_BY, Answer.UNKNOWN, 90 * MINUTE, guess=80 * MINUTE),
            Part(Term.SPEED, Answer.MET, 800, low=1000, guess=1000),
        ),
    )
    assert list(promise_lines(promise, format_ms)) == [
        "Start by 30 min: at risk; expected from 12 min to 40 min.",
        "Finish by 1 h 30 min: unknown; 1 h 20 min if nobody else comes, and nothing to judge that by yet.",
        "Speed of at least 80 % of full: met; 100 % of full is sure.",
    ]


def test_places_name_the_queue_where_there_are_several() -> None:
    assert place_line(3, 10, "ai-lab", 1, 4) == "Place 3 of 10 in line, 1 of 4 in queue ai-lab."
    assert place_line(3, 10, "", 3, 10) == "Place 3 of 10 in the queue."


def test_a_crowded_pool_says_so_and_any_other_nothing() -> None:
    crowded = Crowding(True, 970, 0, 1, 2)
    assert crowding_line(crowded, 20 * MINUTE).startswith("Crowded: 97 % of the cards are in use")
    assert crowding_line(Crowding(False, 970, 0), 20 * MINUTE) == ""
    assert crowding_line(None, 0) == ""
