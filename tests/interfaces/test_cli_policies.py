"""`aliquot policies`: the list, one policy in full, as JSON, and names that are not there."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.command import aliquot, complaint


def test_the_list_has_every_preset_with_its_weights() -> None:
    done = aliquot("policies")
    assert (done.code, done.err) == (0, "")
    row = next(line for line in done.out.splitlines() if line.startswith("internal-platform"))
    assert row.split()[1:5] == ["15%", "35%", "35%", "15%"]
    assert any(line.startswith("future-packing") and "%" not in line for line in done.out.splitlines())


def test_one_policy_shows_every_value_and_what_it_would_be_without_it() -> None:
    done = aliquot("policies", "training")
    rows = [line.split() for line in done.out.splitlines()]
    assert ["order.halfLife", "1d16h", "1d"] in rows
    assert ["placement", "future-packing"] in rows


def test_the_policies_of_documents_are_shown_as_they_come_out(tmp_path: Path) -> None:
    file = tmp_path / "night.yaml"
    file.write_text(
        "apiVersion: aliquot.dev/v1\nkind: Policy\nmetadata: {name: night}\n"
        "spec: {preset: training, order: {halfLife: 7h}}\n"
    )
    done = aliquot("policies", "night", "--file", file, "--json")
    said = json.loads(done.out)
    assert said["name"] == "night"
    assert said["fields"]["order.halfLife"] == "7h"
    assert said["fields"]["objectives.performance"] == "35%"


def test_a_policy_that_is_not_there_is_one_line() -> None:
    assert complaint(aliquot("policies", "traning")) == "no policy 'traning'; did you mean 'training'?"
