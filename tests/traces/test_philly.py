"""The month of Philly: rows into offers, what is told of run times, and rows that are broken."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from aliquot.control.replaying import Estimates, PhillyAsk
from aliquot.core.errors import DocumentError, NotFoundError
from aliquot.core.queues import Queue
from aliquot.core.settings import Settings
from aliquot.core.workload import Scenario, Standing
from aliquot.traces.philly import load_philly
from aliquot.traces.plain_site import Policies
from tests.support.past_jobs import write_philly


def policies(queues: tuple[Queue, ...]) -> Policies:
    return (("plain", Settings(queues=queues)),)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_philly(tmp_path)


def load(folder: Path, **asked: object) -> Scenario:
    return load_philly(folder, PhillyAsk(**asked), policies)  # type: ignore[arg-type] # the struct checks


def test_jobs_of_the_month_come_by_submit_time_and_the_rest_not_at_all(folder: Path) -> None:
    scenario = load(folder)
    assert [offer.job.id for offer in scenario.offers] == ["philly-4", "philly-3", "philly-2", "philly-6"]
    assert [offer.job.submitted_ms for offer in scenario.offers] == [0, 60_000, 90_000, 30 * 86_400_000]
    assert [offer.job.seq for offer in scenario.offers] == [0, 1, 2, 3]
    assert [offer.work_ms for offer in scenario.offers] == [10_500, 600_000, 1, 3_600_000]
    assert (len(scenario.nodes), sum(len(node.cards) for node in scenario.nodes)) == (80, 640)
    assert scenario.standing is Standing.REPLAY


def test_wide_jobs_take_whole_nodes(folder: Path) -> None:
    members = [[member.cards for member in offer.job.members] for offer in load(folder).offers]
    assert members == [[8, 8, 8], [1], [8], [2]]


def test_virtual_clusters_are_queues_of_every_policy(folder: Path) -> None:
    scenario = load(folder)
    assert [queue.name for queue in scenario.policies[0][1].queues] == ["vc-a", "vc-b"]
    assert [offer.job.queue for offer in scenario.offers] == ["vc-b", "vc-a", "vc-a", "vc-a"]


def test_only_the_first_days_or_jobs(folder: Path) -> None:
    assert len(load(folder, days=30).offers) == 3
    assert len(load(folder, days=31).offers) == 4
    assert [offer.job.id for offer in load(folder, jobs=2).offers] == ["philly-4", "philly-3"]


def test_estimates_are_as_wrong_as_asked_and_drawn_from_the_seed(folder: Path) -> None:
    ran = [offer.work_ms for offer in load(folder).offers]

    def told(kind: Estimates, seed: int = 0) -> list[int | None]:
        return [offer.job.estimate_ms for offer in load(folder, estimates=kind, seed=seed).offers]

    assert told(Estimates.EXACT) == ran
    assert told(Estimates.NONE) == [None] * 4
    over, wrong = told(Estimates.OVER), told(Estimates.WRONG10)
    assert all(true <= guess <= 5 * true for true, guess in zip(ran, over, strict=True) if true and guess)
    assert over != ran
    factors = 10 ** np.random.default_rng(0).uniform(-1, 1, 4)
    assert wrong == [max(1, int(true * factor)) for true, factor in zip(ran, factors, strict=True) if true]
    assert told(Estimates.WRONG10, seed=1) != wrong


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("soon,1.0,1,1.0,vc-a", r":7: timestamp: 'soon' is no timestamp \(a date and time"),
        ("2017-10-02 00:00:00,-1,1,1.0,vc-a", r":7: duration: '-1' is no duration \(a number, 0 or more"),
        ("2017-10-02 00:00:00,1.0,0,1.0,vc-a", r":7: num_gpus: '0' is no num_gpus \(a whole number, 1"),
        ("2017-10-02 00:00:00,1.0", r":7: num_gpus: .*cut short"),
    ],
    ids=["no time", "negative", "no card", "cut short"],
)
def test_a_broken_row_is_named(folder: Path, row: str, told: str) -> None:
    file = folder / "philly" / "philly.csv"
    file.write_text(file.read_text() + row + "\n")
    with pytest.raises(DocumentError, match=r"philly\.csv" + told):
        load(folder)


def test_no_trace_says_where_it_was_expected(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"no Philly trace: expected .*philly\.csv"):
        load(tmp_path)


def test_the_published_month_reads_whole(shared: Path) -> None:
    scenario = load(shared / "traces")
    assert len(scenario.offers) == 47_192
    cards = sum(
        member.cards * (offer.work_ms or 0) for offer in scenario.offers for member in offer.job.members
    )
    assert cards / (640 * 31 * 86_400_000) == pytest.approx(0.92, abs=0.02), (
        "the load the size was chosen for"
    )
