"""Budgets in virtual time: whatever they stop, every simulation ends."""

from __future__ import annotations

import pytest

from aliquot.bootstrap import make_sim
from aliquot.control.whatif import Run
from aliquot.core.jobs import Stop
from aliquot.core.queues import Queue
from aliquot.core.settings import Rates, Settings
from aliquot.core.workload import Offer
from tests.support.build import a_job, a_node, a_scenario, an_offer
from tests.support.planning import settings

HOUR = 3_600_000
RATES = Rates(cents_a_month=(("H100", 73_000),))  # 1.00 an hour
SAVES = Stop(checkpoint_ms=HOUR // 2)


def how(cents: int, grace: int | None = 0) -> Settings:
    """One queue with a budget that stops jobs, or does not."""
    return settings(queues=(Queue("lab", budget_cents=cents, spent_grace_ms=grace),), rates=RATES)


def offer(name: str, hours: int | None, at: int = 0, stop: Stop = Stop(), told: bool = False) -> Offer:  # noqa: B008 - a frozen struct
    """A job of one card that runs so long, which its owner says or not; None: for ever."""
    estimate = hours * HOUR if hours is not None and told else None
    job = a_job(name, at=at, queue="lab", stop=stop, estimate_ms=estimate)
    return an_offer(job, None if hours is None else hours * HOUR)


def left(rules: Settings, *offers: Offer) -> tuple[list[str], int]:
    """Who is not over at the end, and how many attempts were made of them all."""
    world = Run(a_scenario([a_node("n", 8)], list(offers)), rules, make_sim).finish()
    return sorted(world.jobs), world.tally.granted


@pytest.mark.parametrize(
    ("rules", "offers", "waits", "granted"),
    [
        pytest.param(how(0, None), [offer("j", 1)], ["j"], 0, id="a-budget-of-nothing"),
        pytest.param(how(0), [offer("j", 1, told=True)], ["j"], 0, id="and-one-that-stops"),
        pytest.param(how(300, None), [offer("j", 5, told=True)], [], 1, id="dearer-than-a-month"),
        pytest.param(how(300), [offer("j", 5)], ["j"], 1, id="stopped-in-vain"),
        pytest.param(how(300), [offer("j", 5, stop=SAVES)], [], 2, id="stopped-and-saved"),
        pytest.param(how(300), [offer("j", None)], ["j"], 1, id="without-an-end-and-in-vain"),
        pytest.param(how(300), [offer("a", 2), offer("b", 2), offer("c", 2)], [], 6, id="shared"),
    ],
)
def test_it_ends(rules: Settings, offers: list[Offer], waits: list[str], granted: int) -> None:
    assert left(rules, *offers) == (waits, granted)


def test_what_has_no_end_is_stopped_each_month_for_little_more_than_a_year() -> None:
    """Until nobody else is left who could come or end."""
    waits, granted = left(how(300), offer("service", None, stop=SAVES))
    assert (waits, 12 <= granted <= 15) == (["service"], True)


def test_a_job_that_comes_after_years_is_waited_for() -> None:
    late = offer("late", 1, at=900 * 24 * HOUR)
    waits, _ = left(how(300), offer("service", None, stop=SAVES), late)
    assert waits == ["service"]
