"""A site's past as a scenario: who asks for what, and what is said of what could not be honoured."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from aliquot.bootstrap import make_sim
from aliquot.catalog import load_catalog
from aliquot.control.replaying import Estimates
from aliquot.control.whatif import Run
from aliquot.core.errors import DocumentError, SpecError
from aliquot.core.events import Ended, Event, Outcome
from aliquot.core.inventory import CardModel
from aliquot.core.queues import Queue
from aliquot.core.settings import Settings
from aliquot.core.slices import Cut
from aliquot.core.workload import Scenario
from aliquot.core.world import World
from aliquot.traces.history import Machines, Past, Table, build_history
from aliquot.traces.plain_site import UNNAMED, Policies, plain_nodes

HOUR = 3_600_000
A100 = load_catalog().models()["A100-SXM4-40GB"]
WORDS = {
    "a100": ("A100-SXM4-40GB", "A100-SXM4-80GB"),
    "h100": ("H100-SXM5-80GB",),
    "a100-sxm4-40gb": (A100.name,),
}


def past(name: str, at: int = 0, **said: object) -> Past:
    values: dict[str, object] = {"line": 2, "ran_ms": HOUR, "cards_milli": 1000, **said}
    return Past(id=name, submitted_ms=1_000_000 + at, **values)  # type: ignore[arg-type] # the struct checks


class Endings:
    """When and how each job ended."""

    def __init__(self) -> None:
        self.found: dict[str, tuple[int, Outcome]] = {}

    def see(self, events: Sequence[Event], world: World) -> None:
        """Note it."""
        self.found |= {event.job: (event.at, event.outcome) for event in events if isinstance(event, Ended)}


def build(
    *jobs: Past,
    model: CardModel = UNNAMED,
    queues: tuple[Queue, ...] = (),
    estimates: Estimates = Estimates.RECORDED,
    limit: int | None = None,
    share: bool = False,
) -> Scenario:
    site = Scenario("site", plain_nodes("site", 2, 8, model), (), ())

    def policies(found: tuple[Queue, ...]) -> Policies:
        return (("one", Settings()), ("two", Settings(queues=found)))

    table = Table("jobs", "jobs.csv", jobs, (("without a run time", 3),), share=share)
    return build_history(table, Machines(site, WORDS, policies, queues), estimates, 0, limit)


def test_time_begins_with_the_first_submission_and_order_is_by_time_then_line() -> None:
    offers = build(past("c", 900), past("a"), past("b")).offers
    assert [(offer.job.id, offer.job.submitted_ms, offer.job.seq) for offer in offers] == [
        ("a", 0, 0), ("b", 0, 1), ("c", 900, 2),
    ]  # fmt: skip  # a table reads by columns
    assert build(past("c", 900), past("a"), past("b"), limit=2).offers == offers[:2]


def test_what_the_owner_said_goes_with_the_job_and_the_run_time_only_with_the_offer() -> None:
    (offer,) = build(past("a", queue="ai/dev", user="ann", priority=7, estimate_ms=2 * HOUR)).offers
    assert (offer.job.queue, offer.job.user, offer.job.priority, offer.job.estimate_ms) == (
        "ai/dev", "ann", 7, 2 * HOUR,
    )  # fmt: skip  # a row of a table
    assert offer.work_ms == HOUR


@pytest.mark.parametrize(
    ("kind", "told"),
    [(Estimates.RECORDED, [2 * HOUR, None]), (Estimates.EXACT, [HOUR, HOUR]), (Estimates.NONE, [None, None])],
)
def test_what_the_planner_is_told_of_run_times(kind: Estimates, told: list[int | None]) -> None:
    scenario = build(past("a", estimate_ms=2 * HOUR), past("b"), estimates=kind)
    assert [offer.job.estimate_ms for offer in scenario.offers] == told


def test_a_job_is_ended_at_its_limit_unless_the_planner_is_told_nothing() -> None:
    jobs = (past("a", ran_ms=3 * HOUR, limit_ms=2 * HOUR, estimate_ms=2 * HOUR), past("b", limit_ms=HOUR))
    scenario = build(*jobs)
    assert [offer.job.limit_ms for offer in scenario.offers] == [2 * HOUR, HOUR]
    assert "time limits end jobs: 2 of 2 have one, 1 met it" in scenario.notes
    blind = build(*jobs, estimates=Estimates.NONE)
    assert [offer.job.limit_ms for offer in blind.offers] == [None, None]
    seen = Endings()
    Run(scenario, dict(scenario.policies)["one"], make_sim, [seen]).finish()
    assert seen.found == {"a": (2 * HOUR, Outcome.FAILED), "b": (HOUR, Outcome.SUCCEEDED)}


def test_wide_jobs_and_those_spread_over_nodes() -> None:
    offers = build(past("a", cards_milli=12_000), past("b", cards_milli=4000, nodes=2)).offers
    assert [[member.cards for member in offer.job.members] for offer in offers] == [[8, 4], [2, 2]]


def test_a_part_of_a_card_and_memory_of_one() -> None:
    part, least, shared = (
        build(past("a", cards_milli=250)),
        build(past("a", memory_mib=16_384), model=A100),
        build(past("a", memory_mib=16_384), model=A100, share=True),
    )
    asks = [scenario.offers[0].job.members[0] for scenario in (part, least, shared)]
    assert (asks[0].ask.cut, asks[0].ask.compute_milli) == (Cut.SHARED, 250)
    assert (asks[1].whole, asks[1].profile.memory_mib) == (True, 16_384)
    assert (asks[2].ask.cut, asks[2].ask.memory_mib) == (Cut.SHARED, 16_384)


def test_memory_on_cards_of_which_nothing_is_known_is_refused() -> None:
    with pytest.raises(SpecError, match="--model: a history with GPU memory needs cards of a known model"):
        build(past("a", memory_mib=16_384))


@pytest.mark.parametrize(
    ("word", "models", "said"),
    [
        ("A100", WORDS["a100"], None),
        ("nvidia_a100-sxm4-40gb", (A100.name,), None),
        (
            "h100",
            WORDS["h100"],
            "1 jobs name a card model that this site has none of (h100): they never start",
        ),
        ("tesla", (), "1 jobs name a card model that is not in the catalogue (tesla): any card will do"),
    ],
    ids=["a family", "as Slurm finds it", "not here", "not known"],
)
def test_a_named_model(word: str, models: tuple[str, ...], said: str | None) -> None:
    scenario = build(past("a", model=word), model=A100)
    assert scenario.offers[0].job.members[0].profile.models == models
    assert [note for note in scenario.notes if "name a card model" in note] == ([said] if said else [])


def test_a_model_means_nothing_where_cards_have_none() -> None:
    assert build(past("a", model="h100")).offers[0].job.members[0].profile.models == ()


def test_more_memory_than_any_card_has_is_said() -> None:
    notes = build(past("a", memory_mib=80_000), model=A100).notes
    assert "1 jobs name more GPU memory than any card here has: they never start" in notes


def test_queues_of_the_history_join_those_of_the_documents() -> None:
    scenario = build(past("a", queue="dev"), past("b", queue="new"), queues=(Queue("dev", nominal_mib=5),))
    assert [settings.queues for _, settings in scenario.policies] == [
        (),
        (Queue("dev", nominal_mib=5), Queue("new")),
    ]
    assert "queues that no document declares have no quota: new" in scenario.notes
    assert not any("no quota" in note for note in build(past("a", queue="dev")).notes)


def test_what_was_left_out_and_how_long_jobs_waited_then_is_said() -> None:
    started = [past("a", started_ms=1_000_000), past("b", started_ms=1_000_000 + 2 * HOUR)]
    notes = build(*started, past("c")).notes
    assert "left out: 3 without a run time" in notes
    assert "as it happened, 2 jobs waited 1 h in the mean, 2 h at the 95th percentile, 2 h at most" in notes
    assert any(note.startswith("jobs.csv: 3 past jobs from 1970-01-01 00:16:40 on") for note in notes)
    assert not any("as it happened" in note for note in build(past("a")).notes)


def test_a_history_of_nothing() -> None:
    with pytest.raises(DocumentError, match=r"jobs\.csv: has no job to replay \(3 without a run time\)"):
        build()
