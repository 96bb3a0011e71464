"""`aliquot topology`: what it prints, what it writes as JSON, and how it refuses."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from aliquot.core.topology.matrix import parse_matrix
from aliquot.core.topology.peers import parse_peers
from aliquot.interfaces.cli.topology import render, show_topology, to_json

FIXTURE = Path(__file__).parent.parent / "core" / "fixtures" / "topology" / "two_bridged_pairs.txt"
PEERS = "GPU0 GPU1\nGPU0 X GNS\nGPU1 GNS X\n"


def printed(renderable: object) -> str:
    console = Console(file=io.StringIO(), width=120)
    console.print(renderable)
    return console.file.getvalue()  # type: ignore[attr-defined]  # a StringIO, made above


def test_a_person_sees_groups_switches_nics_and_warnings() -> None:
    text = printed(render(parse_matrix(FIXTURE.read_text())))
    for words in (
        "4 cards, 2 NICs. NVLink between some pairs",
        "0-7,16-23",
        "NVLink: GPU1",
        "PXB: NIC0 (mlx5_4)",
        "GPU2, GPU3",
        "roce_rail1",
        "warning: GPU1: no near NIC",
    ):
        assert words in text


def test_a_program_gets_the_same_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert show_topology(str(FIXTURE), True) == 0
    read = json.loads(capsys.readouterr().out)
    assert read == to_json(parse_matrix(FIXTURE.read_text()))
    assert read["nvlink"]["islands"] == [["GPU0", "GPU1"], ["GPU2", "GPU3"]]
    assert read["nvlink"]["counts"][2] == [0, 0, 0, 4]
    assert read["cards"][2]["nearestNics"] == ["NIC1"]
    assert read["pcieSwitches"][0] == {"level": "PIX", "cards": ["GPU2", "GPU3"], "nics": ["NIC1"]}
    assert read["damaged"] is False


def test_unknown_nvlink_is_null_and_not_none() -> None:
    hidden = "GPU0 GPU1 CPU Affinity\nGPU0 X PIX 0-3\nGPU1 PIX X 0-3\n"
    nvlink = to_json(parse_matrix(hidden))["nvlink"]
    assert (nvlink["known"], nvlink["islands"], nvlink["counts"]) == (False, None, None)


def test_peer_access_is_shown_too() -> None:
    assert "GPU not supported" in printed(render(parse_peers(PEERS)))
    assert to_json(parse_peers(PEERS))["allowed"] == [[True, False], [False, True]]


def test_bad_input_is_one_clear_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cut = tmp_path / "cut.txt"
    cut.write_text(FIXTURE.read_text().split("\n", 1)[1])
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00GPU")
    for path in (cut, binary, tmp_path / "absent", tmp_path):
        assert show_topology(str(path), False) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.startswith("error: topology: ")
        assert captured.err.count("\n") == 1
