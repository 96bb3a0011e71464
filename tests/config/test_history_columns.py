"""The mapping of a history's columns: what it says, and what it says wrongly."""

from __future__ import annotations

from pathlib import Path

import pytest

from aliquot.config.history import read_history_columns
from aliquot.control.replaying import HistoryColumns
from aliquot.core.errors import DocumentError

LEAST = "columns: {submit: at, cards: n, duration: took}\n"


def read(folder: Path, text: str) -> HistoryColumns:
    file = folder / "map.yaml"
    file.write_text(text)
    return read_history_columns(file)


def test_the_least_that_must_be_said(tmp_path: Path) -> None:
    assert read(tmp_path, LEAST) == HistoryColumns(submit="at", cards="n", duration="took")
    assert read(tmp_path, "columns: {submit: at, cards: n, start: s, end: e}") == HistoryColumns(
        submit="at", cards="n", start="s", end="e"
    )


def test_everything_that_can_be_said(tmp_path: Path) -> None:
    text = """\
columns: {submit: a, cards: b, duration: c, id: d, start: e, end: f, estimate: g, nodes: h, gpuMemory: i,
          model: j, queue: k, user: l, priority: m, limit: o}
units: {time: "%d.%m.%Y %H:%M", duration: clock, estimate: hours, limit: minutes, gpuMemory: GiB}
delimiter: tab
unknown: ["", "NA", 0]
share: true
"""
    assert read(tmp_path, text) == HistoryColumns(
        submit="a", cards="b", duration="c", id="d", start="e", end="f", estimate="g", nodes="h", memory="i",
        model="j", queue="k", user="l", priority="m", limit="o", time_form="%d.%m.%Y %H:%M",
        duration_unit="clock", estimate_unit="hours", limit_unit="minutes", memory_unit="GiB", delimiter="\t",
        unknown=("", "na", "0"), share=True,
    )  # fmt: skip  # one field a word


def test_an_estimate_is_in_the_unit_of_the_duration_where_none_is_given(tmp_path: Path) -> None:
    columns = read(tmp_path, LEAST + "units: {duration: minutes}")
    assert (columns.estimate_unit, columns.limit_unit) == ("minutes", "minutes")


def test_the_example_is_read(repository: Path) -> None:
    columns = read_history_columns(repository / "examples" / "history" / "columns.yaml")
    assert (columns.delimiter, columns.unknown) == (";", ("", "running"))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("columns: {cards: n, duration: t}", r"map\.yaml:1: columns: 'submit' is missing"),
        ("columns: {submit: at, duration: t}", r"map\.yaml:1: columns: 'cards' is missing"),
        ("columns: {submit: at, cards: n}", r"map\.yaml:1: columns: nothing says how long a job ran"),
        ("columns: {submit: at, cards: n, start: s}", "nothing says how long a job ran"),
        ("units: {time: iso}", "'columns' is missing"),
        (LEAST + "columns2: {}", r":2: columns2: unknown key 'columns2' \(did you mean 'columns'"),
        ("columns: {submit: at, cards: n, duratoin: t}", "unknown key 'duratoin' .*did you mean 'duration'"),
        (LEAST + "units: {duration: hour}", r":2: units\.duration: 'hour' is not known here .*hours"),
        (LEAST + "units: {time: date}", r":2: units\.time: 'date' is no form of time \(iso, seconds,"),
        (LEAST + 'units: {time: "%Q"}', r":2: units\.time: '%Q' is a pattern that can't be read"),
        (LEAST + "units: {gpuMemory: Gb}", r"units\.gpuMemory: 'Gb' is not known here"),
        (LEAST + "delimiter: '--'", r":2: delimiter: '--' can't stand between values"),
        (LEAST + "unknown: NA", r":2: unknown: .* stands where a list is expected"),
        (LEAST + "share: maybe", r":2: share: 'maybe' is not a yes or no"),
        (LEAST + "---\n" + LEAST, r":3: a second document"),
        ("columns: [submit]", "stands where a map of fields is expected"),
    ],
)
def test_a_mapping_that_is_wrong_names_the_place(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(DocumentError, match=told):
        read(tmp_path, text)


def test_a_mapping_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match=r"none\.yaml: no such file"):
        read_history_columns(tmp_path / "none.yaml")
