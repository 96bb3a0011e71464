"""Jobs that are submitted together: all or none, who of them is wrong, and who waits for whom of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from aliquot.control.errors import BatchError, ConflictError, ForbiddenError
from aliquot.control.parts import Wanted
from aliquot.control.views import Caller, Submission
from aliquot.core.errors import SpecError
from aliquot.core.events import JobSubmitted
from aliquot.core.ids import JobId
from aliquot.core.jobs import After, Array, When
from aliquot.core.settings import Settings
from tests.control.test_service import ANN, BEN, PATIENCE_S, Stage
from tests.support.build import a_job


class Waiting(Stage):
    """One whose jobs wait for what they name, and where `wrong` is a mistake."""

    def read(self, asked: Submission, caller: Caller, settings: Settings) -> Wanted:
        if "wrong" in asked.spec:
            raise SpecError("is wrong", field="spec.wrong", value=asked.spec["wrong"], hint="leave it out")
        edges = [After(JobId(word)) for word in asked.spec.get("after", ())]
        edges += [After(JobId(word), When.SUCCEEDED) for word in asked.spec.get("afterOk", ())]
        size = asked.spec.get("array", 0)
        job = a_job("", at=0, after=tuple(edges))
        if not size:
            return Wanted((job,), b"{}")
        jobs = tuple(a_job("", at=0, after=tuple(edges), array=Array("", size)) for _ in range(size))
        return Wanted(jobs, b"{}", tuple(range(size)))

    def submitted(self) -> list[str]:
        return [event.job.id for event in self.record.events if isinstance(event, JobSubmitted)]

    def edges_of(self, job: str) -> set[tuple[str, When]]:
        found = next(
            event.job
            for event in self.record.events
            if isinstance(event, JobSubmitted) and event.job.id == job
        )
        return {(edge.on, edge.when) for edge in found.after}


@pytest.fixture
def stage() -> Iterator[Waiting]:
    made = Waiting()
    yield made
    made.service.stop()


def named(name: str, key: str = "", **spec: Any) -> Submission:
    return Submission(command=("x",), name=name, key=key, spec=spec)


def submit(stage: Stage, *asked: Submission) -> list[str]:
    return [answer.result(PATIENCE_S) for answer in stage.service.submit_all(ANN, asked)]


def test_one_that_is_wrong_is_named_and_none_is_accepted(stage: Waiting) -> None:
    with pytest.raises(BatchError, match=r"job 2 of the batch.*spec\.wrong: is wrong") as refused:
        submit(stage, named("a"), named("b", wrong=1), named("c"))
    assert refused.value.at == 1
    assert isinstance(refused.value.error, SpecError)
    assert submit(stage, named("d")) == ["1"]
    assert stage.submitted() == ["1"]


def test_one_alone_is_told_what_is_wrong_without_a_number(stage: Waiting) -> None:
    with pytest.raises(SpecError, match="is wrong"):
        stage.service.submit(ANN, named("a", wrong=1))


def test_names_of_earlier_ones_become_their_ids(stage: Waiting) -> None:
    first = submit(stage, named("old"))[0]
    ids = submit(
        stage, named("a"), named("all", array=2), named("c", after=["a", first], afterOk=["all"]), named("")
    )
    assert ids == ["2", "3", "5", "6"]
    assert stage.edges_of("5") == {
        ("2", When.ENDED), (first, When.ENDED), ("3_0", When.SUCCEEDED), ("3_1", When.SUCCEEDED),
    }  # fmt: skip  # as they stand above


def test_one_that_is_over_before_the_other_starts_lets_it_start(stage: Waiting) -> None:
    first, second = submit(stage, named("a"), named("b", afterOk=["a"]))
    stage.until(first, "running")
    assert stage.phase(second) == "pending"
    stage.machine.end(first)
    stage.until(second, "running")


@pytest.mark.parametrize(
    ("asked", "at", "words"),
    [
        pytest.param(
            (named("a", after=["b"]), named("b")), 0, "spec.after: 'b' does not come before it", id="later"
        ),
        pytest.param(
            (named("b"), named("a", afterOk=["a"])), 1, "spec.afterOk: 'a' does not come before it", id="it"
        ),
        pytest.param(
            (named("a"), named("a"), named("b", after=["a"])), 2, "2 jobs submitted together are called 'a'",
            id="one of two of the same name",
        ),
        pytest.param(
            (named("a"), named("b", after=["z"])), 1, "spec.after: there is no job 'z' to wait for", id="none"
        ),
    ],
)  # fmt: skip  # a case each
def test_what_cannot_be_waited_for(
    stage: Waiting, asked: tuple[Submission, ...], at: int, words: str
) -> None:
    with pytest.raises(BatchError, match="none is accepted") as refused:
        submit(stage, *asked)
    assert refused.value.at == at
    assert words in str(refused.value.error)
    assert stage.submitted() == []


def test_another_ones_job_cannot_be_waited_for(stage: Waiting) -> None:
    job = stage.submit(BEN)
    with pytest.raises(BatchError) as refused:
        submit(stage, named("a"), named("b", after=[job]))
    assert isinstance(refused.value.error, ForbiddenError)


def test_a_batch_submitted_again_under_its_keys_is_the_same_one(stage: Waiting) -> None:
    asked = (named("a", key="1"), named("b", key="2", after=["a"]))
    ids = submit(stage, *asked)
    assert submit(stage, *asked) == ids
    third = submit(stage, *asked, named("c", key="3", afterOk=["b"]))[-1]
    assert stage.edges_of(third) == {(ids[1], When.SUCCEEDED)}, "one that was there before has its old id"
    assert len(stage.submitted()) == 3


def test_a_key_of_another_job_is_said_of_whose_it_is(stage: Waiting) -> None:
    submit(stage, named("a", key="1"))
    with pytest.raises(BatchError, match="used for another job") as refused:
        submit(stage, named("x"), named("b", key="1"))
    assert refused.value.at == 1
    assert isinstance(refused.value.error, ConflictError)
    with pytest.raises(BatchError, match="the same key twice") as refused:
        submit(stage, named("x"), named("b", key="2"), named("c", key="2"))
    assert refused.value.at == 2
    assert stage.submitted() == ["1"]
