"""One's own history in a table: what a row becomes, what is unknown, and what is wrong."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from aliquot.control.replaying import HistoryColumns
from aliquot.core.errors import DocumentError
from aliquot.traces.csv_history import read_csv_history
from aliquot.traces.history import Past
from tests.support.past_jobs import HEAD, ROWS, write_history

COLUMNS = HistoryColumns(
    submit="submitted",
    cards="gpus",
    id="job",
    start="started",
    end="ended",
    duration="minutes",
    estimate="limit",
    nodes="nodes",
    memory="memory",
    model="kind",
    queue="team",
    user="who",
    priority="prio",
    duration_unit="minutes",
    estimate_unit="minutes",
)
AT_EIGHT = 1_772_438_400_000  # 2026-03-02 08:00 UTC
MINUTE = 60_000


def read(folder: Path, *rows: str, **changes: object) -> list[Past]:
    columns = msgspec.structs.replace(COLUMNS, **changes)
    return list(read_csv_history(write_history(folder, *rows), columns).jobs)


def test_a_row_says_everything(tmp_path: Path) -> None:
    (job,) = read(tmp_path, "a,vision,ann,2026-03-02T08:00:00,2026-03-02T08:05:00,,60,120,1,1,16,A100,5")
    assert job == Past(
        id="a",
        line=2,
        submitted_ms=AT_EIGHT,
        ran_ms=60 * MINUTE,
        cards_milli=1000,
        started_ms=AT_EIGHT + 5 * MINUTE,
        nodes=1,
        memory_mib=16,
        model="A100",
        queue="vision",
        user="ann",
        priority=5,
        estimate_ms=120 * MINUTE,
    )


def test_what_a_row_does_not_say_stays_unknown(tmp_path: Path) -> None:
    (job,) = read(tmp_path, "a,,n/a,2026-03-02T08:00:00,NULL,,60,Unknown,1,-,,none,")
    assert job == Past("a", 2, AT_EIGHT, 60 * MINUTE, 1000)
    assert (job.priority, job.estimate_ms, job.queue) == (None, None, None)


@pytest.mark.parametrize(
    ("text", "ms"), [("90", 90 * MINUTE), ("Unlimited", None), ("", None), ("n/a", None)]
)
def test_a_limit_ends_a_job_and_none_is_not_zero(tmp_path: Path, text: str, ms: int | None) -> None:
    row = f"a,,,2026-03-02T08:00:00,,,60,{text},1,,,,"
    (job,) = read(tmp_path, row, estimate=None, limit="limit", limit_unit="minutes")
    assert (job.limit_ms, job.estimate_ms) == (ms, None)


@pytest.mark.parametrize("text", ["0", "long", "-3"])
def test_what_is_no_limit_is_named(tmp_path: Path, text: str) -> None:
    row = f"a,,,2026-03-02T08:00:00,,,60,{text},1,,,,"
    with pytest.raises(DocumentError, match=rf"jobs\.csv:2: limit: '{text}' is no limit"):
        read(tmp_path, row, estimate=None, limit="limit", limit_unit="minutes")


def test_columns_that_are_not_mapped_are_not_read(tmp_path: Path) -> None:
    file = write_history(tmp_path, *ROWS)
    columns = HistoryColumns(submit="submitted", cards="gpus", duration="minutes", duration_unit="minutes")
    jobs = read_csv_history(file, columns).jobs
    assert [job.id for job in jobs] == ["line-2", "line-3", "line-4"]
    assert {job.queue for job in jobs} == {None}


def test_a_run_time_may_come_from_start_and_end(tmp_path: Path) -> None:
    row = "a,,,2026-03-02T08:00:00,2026-03-02T08:05:00,2026-03-02T08:25:00,,,1,,,,"
    assert read(tmp_path, row)[0].ran_ms == 20 * MINUTE
    assert read(tmp_path, row, duration=None)[0].ran_ms == 20 * MINUTE


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("a,,,2026-03-02T08:00:00,,,,,1,,,,", "without a run time"),
        ("a,,,2026-03-02T08:00:00,2026-03-02T08:00:00,,,,1,,,,", "without a run time"),
        ("a,,,2026-03-02T08:00:00,,,60,,,,,,", "without a number of cards"),
        ("a,,,2026-03-02T08:00:00,,,60,,0,,,,", "with no card"),
        ("a,,,,,,60,,1,,,,", "without a submit time"),
    ],
    ids=["no duration", "no end", "cards unknown", "processor only", "no submit"],
)
def test_a_row_that_cannot_be_replayed_is_left_out_and_counted(tmp_path: Path, row: str, why: str) -> None:
    table = read_csv_history(write_history(tmp_path, row, row, ROWS[1]), COLUMNS)
    assert [job.id for job in table.jobs] == ["b"]
    assert table.left_out == ((why, 2),)


@pytest.mark.parametrize(
    ("text", "milli"),
    [("1", 1000), ("16", 16_000), ("0.5", 500), ("1/4", 250), ("25%", 250), ("0.3333", 333), ("8.0", 8000)],
)
def test_cards_whole_and_in_parts(tmp_path: Path, text: str, milli: int) -> None:
    assert read(tmp_path, f"a,,,2026-03-02T08:00:00,,,60,,{text},,,,")[0].cards_milli == milli


@pytest.mark.parametrize(
    ("text", "unit", "mib"),
    [("16384", "MiB", 16_384), ("16", "GiB", 16_384), ("16GiB", "MiB", 16_384), ("1 GB", "MiB", 954)],
)
def test_gpu_memory_in_its_own_unit_or_that_of_the_mapping(
    tmp_path: Path, text: str, unit: str, mib: int
) -> None:
    row = f"a,,,2026-03-02T08:00:00,,,60,,1,,{text},,"
    assert read(tmp_path, row, memory_unit=unit)[0].memory_mib == mib


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("a,,,yesterday,,,60,,1,,,,", r":3: submitted: 'yesterday' is no submitted \(a date and time"),
        ("a,,,2026-03-02T08:00:00,x,,60,,1,,,,", r":3: started: 'x' is no started"),
        ("a,,,2026-03-02T08:00:00,,,an hour,,1,,,,", r":3: minutes: 'an hour' .*\(a number of minutes, 0"),
        ("a,,,2026-03-02T08:00:00,,,-5,,1,,,,", r":3: minutes: '-5' is no minutes"),
        ("a,,,2026-03-02T08:00:00,,,60,long,1,,,,", r":3: limit: 'long' is no limit"),
        ("a,,,2026-03-02T08:00:00,,,60,,many,,,,", r":3: gpus: 'many' is no gpus \(a whole number up to"),
        ("a,,,2026-03-02T08:00:00,,,60,,1.5,,,,", r":3: gpus: '1\.5' is no gpus"),
        ("a,,,2026-03-02T08:00:00,,,60,,-1,,,,", r":3: gpus: '-1' is no gpus"),
        ("a,,,2026-03-02T08:00:00,,,60,,0.0001,,,,", r":3: gpus: '0\.0001' is no gpus"),
        ("a,,,2026-03-02T08:00:00,,,60,,1,0,,,", r":3: nodes: '0' is no nodes \(a whole number from 1"),
        ("a,,,2026-03-02T08:00:00,,,60,,1,,16Gb,,", r":3: memory: '16Gb' is no memory \(an amount of memory"),
        ("a,,,2026-03-02T08:00:00,,,60,,1,,0,,", r":3: memory: '0' is no memory"),
        ("a,,,2026-03-02T08:00:00,,,60,,1,,,,high", r":3: prio: 'high' is no prio \(a whole number"),
        ("a,x//y,,2026-03-02T08:00:00,,,60,,1,,,,", r":3: team: 'x//y' is no team \(names joined by single"),
        ("b,,,2026-03-02T08:00:00,,,60,,1,,,,", r":3: job: 'b' is no job \(an id of its own: line 2 has it"),
        ("a,,,2026-03-02T08:00:00,2026-03-02T07:00:00,,60,,1,,,,", r":3: started: .*no earlier than sub"),
        (
            "a,,,2026-03-02T08:00:00,2026-03-02T09:00:00,2026-03-02T08:30:00,,,1,,,,",
            r":3: ended: .*no earlier than started, 2026-03-02T09:00:00",
        ),
        ("a,,,2026-03-02T08:00:00,,,60,,1,,", r":3: kind: 11 values in 13 columns \(as many values as"),
        ("a,,,2026-03-02T08:00:00,,,60,,1,,,,,,", r":3: prio: 15 values in 13 columns"),
        ('a,"x', "can't be read: unexpected end of data"),
    ],
    ids=[
        "a time", "a start", "a duration in words", "a negative duration", "an estimate", "cards in words",
        "a card and a half", "fewer than no cards", "less than a thousandth", "no node", "memory in bits",
        "no memory", "a priority in words", "a broken queue", "an id twice", "a start before the submission",
        "an end before the start", "cut short", "too long", "a quote without end",
    ],
)  # fmt: skip  # a table reads by columns
def test_a_wrong_cell_is_named_by_file_line_column_value_and_what_is_right(
    tmp_path: Path, row: str, told: str
) -> None:
    with pytest.raises(DocumentError, match=rf"jobs\.csv{told}|jobs\.csv: {told}"):
        read(tmp_path, ROWS[1], row)


def test_lines_are_counted_where_a_cell_has_several(tmp_path: Path) -> None:
    rows = ('"a\nof two lines",,,2026-03-02T08:00:00,,,60,,1,,,,', "b,,,soon,,,60,,1,,,,")
    with pytest.raises(DocumentError, match=r"jobs\.csv:4: submitted: 'soon'"):
        read(tmp_path, *rows)


def test_a_column_that_is_not_there_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match=r"jobs\.csv:1: no column 'submited'; did you mean 'submitted'"):
        read(tmp_path, ROWS[0], submit="submited")


def test_another_delimiter_and_a_mark_at_the_beginning_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "jobs.csv"
    head, row = HEAD.replace(",", ";"), ROWS[0].replace(",", ";")
    file.write_bytes(f"{head}\r\n{row}\r\n\r\n".encode("utf-8-sig"))
    (job,) = read_csv_history(file, msgspec.structs.replace(COLUMNS, delimiter=";")).jobs
    assert (job.id, job.line) == ("a", 2)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", r"jobs\.csv:1: is empty"),
        (b"a,b,a\n", r"jobs\.csv:1: a: two columns named 'a'"),
        (b"\xff\xfe\x00", r"jobs\.csv: can't be read"),
    ],
    ids=["empty", "a name twice", "bytes that are no text"],
)
def test_a_file_that_is_no_table(tmp_path: Path, content: bytes, told: str) -> None:
    file = tmp_path / "jobs.csv"
    file.write_bytes(content)
    with pytest.raises(DocumentError, match=told):
        read_csv_history(file, COLUMNS)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match=r"none\.csv: can't be read: .*No such file"):
        read_csv_history(tmp_path / "none.csv", COLUMNS)
