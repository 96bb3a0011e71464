"""Jobs to run for real: their order, what a service accepts, and what has no meaning there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aliquot.catalog import load_catalog
from aliquot.config.submissions import NOT_LIVE, NOT_YET, read_live_jobs, read_submissions
from aliquot.control.live import Written
from aliquot.control.views import Submission
from aliquot.core.errors import DocumentError, SpecError
from aliquot.core.ids import JobId
from aliquot.core.jobs import After, Array, Bound, Job, Stop, When
from aliquot.core.queues import Queue
from aliquot.core.settings import Settings
from tests.config.documents import document

NOW = 1_000_000


def read(spec: dict[str, Any], *ids: str, settings: Settings = Settings()) -> tuple[Job, ...]:  # noqa: B008 - a frozen value
    asked = Submission(command=("true",), spec=spec, name="j")
    return read_live_jobs(asked, load_catalog(), settings, now_ms=NOW, known_ids=ids)[0]


def test_a_live_job_may_wait_for_others_be_stopped_and_have_bounds() -> None:
    (job,) = read(
        {
            "gpu": {"count": 2},
            "after": ["3"],
            "afterOk": "4",
            "checkpoint": "10m",
            "restart": "30s",
            "preemptible": False,
            "startBy": "1h",
            "speedFloor": "90%",
            "spot": True,
        },
        "3",
        "4",
    )
    assert job.after == (After(JobId("3")), After(JobId("4"), When.SUCCEEDED))
    assert job.stop == Stop(600_000, 30_000, preemptible=False)
    assert job.bound == Bound(NOW + 3_600_000, None, 900)
    assert job.spot


def test_an_array_comes_to_a_job_each() -> None:
    jobs = read({"cpu": 1, "array": {"size": 3, "width": 1}})
    assert [job.array for job in jobs] == [Array("j", 3, 1)] * 3


def test_a_live_job_inherits_the_priority_of_the_queue_above_its_own() -> None:
    site = Settings(queues=(Queue("lab", priority=50), Queue("lab/a"), Queue("lab/z", priority=0)))
    found = [read({"cpu": 1, "queue": name}, settings=site)[0].priority for name in ("lab/a", "lab/z")]
    assert found == [50, 0] == [site.queue_priority("lab/a"), site.queue_priority("lab/z")]


def test_a_gang_may_be_live() -> None:
    (job,) = read({"members": 2, "minimum": 1, "cpu": 1})
    assert (len(job.members), job.least) == (2, 1)


@pytest.mark.parametrize("key", NOT_LIVE)
def test_what_only_a_simulation_knows_is_refused(key: str) -> None:
    with pytest.raises(SpecError, match="no meaning for a job that runs for real") as caught:
        read({"cpu": 1, key: "1"})
    assert caught.value.field == f"spec.{key}"


def test_a_job_nobody_knows_cannot_be_waited_for() -> None:
    with pytest.raises(SpecError, match="there is no job '9'") as caught:
        read({"cpu": 1, "after": ["3", "9"]}, "3")
    assert caught.value.field == "spec.after[1]"


def test_a_queue_nobody_knows_is_refused_where_there_are_queues() -> None:
    with pytest.raises(SpecError, match="did you mean 'lab/a'"):
        read({"cpu": 1, "queue": "lab/b"}, settings=Settings(queues=(Queue("lab/a"),)))
    (job,) = read({"cpu": 1, "queue": "lab"}, settings=Settings(queues=(Queue("lab/a"),)))
    assert job.queue == "lab"


@pytest.mark.parametrize("key", NOT_YET)
def test_what_a_service_could_not_keep_is_refused_and_why(key: str) -> None:
    with pytest.raises(SpecError, match="not run by this service") as caught:
        read({"cpu": 1, key: "2"})
    assert caught.value.field == f"spec.{key}"
    assert NOT_YET[key] in str(caught.value)


@pytest.mark.parametrize("word", ["two\nlines", "\x1b[31mred", "x" * 201])
@pytest.mark.parametrize("field", ["name", "key"])
def test_a_name_that_could_spoil_the_screens_of_others_is_refused(field: str, word: str) -> None:
    asked = Submission(command=("true",), spec={"cpu": 1}, **{field: word})
    with pytest.raises(SpecError, match="printable") as caught:
        read_live_jobs(asked, load_catalog(), Settings(), now_ms=NOW)
    assert caught.value.field == field


def submit(folder: Path, *jobs: tuple[str, str]) -> list[Written]:
    file = folder / "jobs.yaml"
    texts = [document("Job", name, f"{{command: [a], cpu: 1{more}}}") for name, more in jobs]
    file.write_text("---\n".join(texts))
    return read_submissions([file])


def test_whoever_waits_is_submitted_after_those_it_waits_for(tmp_path: Path) -> None:
    found = submit(tmp_path, ("c", ", afterOk: [b]"), ("b", ", after: [a, 17]"), ("a", ""), ("d", ""))
    assert [each.asked.name for each in found] == ["a", "d", "b", "c"]
    assert found[2].asked.spec["after"] == ["a", "17"]


def test_whoever_stands_behind_those_it_waits_for_keeps_its_place(tmp_path: Path) -> None:
    found = submit(tmp_path, ("c", ""), ("b", ", afterOk: [c]"), ("a", ""), ("d", ", after: [b]"))
    assert [each.asked.name for each in found] == ["c", "b", "a", "d"]


def test_jobs_that_wait_for_each_other_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="wait for each other") as caught:
        submit(tmp_path, ("a", ", after: b"), ("b", ", after: a"))
    assert caught.value.field == "spec.after"
    assert caught.value.line == 4
