"""Gangs, arrays, dependencies, elasticity, checkpoints, bounds: what they come to, and what is wrong."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.config.elastic import amdahl
from aliquot.core.ids import JobId
from aliquot.core.jobs import After, Array, Bound, Elastic, Stop, When
from tests.config.documents import CLUSTER, check_error, document, job, jobs_of, load


def test_a_gang_of_equal_members(tmp_path: Path) -> None:
    found = jobs_of(tmp_path, job("{members: 4, minimum: 2, cpu: 8, gpu: {count: 8}}"))["j"]
    assert len(found.members) == 4
    assert len(set(found.members)) == 1
    assert (found.members[0].cards, found.members[0].cpu_milli) == (8, 8000)
    assert (found.minimum, found.least) == (2, 2)


def test_a_gang_whose_members_ask_for_different_things(tmp_path: Path) -> None:
    text = job("{members: [{cpu: 4}, {count: 3, gpu: {count: 2}, memory: 1GiB}]}")
    members = jobs_of(tmp_path, text)["j"].members
    assert [(member.cards, member.cpu_milli, member.host_mib) for member in members] == [
        (0, 4000, 0),
        *[(2, 0, 1024)] * 3,
    ]


def test_without_a_minimum_all_members_start_together(tmp_path: Path) -> None:
    found = jobs_of(tmp_path, job("{members: 3, cpu: 1}"))["j"]
    assert (found.minimum, found.least) == (None, 3)


def test_replicas_may_be_gangs(tmp_path: Path) -> None:
    found = jobs_of(tmp_path, job("{replicas: 2, members: 3, cpu: 1}"))
    assert {id_: len(each.members) for id_, each in found.items()} == {"j-0": 3, "j-1": 3}


def test_a_gang_depends_on_links_where_a_member_requires_them(tmp_path: Path) -> None:
    text = job("{members: [{cpu: 1}, {gpu: {count: 2, nvlink: required}}]}")
    assert load(tmp_path, CLUSTER, text).offers[0].linked


@pytest.mark.parametrize(
    ("array", "width"), [("{size: 3, width: 2}", 2), ("{size: 3}", None), ("3", None)], ids=str
)
def test_an_array_is_jobs_that_know_their_array(tmp_path: Path, array: str, width: int | None) -> None:
    found = jobs_of(tmp_path, job(f"{{array: {array}, cpu: 1}}", "many"))
    assert list(found) == ["many-0", "many-1", "many-2"]
    assert {each.array for each in found.values()} == {Array("many", 3, width)}
    assert {each.replica_of for each in found.values()} == {"many"}


def test_a_name_stands_for_all_that_its_document_makes(tmp_path: Path) -> None:
    waits = job("{after: [copies, many-1], afterOk: one, cpu: 1}", "last")
    made = (
        job("{replicas: 2, cpu: 1}", "copies"),
        job("{array: 3, cpu: 1}", "many"),
        job("{cpu: 1}", "one"),
    )
    found = jobs_of(tmp_path, waits, *made)
    assert found["last"].after == (
        After(JobId("copies-0")),
        After(JobId("copies-1")),
        After(JobId("many-1")),
        After(JobId("one"), When.SUCCEEDED),
    )
    assert all(not each.after for id_, each in found.items() if id_ != "last")


def test_every_job_of_a_document_waits_for_the_same(tmp_path: Path) -> None:
    found = jobs_of(tmp_path, job("{cpu: 1}", "a"), job("{replicas: 2, after: a, cpu: 1}", "b"))
    assert found["b-0"].after == found["b-1"].after != ()


def test_measured_speeds_count_by_the_first(tmp_path: Path) -> None:
    text = job("{gpu: {count: 2}, elastic: {widths: [1, 2, 4], speeds: [80.5, 152.95, 273.7]}}")
    assert jobs_of(tmp_path, text)["j"].elastic == Elastic((1, 2, 4), (1000, 1900, 3400))


def test_a_serial_part_bounds_what_more_cards_bring(tmp_path: Path) -> None:
    text = job("{gpu: {count: 4}, elastic: {widths: [1, 4], serial: 5%}}")
    assert jobs_of(tmp_path, text)["j"].elastic == Elastic((1, 4), (1000, 3478))  # 4 / 1.15


@given(st.integers(1, 4096), st.fractions(0, 1))
def test_no_width_is_faster_than_linear_or_than_the_serial_part_lets_it(width: int, serial: Fraction) -> None:
    fast = amdahl(width, serial)
    assert 1 <= fast <= width
    assert fast * serial <= 1
    assert amdahl(width + 1, serial) >= fast


def test_widths_of_a_gang_count_its_members(tmp_path: Path) -> None:
    text = job("{members: 4, minimum: 2, gpu: {count: 8}, elastic: {widths: [2, 4], serial: 0%}}")
    assert jobs_of(tmp_path, text)["j"].elastic == Elastic((2, 4), (1000, 2000))


def test_what_it_costs_to_stop_a_job(tmp_path: Path) -> None:
    text = job("{cpu: 1, checkpoint: 10m, restart: 30s, stop: 5s, preemptible: false}")
    assert jobs_of(tmp_path, text)["j"].stop == Stop(600_000, 30_000, 5_000, False)


def test_a_checkpoint_nobody_speaks_of_is_unknown(tmp_path: Path) -> None:
    assert jobs_of(tmp_path, job("{cpu: 1}"))["j"].stop == Stop(None, 0, 0, True)


def test_bounds_count_from_the_submission(tmp_path: Path) -> None:
    text = job("{cpu: 1, submit: 1h, startBy: 30m, finishBy: 2h, speedFloor: 80%}")
    assert jobs_of(tmp_path, text)["j"].bound == Bound(5_400_000, 10_800_000, 800)
    assert jobs_of(tmp_path, job("{cpu: 1}"))["j"].bound == Bound(None, None, None)


def test_who_and_how(tmp_path: Path) -> None:
    found = jobs_of(tmp_path, job("{cpu: 1, members: 2, user: ann, spot: true, spread: true}"))["j"]
    assert (found.user, found.spot, found.spread) == ("ann", True, True)
    plain = jobs_of(tmp_path, job("{cpu: 1}"))["j"]
    assert (plain.user, plain.spot, plain.spread) == ("", False, False)


TWO = "gpu: {count: 2}"
# (story, documents, field, part of the message)
WRONG = [
    ("no member that starts", job("{cpu: 1, members: 4, minimum: 0}"), "spec.minimum", "1 to 4"),
    ("more to start than there are", job("{cpu: 1, members: 4, minimum: 5}"), "spec.minimum", "1 to 4"),
    ("a gang of nobody", job("{cpu: 1, members: 0}"), "spec.members", "1 to 4096"),
    ("an empty gang", job("{members: []}"), "spec.members", "an empty list"),
    (
        "a gang too large",
        job("{members: [{count: 4096, cpu: 1}, {cpu: 1}]}"),
        "spec.members",
        "4097 members",
    ),
    ("a member that asks for nothing", job("{members: [{count: 2}]}"), "spec.members[0]", "asks for nothing"),
    ("asked twice", job("{cpu: 1, members: [{cpu: 1}]}"), "spec.cpu", "say it of each member"),
    ("a gang that may be scattered", job(f"{{{TWO}, members: 2, scatter: true}}"), "spec.scatter", "a gang"),
    ("an array of nothing", job("{cpu: 1, array: 0}"), "spec.array", "size 0 is too small"),
    (
        "an array with no room",
        job("{cpu: 1, array: {size: 3, width: 0}}"),
        "spec.array.width",
        "width 0 is too small",
    ),
    ("an array without a size", job("{cpu: 1, array: {width: 2}}"), "spec.array", "'size' is missing"),
    ("an endless array", job("{cpu: 1, array: 1000001}"), "spec.array", "1000000 at most"),
    ("an array of replicas", job("{cpu: 1, array: 2, replicas: 2}"), "spec.array", "keep one"),
    (
        "an unknown job",
        job("{cpu: 1, after: prepaer}") + "---\n" + job("{cpu: 1}", "prepare"),
        "spec.after",
        "did you mean 'prepare'?",
    ),
    ("an unknown job and no other", job("{cpu: 1, afterOk: [x]}"), "spec.afterOk[0]", "no job 'x'"),
    ("a job after itself", job("{cpu: 1, after: j}"), "spec.after", "j after j"),
    ("a replica after its like", job("{cpu: 1, replicas: 2, after: [j-0]}"), "spec.after[0]", "j after j"),
    (
        "jobs after each other",
        job("{cpu: 1, after: b}", "a")
        + "---\n"
        + job("{cpu: 1, afterOk: [c-0]}", "b")
        + "---\n"
        + job("{cpu: 1, array: 2, after: [a]}", "c"),
        "spec.after",
        "a after b after c after a",
    ),
    (
        "one job twice",
        job("{cpu: 1, after: [b], afterOk: [b]}") + "---\n" + job("{cpu: 1}", "b"),
        "spec.afterOk[0]",
        "stands there twice",
    ),
    (
        "too many edges",
        job("{cpu: 1, array: 2000}", "a") + "---\n" + job("{cpu: 1, array: 2000, after: a}", "b"),
        "spec.after",
        "put a job between",
    ),
    (
        "speeds not as many as widths",
        job(f"{{{TWO}, elastic: {{widths: [1, 2], speeds: [1]}}}}"),
        "spec.elastic.speeds",
        "1 speeds for 2 widths",
    ),
    (
        "a speed of nothing",
        job(f"{{{TWO}, elastic: {{widths: [1, 2], speeds: [1, 0]}}}}"),
        "spec.elastic.speeds[1]",
        "not a speed",
    ),
    (
        "speeds in two units",
        job(f"{{{TWO}, elastic: {{widths: [1, 2], speeds: [50000, 1]}}}}"),
        "spec.elastic.speeds",
        "in one unit",
    ),
    (
        "speeds said twice",
        job(f"{{{TWO}, elastic: {{widths: [1, 2], speeds: [1, 2], serial: 1%}}}}"),
        "spec.elastic",
        "said once",
    ),
    ("speeds not said", job(f"{{{TWO}, elastic: {{widths: [1, 2]}}}}"), "spec.elastic", "said once"),
    (
        "a serial part over the whole",
        job(f"{{{TWO}, elastic: {{widths: [2], serial: 120%}}}}"),
        "spec.elastic.serial",
        "more than the whole",
    ),
    (
        "widths that fall",
        job(f"{{{TWO}, elastic: {{widths: [2, 1], serial: 1%}}}}"),
        "spec.elastic.widths",
        "do not rise",
    ),
    (
        "a width of nothing",
        job(f"{{{TWO}, elastic: {{widths: [0, 2], serial: 1%}}}}"),
        "spec.elastic.widths[0]",
        "1 to 4096",
    ),
    (
        "asked for what is no width",
        job(f"{{{TWO}, elastic: {{widths: [1, 4], serial: 1%}}}}"),
        "spec.elastic",
        "none of its widths",
    ),
    (
        "narrower than what has to start",
        job("{gpu: {count: 1}, members: 4, minimum: 2, elastic: {widths: [1, 4], serial: 1%}}"),
        "spec.elastic",
        "below the minimum of 2",
    ),
    (
        "elastic members of two kinds",
        job("{members: [{cpu: 1}, {gpu: {count: 1}}], elastic: {widths: [2], serial: 1%}}"),
        "spec.elastic",
        "different things",
    ),
    ("elastic without cards", job("{cpu: 2, elastic: {widths: [1], serial: 1%}}"), "spec.elastic", "cards"),
    ("a checkpoint all the time", job("{cpu: 1, checkpoint: 0s}"), "spec.checkpoint", "comes to nothing"),
    (
        "finished before it started",
        job("{cpu: 1, startBy: 2h, finishBy: 1h}"),
        "spec.finishBy",
        "later than startBy",
    ),
    ("a floor above full speed", job("{cpu: 1, speedFloor: 120%}"), "spec.speedFloor", "more than the whole"),
    ("one member spread", job("{cpu: 1, spread: true}"), "spec.spread", "cannot be spread"),
    ("a user with a space", job("{cpu: 1, user: 'ann b'}"), "spec.user", "not a name"),
    ("spot in other words", job("{cpu: 1, spot: yes}"), "spec.spot", "true or false"),
    (
        "a job in a queue nobody knows",
        job("{cpu: 1, queue: b}") + "---\n" + document("Queues", "q", "{queues: [{name: a}]}"),
        "spec.queue",
        "one of a",
    ),
]


@pytest.mark.parametrize(("text", "field", "why"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_what_is_wrong_with_a_job_is_named(tmp_path: Path, text: str, field: str, why: str) -> None:
    check_error(tmp_path, f"{CLUSTER}---\n{text}", field, why, after_line=6)
