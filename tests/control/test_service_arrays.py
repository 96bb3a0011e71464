"""Arrays in the service without processes, and the documents that it goes by."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from aliquot.control.chronicle import Chronicle
from aliquot.control.errors import ForbiddenError, UnavailableError
from aliquot.control.kept import Kept
from aliquot.control.parts import Rules
from aliquot.control.views import Configuration, Submission
from aliquot.core.errors import NotFoundError
from aliquot.core.events import Event, JobCancelled, JobSubmitted
from aliquot.core.ids import JobId
from aliquot.core.jobs import Array
from aliquot.core.settings import Settings
from aliquot.core.world import World
from tests.control.test_service import ANN, BEN, PATIENCE_S, ROOT, Stage
from tests.support.build import a_job
from tests.support.local import wait_for


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = Stage()
    yield made
    made.service.stop()


def test_an_array_has_one_number_and_its_jobs_an_index_each(stage: Stage) -> None:
    before = stage.submit()
    asked = Submission(command=("x",), spec={"array": 3}, key="k")
    name = stage.service.submit(ANN, asked).result(PATIENCE_S)
    after = stage.submit()
    assert (before, name, after) == ("1", "2", "5")
    assert [job.id for job in stage.service.jobs(array=name)] == ["2_0", "2_1", "2_2"]
    assert set(stage.record.bodies) == {"1", "2", "5"}, "one body for all of an array"
    assert stage.service.submit(ANN, asked).result(PATIENCE_S) == name
    with pytest.raises(NotFoundError, match="2 is an array; its jobs are 2_0 to 2_2"):
        stage.service.job(ANN, name)
    with pytest.raises(ForbiddenError):
        stage.service.cancel(BEN, name)


def test_an_array_is_one_row_until_its_last_job_is_over_and_cancelled_as_one(stage: Stage) -> None:
    name = stage.service.submit(ANN, Submission(command=("x",), spec={"array": 4})).result(PATIENCE_S)
    stage.until("1_1", "running")
    stage.machine.end("1_0")
    stage.until("1_2", "running")
    (row,) = stage.service.jobs(over=False, folded=True)
    assert (row.id, row.phase) == (name, "running")
    assert row.counts == {"succeeded": 1, "running": 2, "pending": 1}
    stage.service.cancel(ANN, name).result(PATIENCE_S)
    wait_for(lambda: stage.service.jobs(over=False) == [], "all to be over")
    (row,) = stage.service.jobs(folded=True)
    assert row.counts == {"succeeded": 1, "cancelled": 3}
    assert row.over_ms is not None


def test_a_restarted_service_knows_its_arrays_and_their_keys(stage: Stage) -> None:
    asked = Submission(command=("x",), spec={"array": 3}, key="k")
    name = stage.service.submit(ANN, asked).result(PATIENCE_S)
    stage.service.stop()
    stage.open()
    assert [job.id for job in stage.service.jobs(array=name)] == ["1_0", "1_1", "1_2"]
    assert stage.service.submit(ANN, asked).result(PATIENCE_S) == name
    assert stage.submit() == "4"


def test_an_array_is_forgotten_with_the_last_of_its_jobs() -> None:
    forgotten: list[JobId] = []
    kept = Kept(1, "a", (), "/", msgspec.Raw(b"{}"), key="k")
    chronicle = Chronicle(lambda job: kept, lambda job, attempt: (), forgotten.extend, kept=1)
    world = World()
    for at in range(2):
        job = a_job(f"1_{at}", at=at, array=Array("1", 2))
        events: list[Event] = [JobSubmitted(at, job), JobCancelled(at, job.id)]
        world.apply_all(events)
        chronicle.see(events, world)
    assert (forgotten, set(chronicle.arrays["1"])) == ([JobId("1_0")], {JobId("1_1")})
    assert chronicle.keys[1, "k"].job == "1", "the key outlives the first of them"
    job = a_job("3", at=3)
    world.apply_all([JobSubmitted(3, job), JobCancelled(3, job.id)])
    chronicle.see([JobSubmitted(3, job), JobCancelled(3, job.id)], world)
    assert forgotten == [JobId("1_0"), JobId("1_1"), JobId("1")]
    assert chronicle.arrays == {}


def test_many_jobs_of_one_owner_do_not_push_out_those_of_others() -> None:
    owners = {"other": 2}
    chronicle = Chronicle(
        lambda job: Kept(owners.get(job, 1), "a", (), "/", msgspec.Raw(b"{}")),
        lambda job, attempt: (),
        kept=20,
    )
    world = World()
    for at, name in enumerate(["other", *(f"mine{number}" for number in range(500))]):
        events: list[Event] = [JobSubmitted(at, a_job(name, at=at)), JobCancelled(at, JobId(name))]
        world.apply_all(events)
        chronicle.see(events, world)
    assert JobId("other") in chronicle.lives
    assert JobId("mine499") in chronicle.lives
    assert JobId("mine1") not in chronicle.lives
    assert len(chronicle.lives) <= 21


def test_documents_are_on_the_disk_before_the_service_goes_by_them(stage: Stage) -> None:
    stage.settle = lambda configuration: Rules(
        "other", Settings(engine="python", by_priority=False), configuration
    )
    with pytest.raises(ForbiddenError):
        stage.service.apply(ANN, Configuration(policy="other"))
    stage.record.is_full = True
    with pytest.raises(UnavailableError) as refused:
        stage.service.apply(ROOT, Configuration(policy="other")).result(PATIENCE_S)
    assert refused.value.is_full
    assert stage.service.in_force().policy == "future-packing"
    stage.record.is_full = False
    assert stage.service.apply(ROOT, Configuration(policy="other")).result(PATIENCE_S).policy == "other"
    assert stage.record.documents == [b'{"files":[],"policy":"other","reserved":[]}']
    first = stage.submit()
    stage.until(first, "running")
