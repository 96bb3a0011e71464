"""The examples load, and their numbers are those their remarks claim."""

from __future__ import annotations

from pathlib import Path

import pytest

from aliquot.catalog import load_catalog
from aliquot.config import load_scenario
from aliquot.config.submissions import read_submissions
from aliquot.core.jobs import Link
from aliquot.core.slices import resolve_ask
from aliquot.core.workload import Scenario, Standing


@pytest.fixture(scope="module")
def examples(repository: Path) -> Path:
    """The folder of examples."""
    return repository / "examples"


def load(folder: Path) -> Scenario:
    return load_scenario([folder], load_catalog())


def count_cards(scenario: Scenario) -> int:
    return sum(len(node.cards) for node in scenario.nodes)


def test_every_example_loads(examples: Path) -> None:
    beside = {examples / "bare", examples / "history", examples / "live"}
    folders = sorted({file.parent for file in examples.rglob("*.yaml")} - beside)
    assert len(folders) == 7
    assert all(load(folder).offers for folder in folders)


def test_jobs_for_a_service_are_read_in_the_order_in_which_they_can_start(examples: Path) -> None:
    first, second = (job.asked for job in read_submissions([examples / "live" / "jobs.yaml"]))
    assert (first.name, second.name) == ("prepare", "train")
    assert second.spec["afterOk"] == ["prepare"]


def test_the_case_is_the_calibrated_one(examples: Path) -> None:
    scenario = load(examples / "case")
    assert [len(node.cards) for node in scenario.nodes] == [8, 8, 8, 4]
    inference = [offer for offer in scenario.offers if offer.job.replica_of == "inference"]
    training = [offer for offer in scenario.offers if offer.job.replica_of == "training"]
    assert (len(inference), len(training)) == (20, 3)
    assert {(o.work_ms, o.busy_milli, o.job.priority, o.job.submitted_ms) for o in inference} == {
        (9_420_000, 100, 50, 0)
    }
    assert {(o.work_ms, o.busy_milli, o.job.priority, o.job.submitted_ms) for o in training} == {
        (10_800_000, 910, 100, 300_000)
    }
    assert training[0].linked
    assert training[0].job.members[0].link is Link.REQUIRED
    assert scenario.settings("whole-card-spread") is not None
    assert scenario.standing is Standing.CALIBRATED


def test_ten_tasks_of_the_case_fill_a_card_and_eleven_do_not(examples: Path) -> None:
    vector = resolve_ask(load(examples / "case").offers[0].job.members[0].ask, 40960)
    assert vector is not None
    assert (vector.compute * 10, vector.memory * 10) == (1000, 38_150)


def test_the_closed_form_of_the_case_gives_45_and_82_percent(examples: Path) -> None:
    """Busy card-time over cards x makespan: waiting for inference before, 5 minutes for submission after."""
    scenario = load(examples / "case")
    busy = sum((o.busy_milli or 0) * (o.work_ms or 0) * o.job.members[0].cards for o in scenario.offers)
    inference, training = scenario.offers[0], scenario.offers[-1]
    run = training.work_ms or 0
    cards = 1000 * count_cards(scenario)
    assert busy / (cards * ((inference.work_ms or 0) + run)) == pytest.approx(0.450, abs=0.001)
    assert busy / (cards * (training.job.submitted_ms + run)) == pytest.approx(0.820, abs=0.001)


def test_the_literal_reading_has_one_training_job_and_all_else_equal(examples: Path) -> None:
    case, literal = load(examples / "case"), load(examples / "case" / "literal")
    assert [node.cards[0].model for node in literal.nodes] == [node.cards[0].model for node in case.nodes]
    assert [offer for offer in literal.offers if offer.job.id != "training"] == list(case.offers[:20])
    assert literal.offers[-1].job.members == case.offers[-1].job.members


def test_the_thousand_cards_are_7_2_million_idle(examples: Path) -> None:
    scenario = load(examples / "thousand-cards")
    assert count_cards(scenario) == 1000
    services = [offer for offer in scenario.offers if offer.job.replica_of == "service"]
    model = scenario.nodes[0].cards[0].model
    vector = resolve_ask(services[0].job.members[0].ask, model.usable_mib)
    assert vector is not None
    per_card = min(1000 // vector.compute, model.usable_mib // vector.memory)
    idle = len(services) - len(services) // per_card
    assert (len(services), per_card, idle) == (300, 5, 240)
    assert idle * (scenario.nodes[0].price_cents_per_card or 0) == 720_000_000


def test_the_services_of_a_thousand_card_site_find_their_cpu(examples: Path) -> None:
    scenario = load(examples / "thousand-cards")
    service, node = scenario.offers[0].job.members[0], scenario.nodes[0]
    assert 5 * len(node.cards) * service.cpu_milli <= node.cpu_milli
    assert 5 * len(node.cards) * service.host_mib <= node.host_mib


def test_the_site_with_queues_has_one_of_each(examples: Path) -> None:
    scenario = load_scenario([examples / "queues.yaml"], load_catalog())
    jobs = {offer.job.id: offer.job for offer in scenario.offers}
    assert [job.array.width for job in jobs.values() if job.array is not None] == [4] * 12
    assert {edge.on for edge in jobs["train"].after} == {f"prepare-{at}" for at in range(12)}
    assert (len(jobs["train"].members), jobs["sweep"].least, len(jobs["sweep"].members)) == (2, 4, 8)
    assert jobs["fill-5"].spot
    assert not jobs["answer"].stop.preemptible
    settings = scenario.settings("platform")
    assert settings is not None
    assert {queue.name for queue in settings.queues} >= {job.queue for job in jobs.values()}
    assert settings.preemption is not None
    assert (settings.order.half_life_ms, settings.preemption.least_run_ms) == (43_200_000, 900_000)
    assert scenario.notes == ()
