"""Kueue's shapes made anew: counts, quotas, and work as published."""

from __future__ import annotations

from collections import Counter

import pytest

from aliquot.control.replaying import KueueAsk
from aliquot.core.errors import NotFoundError
from aliquot.core.queues import Queue, check_queues
from aliquot.core.settings import Settings
from aliquot.core.workload import Scenario
from aliquot.traces.kueue import SHAPES, load_kueue, make_nodes
from aliquot.traces.plain_site import Policies


def policies(queues: tuple[Queue, ...]) -> Policies:
    return (("plain", Settings(queues=queues)),)


def load(shape: str, jobs: int | None = None) -> Scenario:
    return load_kueue(KueueAsk(shape, jobs), policies)


def milli(scenario: Scenario, at: int) -> int:
    return sum(
        member.cards * (member.ask.compute_milli or 1000) for member in scenario.offers[at].job.members
    )


@pytest.mark.parametrize(
    ("shape", "jobs", "queues", "cohorts"),
    [("baseline", 15_000, 30, 5), ("topology", 15_000, 30, 5), ("large", 50_000, 1_000, 10)],
)
def test_as_many_workloads_and_queues_as_published(shape: str, jobs: int, queues: int, cohorts: int) -> None:
    scenario = load(shape)
    assert len(scenario.offers) == len({offer.job.id for offer in scenario.offers}) == jobs
    declared = scenario.policies[0][1].queues
    check_queues(declared)
    assert len(declared) == queues + cohorts
    assert {offer.job.queue for offer in scenario.offers} == {
        queue.name for queue in declared if "/" in queue.name
    }


@pytest.mark.parametrize("shape", SHAPES)
def test_a_queue_has_20_cpu_and_borrows_100_but_no_cohort_borrows_of_another(shape: str) -> None:
    cpu = SHAPES[shape].cpu_milli
    for queue in load(shape, 1).policies[0][1].queues:
        (quota,) = queue.quotas
        assert (quota.nominal, quota.borrowing) == ((20 * cpu, 100 * cpu) if "/" in queue.name else (None, 0))


@pytest.mark.parametrize("shape", ["baseline", "large"])
def test_the_site_is_as_large_as_the_quotas_together(shape: str) -> None:
    scenario = load(shape, 1)
    cards = sum(len(node.cards) for node in scenario.nodes)
    nominal = [quota.nominal for queue in scenario.policies[0][1].queues for quota in queue.quotas]
    assert cards * 1000 == sum(amount for amount in nominal if isinstance(amount, int))


@pytest.mark.parametrize(
    ("shape", "widths"),
    [
        ("baseline", {1_000: 10_500, 5_000: 3_000, 20_000: 1_500}),
        ("topology", {100: 10_500, 500: 3_000, 2_000: 1_500}),
        ("large", {1_000: 35_000, 5_000: 11_000, 20_000: 4_000}),
    ],
)
def test_workloads_of_1_5_and_20_cpu(shape: str, widths: dict[int, int]) -> None:
    scenario = load(shape)
    assert Counter(milli(scenario, at) for at in range(len(scenario.offers))) == widths


def test_workloads_come_one_each_interval_per_queue_and_class() -> None:
    offers = [offer for offer in load("baseline").offers if offer.job.queue == "cohort-0/queue-0"]
    large = [offer for offer in offers if offer.job.priority == 200]
    assert [offer.job.submitted_ms for offer in large] == [at * 1200 for at in range(50)]
    assert {offer.work_ms for offer in large} == {1000}
    assert {offer.job.estimate_ms for offer in offers} == {None}, "nobody says how long they run"
    times = [offer.job.submitted_ms for offer in load("baseline").offers]
    assert times == sorted(times)


def test_the_topology_has_ten_racks_of_64_nodes() -> None:
    nodes = make_nodes(SHAPES["topology"])
    assert Counter(node.rack for node in nodes) == {f"rack-{at}": 64 for at in range(10)}
    assert any("wishes for racks" in note for note in load("topology", 1).notes)


def test_a_shape_that_is_none() -> None:
    with pytest.raises(NotFoundError, match="no shape 'bigger'; there are baseline, topology, large"):
        load("bigger")
