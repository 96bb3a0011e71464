"""Every published matrix of the shared captures gives exactly the conclusions written beside it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from aliquot.core.topology.caveats import CaveatKind
from aliquot.core.topology.links import Link
from aliquot.core.topology.matrix import ParsedTopology, parse_matrix
from aliquot.core.topology.peers import parse_peers
from aliquot.core.topology.sheet import is_peer_matrix
from aliquot.core.topology.wiring import cards_of, islands, nearest_nics


@pytest.fixture(scope="module")
def captures(shared: Path) -> dict[str, str]:
    folder = shared / "captures" / "topo"
    if not folder.is_dir():
        pytest.skip(f"no topology captures under {folder}")
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.txt"))}


@pytest.fixture(scope="module")
def expected(shared: Path, captures: dict[str, str]) -> dict[str, dict[str, Any]]:
    text = (shared / "captures" / "topo" / "expect.json").read_text(encoding="utf-8")
    found: dict[str, dict[str, Any]] = json.loads(text)
    assert set(found) == {name for name in captures if not name.startswith("p2p")}
    return found


def conclusions(parsed: ParsedTopology) -> dict[str, Any]:
    """What we conclude, in the form of the expectations."""
    wiring, names = parsed.wiring, parsed.cards
    numa: dict[str, list[str]] = {}
    for name, affinity in zip(names, parsed.affinities, strict=True):
        numa.setdefault(f"{affinity.numa_text or '?'} cpus {affinity.cpu_text}", []).append(name)
    return {
        "gpus": wiring.n,
        "nics": len(wiring.nics),
        "rows_missing": list(parsed.rows_missing),
        "rows_bad": list(parsed.rows_damaged),
        "asym": parsed.asymmetric,
        "nvlink_groups": [[names[card] for card in cards_of(mask)] for mask in islands(wiring)],
        "nvlink_values": sorted({f"NV{count}" for count in wiring.links if count}),
        "numa": numa,
        "gpu_numa_id": {
            name: str(affinity.memory_numa)
            for name, affinity in zip(names, parsed.affinities, strict=True)
            if affinity.memory_numa is not None
        },
        "nearest_nic": {names[card]: _nearest(parsed, card) for card in range(wiring.n) if wiring.nics},
    }


def _nearest(parsed: ParsedTopology, card: int) -> str:
    level, near = nearest_nics(parsed.wiring, card)
    nics = [parsed.wiring.nics[position] for position in near]
    words = [nic.name if nic.name == nic.device else f"{nic.name}={nic.device}" for nic in nics]
    return f"{parsed.sys_word if level is Link.SYS else level.name}:{','.join(words)}"


def plain(text: str) -> str:
    return re.sub(r"\x1b\[\d*m", "", text)


def coloured(text: str) -> str:
    return re.sub(r"(GPU0\b.*)", "\x1b[4m\\1\x1b[0m", plain(text), count=1)


def spaced(text: str) -> str:
    return plain(text).expandtabs(8)


def tabbed(text: str) -> str:
    return re.sub(r"(?<=\S) {2,}(?=\S)", "\t", plain(text))


@pytest.mark.parametrize("form", [str, plain, coloured, spaced, tabbed])
def test_every_capture_gives_its_conclusions_in_every_form(
    captures: dict[str, str], expected: dict[str, dict[str, Any]], form: Any
) -> None:
    for name, wanted in expected.items():
        assert conclusions(parse_matrix(form(captures[name]))) == wanted, name


@pytest.mark.parametrize(
    ("beginning", "kind"),
    [
        ("02", CaveatKind.NVLINK_UNKNOWN),
        ("11", CaveatKind.OFF_FABRIC),
        ("14", CaveatKind.NUMA_UNDETERMINED),
        ("16", CaveatKind.NO_NEAR_NIC),
        ("01", CaveatKind.NOT_ALL_LINKED),
        ("31", CaveatKind.ROW_MISSING),
        ("34", CaveatKind.NO_NEAR_NIC),
        ("35", CaveatKind.NO_NEAR_NIC),
    ],
)
def test_what_is_unusual_about_a_machine_is_said(
    captures: dict[str, str], beginning: str, kind: CaveatKind
) -> None:
    text = next(text for name, text in captures.items() if name.startswith(beginning))
    assert kind in {caveat.kind for caveat in parse_matrix(text).caveats}


def test_only_the_incomplete_capture_counts_as_damaged(captures: dict[str, str]) -> None:
    matrices = {name: text for name, text in captures.items() if not is_peer_matrix(text)}
    assert [name[:2] for name, text in matrices.items() if parse_matrix(text).damaged] == ["31"]


def test_peer_captures_deny_access(captures: dict[str, str]) -> None:
    peers = {name: text for name, text in captures.items() if is_peer_matrix(text)}
    assert [name[:5] for name in peers] == ["p2p_a", "p2p_b"]
    assert all(parse_peers(text).allowed(0, 1) is False for text in peers.values())
    assert [parse_peers(text).status[0][1] for text in peers.values()] == ["GNS", "NS"]
