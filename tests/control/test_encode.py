"""Values of the core as JSON: plain, stable, all or nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aliquot.catalog import load_catalog
from aliquot.control.encode import encode_json, write_json
from aliquot.core.errors import BrokenInvariantError
from aliquot.core.ids import GrantId, JobId, NodeId, SiteId
from aliquot.core.slices import Vector
from aliquot.core.speed import Reach
from aliquot.core.topology.links import Link
from tests.config.documents import CLUSTER, gpu, load


def test_ids_enumerations_and_named_tuples_have_words() -> None:
    value = {
        NodeId(SiteId("s"), "n"): Vector(1, 2, 3),
        "grant": GrantId(JobId("j"), 1, 0),
        "reach": Reach.NVLINK,
        "level": Link.PIX,
        "set": frozenset({2, 1}),
        "unknown": None,
        "name": "中文",
    }
    assert json.loads(encode_json(value)) == {
        "s/n": {"compute": 1, "memory": 2, "bandwidth": 3},
        "grant": "j/1/0",
        "reach": "nvlink",
        "level": "pix",
        "set": [1, 2],
        "unknown": None,
        "name": "中文",
    }


def test_a_scenario_is_encoded_whole_and_without_private_fields(tmp_path: Path) -> None:
    shown = json.loads(encode_json(load(tmp_path, CLUSTER, gpu("{memory: 4GiB}"))))
    assert shown["offers"][0]["job"]["members"][0]["ask"]["memory_mib"] == 4096
    wiring = json.loads(encode_json(load_catalog().machines()["pcie-t4-2"].wiring))
    assert "_hash" not in wiring
    assert wiring["levels"] == ["self", "sys", "sys", "self"]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object()], ids=["nan", "endless", "no form"])
def test_what_has_no_form_in_json_is_a_bug_and_leaves_the_file_alone(tmp_path: Path, value: object) -> None:
    file = tmp_path / "out.json"
    file.write_text("before")
    with pytest.raises(BrokenInvariantError):
        write_json(file, {"x": value})
    assert file.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    write_json(tmp_path / "out.json", {"a": 1})
    assert (tmp_path / "out.json").read_text() == '{\n  "a": 1\n}\n'
