"""The table of job phases."""

from __future__ import annotations

import itertools

import pytest

from aliquot.core.events import Outcome
from aliquot.core.grants import GrantState
from aliquot.core.lifecycle import (
    HOLDING,
    NEWS_OF_OUTCOME,
    STATE_OF_PHASE,
    TABLE,
    News,
    Phase,
    next_phase,
)

TERMINAL = frozenset({Phase.SUCCEEDED, Phase.FAILED, Phase.CANCELLED})


@pytest.mark.parametrize(
    ("story", "ends"),
    [
        pytest.param([News.GRANTED, News.STARTED, News.SUCCEEDED], Phase.SUCCEEDED, id="a good life"),
        pytest.param([News.GRANTED, News.SUCCEEDED], Phase.SUCCEEDED, id="over before the start was told"),
        pytest.param(
            [News.GRANTED, News.STARTED, News.STOPPING, News.SUCCEEDED], Phase.SUCCEEDED, id="a slow end"
        ),
        pytest.param([News.GRANTED, News.REFUSED], Phase.PENDING, id="turned away at the door"),
        pytest.param([News.GRANTED, News.STARTED, News.LOST], Phase.PENDING, id="its node died"),
        pytest.param([News.GRANTED, News.STARTED, News.UNSEEN], Phase.PENDING, id="nobody saw how it went"),
        pytest.param([News.CANCELLED], Phase.CANCELLED, id="given up while waiting"),
        pytest.param(
            [News.GRANTED, News.STARTED, News.CANCELLED], Phase.STOPPING, id="given up while running"
        ),
        pytest.param(
            [News.GRANTED, News.CANCELLED, News.REFUSED], Phase.PENDING, id="given up, then turned away"
        ),
    ],
)
def test_a_story_ends_in(story: list[News], ends: Phase) -> None:
    phase = Phase.PENDING
    for news in story:
        after = next_phase(phase, news)
        assert after is not None
        phase = after
    assert phase is ends


@pytest.mark.parametrize("news", list(News))
@pytest.mark.parametrize("phase", sorted(TERMINAL, key=lambda phase: phase.value))
def test_nothing_moves_what_is_over(phase: Phase, news: News) -> None:
    assert next_phase(phase, news) is None


@pytest.mark.parametrize(
    "news", sorted(set(News) - {News.GRANTED, News.CANCELLED}, key=lambda news: news.value)
)
def test_news_of_an_attempt_says_nothing_to_a_job_that_waits(news: News) -> None:
    assert next_phase(Phase.PENDING, news) is None


def test_repeated_news_changes_nothing() -> None:
    again = [
        (phase, news)
        for (phase, news), after in TABLE.items()
        if next_phase(after, news) is not None and after not in TERMINAL and phase is not after
    ]
    assert again == []


def test_pieces_come_free_only_when_processes_are_gone() -> None:
    """B06: leaving the phases that hold takes an end or a refusal, never a mere announcement."""
    freeing = {news for (phase, news), after in TABLE.items() if phase in HOLDING and after not in HOLDING}
    assert freeing == {News.SUCCEEDED, News.FAILED, News.LOST, News.UNSEEN, News.REFUSED}


def test_every_outcome_and_every_holding_phase_is_in_its_table() -> None:
    assert set(NEWS_OF_OUTCOME) == set(Outcome)
    assert set(STATE_OF_PHASE) == HOLDING
    assert GrantState.ORPHANED not in STATE_OF_PHASE.values()
    for phase, news in itertools.product(HOLDING, NEWS_OF_OUTCOME.values()):
        assert next_phase(phase, news) is not None, "an end is heard in every phase that holds"
