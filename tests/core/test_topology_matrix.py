"""Reading printed matrices of our own: every way a copy gets damaged ends equal, unknown, or refused."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aliquot.core.errors import SpecError
from aliquot.core.topology.caveats import CaveatKind
from aliquot.core.topology.links import Link
from aliquot.core.topology.matrix import ParsedTopology, parse_matrix
from aliquot.core.topology.peers import parse_peers
from aliquot.core.topology.sheet import is_peer_matrix
from aliquot.core.topology.wiring import pcie

FIXTURES = Path(__file__).parent / "fixtures" / "topology"
BRIDGED = (FIXTURES / "two_bridged_pairs.txt").read_text()
LEGEND = "\nLegend:\n\n  X    = Self\n  SYS  = far\n  NV#  = links\n"


def print_matrix(
    cells: list[list[str]],
    nics: int = 0,
    *,
    tails: list[tuple[str, ...]] | None = None,
    columns: tuple[str, ...] = ("CPU Affinity", "NUMA Affinity", "GPU NUMA ID"),
    legend: str = LEGEND,
) -> str:
    """The text of a matrix whose last `nics` devices are NICs; `tails` has one tuple per card."""
    count = len(cells) - nics
    names = [f"GPU{i}" for i in range(count)] + [f"NIC{i}" for i in range(nics)]
    tails = tails or [(f"{i // 2 * 4}-{i // 2 * 4 + 3}", str(i // 2), "N/A") for i in range(count)]
    lines = ["\t".join(["", *names, *columns])]
    for row, name in enumerate(names):
        tail = tails[row][: len(columns)] if row < count else ()
        lines.append("\t".join([name, *cells[row], *tail]))
    return "\n".join(lines) + "\n" + legend


def all_sys(n: int) -> list[list[str]]:
    return [["X" if a == b else "SYS" for a in range(n)] for b in range(n)]


@st.composite
def matrices(draw: st.DrawFn) -> str:
    gpus, nics = draw(st.integers(2, 6)), draw(st.integers(0, 4))
    size = gpus + nics
    cells = [["X"] * size for _ in range(size)]
    pcie_words = ["PIX", "PXB", "PHB", "NODE", "SYS"]
    for a in range(size):
        for b in range(a):
            words = pcie_words if a >= gpus else [*pcie_words, "NV1", "NV2", "NV12", "NV18"]
            cells[a][b] = cells[b][a] = draw(st.sampled_from(words))
    tails = [(f"{i // 2 * 16}-{i // 2 * 16 + 15}", str(i // 2), "N/A") for i in range(gpus)]
    columns = draw(st.sampled_from([("CPU Affinity",), ("CPU Affinity", "NUMA Affinity"), (
        "CPU Affinity", "NUMA Affinity", "GPU NUMA ID")]))  # fmt: skip
    return print_matrix(cells, nics, tails=tails, columns=columns)


def kinds(parsed: ParsedTopology) -> set[CaveatKind]:
    return {caveat.kind for caveat in parsed.caveats}


def test_a_machine_of_two_bridged_pairs_is_understood() -> None:
    parsed = parse_matrix(BRIDGED)
    wiring = parsed.wiring
    assert parsed.cards == ("GPU0", "GPU1", "GPU2", "GPU3")
    assert wiring.nvlinks(0, 1) == wiring.nvlinks(2, 3) == 4
    assert wiring.level(0, 2) is Link.SYS
    assert wiring.numa == (0, 0, 1, 1)
    assert wiring.cpus[3] == ((8, 15), (24, 31))
    assert [(nic.name, nic.device) for nic in wiring.nics] == [("NIC0", "mlx5_4"), ("NIC1", "roce_rail1")]
    assert kinds(parsed) == {CaveatKind.NOT_ALL_LINKED, CaveatKind.NO_NEAR_NIC}
    assert not parsed.damaged


def test_memory_nodes_without_cpus_are_not_the_cards_node() -> None:
    parsed = parse_matrix((FIXTURES / "coherent_memory.txt").read_text())
    assert parsed.wiring.numa == (0, 1)
    assert [affinity.numa_text for affinity in parsed.affinities] == ["0,3-9,11-17", "1,19-25"]
    assert [affinity.memory_numa for affinity in parsed.affinities] == [3, 19]


def test_a_node_range_is_undetermined() -> None:
    text = print_matrix([["X", "NV4"], ["NV4", "X"]], tails=[("0", "0-1", "N/A")] * 2)
    parsed = parse_matrix(text)
    assert parsed.wiring.numa == (None, None)
    assert CaveatKind.NUMA_UNDETERMINED in kinds(parsed)


@pytest.mark.parametrize(
    ("form", "legend", "known"),
    [
        ("the legend would show it", LEGEND, True),
        ("the -mp form has no such word", LEGEND.replace("  NV#  = links\n", ""), False),
        ("no legend at all", "", False),
    ],
)
def test_absent_nvlink_is_none_only_where_it_would_be_shown(form: str, legend: str, known: bool) -> None:
    parsed = parse_matrix(print_matrix([["X", "PHB"], ["PHB", "X"]], legend=legend))
    assert parsed.wiring.nvlink_known is known
    assert (CaveatKind.NVLINK_UNKNOWN in kinds(parsed)) is not known


def test_the_old_word_for_another_socket_means_the_same() -> None:
    parsed = parse_matrix(BRIDGED.replace("SYS", "SOC"))
    assert parsed.sys_word == "SOC"
    assert parsed.wiring == parse_matrix(BRIDGED).wiring


def test_a_link_count_that_differs_from_the_others_is_said() -> None:
    cells = [["X", "NV12", "NV12"], ["NV12", "X", "NV10"], ["NV12", "NV10", "X"]]
    assert CaveatKind.UNEVEN_LINKS in kinds(parse_matrix(print_matrix(cells)))


def test_both_ways_must_agree() -> None:
    parsed = parse_matrix(print_matrix([["X", "NV18"], ["NV1", "X"]]))
    assert parsed.asymmetric == 1
    assert parsed.wiring.level(0, 1) is Link.UNKNOWN
    assert CaveatKind.PAIR_UNKNOWN in kinds(parsed)


def test_a_lost_row_is_read_from_the_others() -> None:
    lines = BRIDGED.splitlines()
    parsed = parse_matrix("\n".join(lines[:2] + lines[3:]))
    assert parsed.rows_missing == ("GPU1",)
    assert parsed.wiring.levels == parse_matrix(BRIDGED).wiring.levels
    assert parsed.wiring.numa == (0, None, 1, 1)
    assert parsed.damaged


def test_a_row_shifted_by_one_cell_is_not_believed() -> None:
    shifted = BRIDGED.replace("GPU2\tSYS\tSYS\t X \tNV4", "GPU2\tSYS\tSYS\tSYS\t X \tNV4").replace(
        "SYS\tPIX\t8-15,24-31\t1\t\tN/A\nGPU3", "PIX\t8-15,24-31\t1\t\tN/A\nGPU3"
    )
    parsed = parse_matrix(shifted)
    assert parsed.rows_damaged == ("GPU2",)
    assert parsed.wiring.levels == parse_matrix(BRIDGED).wiring.levels


def test_a_short_cpu_list_beside_the_whole_one_is_a_cut_row() -> None:
    cells = [["X", "PHB"], ["PHB", "X"]]
    text = print_matrix(cells, tails=[("0-11,24-35",), ("0-11,24",)], columns=("CPU Affinity",))
    parsed = parse_matrix(text)
    assert parsed.wiring.cpus == (((0, 11), (24, 35)), None)
    assert CaveatKind.AFFINITY_UNKNOWN in kinds(parsed)


def test_affinity_is_read_whole_or_not_at_all() -> None:
    parsed = parse_matrix(
        print_matrix([["X", "PHB"], ["PHB", "X"]], tails=[("0", "N/A"), ("0-3", "0", "N/A")])
    )
    assert parsed.wiring.cpus == (None, ((0, 3),))
    assert parsed.wiring.numa == (None, 0)


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        ("nothing", ""),
        ("an error message", "NVIDIA-SMI has failed because it could not talk to the driver.\n"),
        ("rows without header", BRIDGED.split("\n", 1)[1]),
        ("a header alone", BRIDGED.splitlines()[0]),
        ("a header that lost a column", BRIDGED.replace("\tGPU2\tGPU3\tNIC0", "\tGPU2\tNIC0", 1)),
        ("a header that lost its end", re.sub(r"\tNIC1\tCPU .*", "", BRIDGED, count=1)),
        ("a name cut to another's", BRIDGED.replace("\tGPU3\tNIC0", "\tGPU2\tNIC0", 1)),
        ("two matrices", BRIDGED + BRIDGED),
        ("more cards than a machine has", print_matrix(all_sys(17))),
    ],
)  # fmt: skip
def test_what_cannot_be_read_without_guessing_is_refused(damage: str, text: str) -> None:
    with pytest.raises(SpecError) as refused:
        parse_matrix(text)
    assert str(refused.value).startswith("topology: ")
    assert "\n" not in str(refused.value)


def colour(text: str) -> str:
    return re.sub(r"^(\s*)(GPU0.*)$", "\\1\x1b[4m\\2\x1b[0m", text, count=1, flags=re.MULTILINE)


def lost_escape(text: str) -> str:
    return colour(text).replace("\x1b", "")


def as_spaces(text: str) -> str:
    return "\n".join(line.expandtabs(8) for line in text.splitlines())


def one_space(text: str) -> str:
    return "\n".join(re.sub(r"\s+", " ", line).strip() for line in text.splitlines())


def doubled_tabs(text: str) -> str:
    return text.replace("\t", "\t\t")


def windows(text: str) -> str:
    return "\ufeff" + text.replace("\n", "\r\n")


def after_a_prompt(text: str) -> str:
    return "$ nvidia-smi topo -m\n" + text


def lost_tabs(text: str) -> str:
    """Cells and NIC names run together, as copies of the output show."""
    matrix, legend = text.split("\nLegend")
    matrix = re.sub(r"\b(X|PIX|PXB|PHB|NODE|SYS|NV\d+)\t(?=X|PIX|PXB|PHB|NODE|SYS|NV)", r"\1", matrix)
    return re.sub(r"(NIC\d+)\s+(?=NIC\d)", r"\1", matrix, count=1) + "\nLegend" + legend


@settings(max_examples=50, deadline=None)
@given(text=matrices(), form=st.sampled_from(
    [colour, lost_escape, as_spaces, one_space, doubled_tabs, windows, after_a_prompt, lost_tabs]
))  # fmt: skip
def test_form_never_changes_the_result(text: str, form: object) -> None:
    assert parse_matrix(form(text)) == parse_matrix(text)  # type: ignore[operator]  # forms are functions


@settings(max_examples=150, deadline=None)
@given(text=matrices(), data=st.data())
def test_a_row_cut_anywhere_gives_the_truth_or_unknown(text: str, data: st.DataObject) -> None:
    lines = text.splitlines()
    rows = [at for at, line in enumerate(lines) if re.match(r"(GPU|NIC)\d", line)]
    at = data.draw(st.sampled_from(rows))
    lines[at] = lines[at][: data.draw(st.integers(0, len(lines[at]) - 1))]
    assert_nothing_shifted(text, "\n".join(lines))


@settings(max_examples=100, deadline=None)
@given(text=matrices(), data=st.data())
def test_a_text_cut_anywhere_gives_the_truth_or_unknown(text: str, data: st.DataObject) -> None:
    end = data.draw(st.integers(0, text.index("\nLegend") - 2))
    assert_nothing_shifted(text, text[:end])


@settings(max_examples=100, deadline=None)
@given(text=matrices(), width=st.integers(5, 90))
def test_a_text_cut_to_a_width_is_refused_or_says_so(text: str, width: int) -> None:
    cut = "\n".join(line[:width] for line in text.splitlines())
    if cut == text.rstrip("\n"):
        return
    try:
        parsed = parse_matrix(cut)
    except SpecError:
        return
    whole = parse_matrix(text)
    assert parsed.damaged or parsed.wiring == whole.wiring


@settings(max_examples=100, deadline=None)
@given(text=matrices(), data=st.data())
def test_a_lost_cell_gives_the_truth_or_unknown(text: str, data: st.DataObject) -> None:
    lines = text.splitlines()
    row = data.draw(st.sampled_from([at for at, line in enumerate(lines) if re.match(r"(GPU|NIC)\d", line)]))
    words = lines[row].split("\t")
    del words[data.draw(st.integers(0, len(words) - 1))]
    lines[row] = "\t".join(words)
    assert_nothing_shifted(text, "\n".join(lines))


def assert_nothing_shifted(text: str, damaged: str) -> None:
    """Refused, or every level, count, NUMA node and NIC as in the whole text, or unknown and said."""
    whole = parse_matrix(text)
    try:
        parsed = parse_matrix(damaged)
    except SpecError:
        return
    true, read = whole.wiring, parsed.wiring
    assert parsed.cards == whole.cards
    for pair, level in enumerate(read.levels):
        if level is not Link.UNKNOWN:
            assert (level, read.links[pair]) == (true.levels[pair], true.links[pair])
    assert all(node in {None, right} for node, right in zip(read.numa, true.numa, strict=True))
    assert [nic.name for nic in read.nics] == [nic.name for nic in true.nics]
    for nic, right_nic in zip(read.nics, true.nics, strict=True):
        assert all(a in {b, Link.UNKNOWN} for a, b in zip(nic.levels, right_nic.levels, strict=True))
    for affinity, right in zip(parsed.affinities, whole.affinities, strict=True):
        assert right.cpu_text.startswith(affinity.cpu_text)  # a cut in the last word of a row may go unseen
    same = (read.levels, read.links, read.numa) == (true.levels, true.links, true.numa)
    assert same or parsed.damaged


def test_peer_access_is_what_is_printed() -> None:
    text = " \tGPU0\tGPU1\tGPU2\n GPU0\tX\tOK\tCNS\n GPU1\tOK\tX\tU\n GPU2\tCNS\tU\tX\n"
    assert is_peer_matrix(text)
    access = parse_peers(text)
    assert [access.allowed(0, card) for card in range(3)] == [True, True, False]
    assert access.allowed(1, 2) is None


def test_cards_without_peer_access_move_data_twice() -> None:
    near = pcie(2, 2, 2)
    blocked = replace(near, blocked=(0b10, 0b01))
    assert blocked.bandwidth(0, 1) == near.bandwidth(0, 1) // 2
    assert blocked.level(0, 1) is Link.PIX


def test_a_link_matrix_is_no_peer_matrix() -> None:
    assert not is_peer_matrix(BRIDGED)
    assert not is_peer_matrix(BRIDGED.split("\nLegend")[0])
    with pytest.raises(SpecError):
        parse_peers("")
