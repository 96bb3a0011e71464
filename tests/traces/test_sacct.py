"""Slurm's accounting: jobs, steps, arrays, what is unknown there, and lines that are broken."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.core.errors import DocumentError, SpecError
from aliquot.traces.history import Past
from aliquot.traces.sacct import read_cards, read_sacct
from tests.support.past_jobs import SACCT_FIELDS, sacct_line, write_sacct

HOUR = 3_600_000
AT_EIGHT = 1_772_438_400_000  # 2026-03-02 08:00 UTC
NOTHING = {"Start": "Unknown", "End": "Unknown", "Elapsed": "00:00:00"}


def read_one(folder: Path, **said: str) -> Past:
    (job,) = read_sacct(write_sacct(folder, sacct_line(**said))).jobs
    return job


def why_left_out(folder: Path, **said: str) -> str:
    table = read_sacct(write_sacct(folder, sacct_line(**said)))
    assert table.jobs == ()
    ((why, count),) = table.left_out
    assert count == 1
    return why


def test_a_job_of_two_cards(tmp_path: Path) -> None:
    assert read_one(tmp_path) == Past(
        id="100",
        line=2,
        submitted_ms=AT_EIGHT,
        ran_ms=HOUR,
        cards_milli=2000,
        started_ms=AT_EIGHT + 10 * 60_000,
        nodes=1,
        model=None,  # any would have done: it did not ask for the a100 it got
        queue="gpu",
        user="ann",
        priority=4294,
        estimate_ms=4 * HOUR,
        limit_ms=4 * HOUR,
    )


def test_steps_belong_to_their_job_and_tasks_of_arrays_are_jobs(tmp_path: Path) -> None:
    ids = (
        "100",
        "100.batch",
        "100.extern",
        "100.0",
        "101_7",
        "101_8",
        "101_8.0",
        "102+0",
        "102+1",
        "102+1.0",
    )
    table = read_sacct(write_sacct(tmp_path, *(sacct_line(JobID=name) for name in ids)))
    assert [job.id for job in table.jobs] == ["100", "101_7", "101_8", "102+0", "102+1"]
    assert table.left_out == ()


def test_a_requeued_job_counts_each_time(tmp_path: Path) -> None:
    lines = (
        sacct_line(State="NODE_FAIL"),
        sacct_line(Start="2026-03-02T10:00:00", End="2026-03-02T11:00:00"),
    )
    table = read_sacct(write_sacct(tmp_path, *lines))
    assert [job.id for job in table.jobs] == ["100", "100#2"]
    assert table.notes == ("1 jobs are there more than once, as requeued ones are: each time counts",)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({**NOTHING, "State": "PENDING"}, "that never started"),
        ({**NOTHING, "JobID": "9_[3-7%2]"}, "that never started"),
        ({"Start": "None", "End": "2026-03-02T09:00:00", "Elapsed": "00:00:00", "State": "CANCELLED by 7"},
         "that never started"),
        ({"End": "Unknown", "State": "RUNNING"}, "still running"),
        ({"AllocTRES": "billing=8,cpu=8,node=1", "ReqTRES": "cpu=8,node=1"}, "with no card"),
        ({"AllocTRES": "", "ReqTRES": ""}, "with no card"),
        ({"Submit": "Unknown"}, "without a submit time"),
        ({"Elapsed": "", "End": "Unknown"}, "without a run time"),
    ],
    ids=["pending", "an array's rest", "cancelled", "running", "no card", "no list", "no submit", "no end"],
)  # fmt: skip  # a table reads by columns
def test_what_cannot_be_replayed_is_left_out_and_counted(
    tmp_path: Path, said: dict[str, str], why: str
) -> None:
    assert why_left_out(tmp_path, **said).startswith(why)


@pytest.mark.parametrize("state", ["COMPLETED", "FAILED", "TIMEOUT", "CANCELLED by 1000", "PREEMPTED"])
def test_a_job_that_held_cards_counts_however_it_ended(tmp_path: Path, state: str) -> None:
    assert read_one(tmp_path, State=state).ran_ms == HOUR


@pytest.mark.parametrize(
    ("limit", "ms"),
    [
        ("1-00:00:00", 24 * HOUR),
        ("UNLIMITED", None),
        ("Partition_Limit", None),
        ("", None),
        ("30:00", HOUR // 2),
    ],
)
def test_the_time_limit_is_the_estimate_and_no_limit_is_unknown(
    tmp_path: Path, limit: str, ms: int | None
) -> None:
    assert read_one(tmp_path, Timelimit=limit).estimate_ms == ms


@pytest.mark.parametrize(
    ("state", "limit", "ms"),
    [
        pytest.param("TIMEOUT", "59:30", 3_570_000, id="it was ended at it, a little late"),
        pytest.param("COMPLETED", "01:00:00", HOUR, id="it kept it"),
        pytest.param("COMPLETED", "59:30", None, id="it ran on beyond it"),
        pytest.param("CANCELLED by 7", "30:00", None, id="somebody else ended it later"),
        pytest.param("COMPLETED", "UNLIMITED", None, id="it had none"),
    ],
)
def test_a_job_is_ended_at_its_time_limit_if_it_was_kept(
    tmp_path: Path, state: str, limit: str, ms: int | None
) -> None:
    assert read_one(tmp_path, State=state, Timelimit=limit).limit_ms == ms


def test_raw_fields_and_times_in_seconds(tmp_path: Path) -> None:
    fields = ("JobID", "Submit", "ElapsedRaw", "TimelimitRaw", "ReqTRES", "Partition", "NNodes")
    (job,) = read_sacct(write_sacct(tmp_path, "7|1772438400|90|10|gres/gpu=4|gpu|2", fields=fields)).jobs
    assert (job.submitted_ms, job.ran_ms, job.estimate_ms) == (AT_EIGHT, 90_000, 600_000)
    assert (job.cards_milli, job.nodes, job.priority, job.user) == (4000, 2, None, None)


@pytest.mark.parametrize(
    ("queue_by", "queue"),
    [
        ("partition", "gpu"),
        ("account", "vision"),
        ("account/user", "vision/ann"),
        ("partition/account", "gpu/vision"),
    ],
)
def test_what_becomes_the_queue(tmp_path: Path, queue_by: str, queue: str) -> None:
    (job,) = read_sacct(write_sacct(tmp_path, sacct_line()), queue_by).jobs
    assert job.queue == queue


def test_a_queue_of_no_field(tmp_path: Path) -> None:
    with pytest.raises(
        SpecError, match=r"--queue-by: 'team' is no field .*partition, account, user, or several"
    ):
        read_sacct(write_sacct(tmp_path, sacct_line()), "account/team")


@pytest.mark.parametrize(
    ("tres", "found"),
    [
        ("billing=8,cpu=8,gres/gpu:a100=2,gres/gpu=2,mem=64G,node=1", (2, "a100", 1)),
        ("gres/gpu:a100=2", (2, "a100", None)),
        ("gres/gpu=3,node=3", (3, None, 3)),
        ("gres/gpu:a100=1,gres/gpu:h100=2", (3, None, None)),
        ("gres/gpu:a100=0,gres/gpu:h100=2", (2, "h100", None)),
        ("cpu=4,mem=8G,gres/gpumem=40G,gres/gpuutil=80,gres/shard=3", (0, None, None)),
        ("cpu", None),
        ("gres/gpu=two", None),
        ("gres/gpu=-1", None),
    ],
    ids=[
        "total and model", "a model alone", "a total alone", "two models", "none of a model", "no cards",
        "no amount", "in words", "negative",
    ],
)  # fmt: skip  # a table reads by columns
def test_cards_of_a_list(tres: str, found: tuple[int, str | None, int | None] | None) -> None:
    assert read_cards(tres) == found


@given(st.dictionaries(st.sampled_from(["a100", "h100", "l4"]), st.integers(0, 64)), st.integers(1, 9))
def test_a_list_adds_up_whatever_its_order(typed: dict[str, int], nodes: int) -> None:
    parts = [f"gres/gpu:{model}={count}" for model, count in typed.items()] + [f"node={nodes}", "cpu=4"]
    assert read_cards(",".join(parts)) == read_cards(",".join(reversed(parts)))
    found = read_cards(",".join(parts))
    assert found is not None
    assert (found[0], found[2]) == (sum(typed.values()), nodes)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"JobID": "job-7"}, r":2: JobID: 'job-7' is no JobID \(a job such as 123"),
        ({"Submit": "yesterday"}, r":2: Submit: 'yesterday' is no Submit \(a date and time"),
        ({"Elapsed": "an hour"}, r":2: Elapsed: 'an hour' is no Elapsed \(a duration such as"),
        ({"Timelimit": "long"}, r":2: Timelimit: 'long' is no Timelimit"),
        ({"AllocTRES": "gres/gpu=two"}, r":2: AllocTRES: 'gres/gpu=two' is no AllocTRES \(a list such as"),
        ({"Priority": "high"}, r":2: Priority: 'high' is no Priority \(a whole number"),
        ({"Start": "2026-03-02T07:00:00", "End": "2026-03-02T09:00:00"}, r":2: Start: .*no earlier"),
        ({"End": "2026-03-02T08:00:00"}, r":2: End: .*no earlier than Start, 2026-03-02T08:10:00"),
        ({"User": "ann|bo"}, r":2: Priority: 14 values in 13 columns"),
    ],
    ids=[
        "id", "time", "elapsed", "limit", "list", "priority", "start before submission", "end before start",
        "a bar in a name",
    ],
)  # fmt: skip  # a table reads by columns
def test_a_broken_line_is_named(tmp_path: Path, said: dict[str, str], told: str) -> None:
    with pytest.raises(DocumentError, match=r"jobs\.txt" + told):
        read_sacct(write_sacct(tmp_path, sacct_line(**said)))


@pytest.mark.parametrize("field", ["JobID", "Submit", "Partition"])
def test_a_missing_field_says_how_the_list_is_made(tmp_path: Path, field: str) -> None:
    fields = tuple(name.replace(field, "Other") for name in SACCT_FIELDS)
    with pytest.raises(DocumentError, match=rf"jobs\.txt:1: {field}: no field {field} \(made by sacct --all"):
        read_sacct(write_sacct(tmp_path, sacct_line(), fields=fields))
