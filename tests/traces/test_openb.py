"""The 'openb' workloads: rows into nodes and pods, the orders, and files that are broken."""

from __future__ import annotations

from pathlib import Path

import pytest

from aliquot.catalog import load_catalog
from aliquot.core.errors import AliquotError, DocumentError, NotFoundError
from aliquot.core.slices import Cut
from aliquot.traces.openb import OpenbTrace, asked_milli, list_workloads, read_rows
from tests.support.traces import COLUMNS, write_traces

MODELS = load_catalog().models()
CARDS = 31


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_traces(tmp_path / "traces", seeds=(42,))


def trace(folder: Path, seed: int = 42, **how: object) -> OpenbTrace:
    return OpenbTrace(folder, "small", seed, MODELS, **how)  # type: ignore[arg-type] # OpenbTrace checks


def test_machines_and_their_cards(folder: Path) -> None:
    nodes = trace(folder).nodes()
    assert [node.id.name for node in nodes] == [f"node-{letter}" for letter in "abcdef"]
    assert [len(node.cards) for node in nodes] == [2, 8, 8, 1, 8, 4]
    assert trace(folder).capacity_milli == CARDS * 1000
    assert len({card.uuid for node in nodes for card in node.cards}) == CARDS
    assert (nodes[0].cpu_milli, nodes[0].host_mib) == (64_000, 262_144)


def test_pods_become_requests_and_equal_ones_are_one_value(folder: Path) -> None:
    offers = trace(folder).offers()
    requests = [offer.job.members[0] for offer in offers]
    assert len({id(request) for request in requests}) == len(set(requests)) <= 8
    shared = next(request for request in requests if request.ask.compute_milli == 250)
    assert (shared.cards, shared.ask.cut, shared.cpu_milli, shared.host_mib) == (1, Cut.SHARED, 4_000, 8_192)
    spec = next(request for request in requests if request.ask.compute_milli == 500)
    assert spec.profile.models == ("T4", "P100")
    assert next(request for request in requests if request.cards == 8).whole
    assert all(offer.patience_ms == 0 and offer.work_ms is None for offer in offers)


def test_pods_stop_before_the_offered_share_is_exceeded(folder: Path) -> None:
    for share in (0.1, 0.5, 1.0, 1.3):
        asked = sum(asked_milli(offer.job.members[0]) for offer in trace(folder, offered=share).offers())
        assert share * CARDS * 1000 - 8_000 < asked <= share * CARDS * 1000


def test_the_published_order_is_used_where_there_is_one(folder: Path) -> None:
    published = trace(folder)
    assert published.notes == []
    first = published.offers()[0].job.members[0]
    assert (first.cards, first.whole) == (2, True), "the last name comes first in this order"


def test_without_a_published_order_one_is_drawn_from_the_seed_and_said(folder: Path) -> None:
    drawn, again, other = trace(folder, 7), trace(folder, 7), trace(folder, 8)
    assert "no published order" in drawn.notes[0]
    assert drawn.offers() == again.offers()
    assert drawn.nodes() == again.nodes()
    assert drawn.offers() != other.offers()
    assert sorted(node.id.name for node in drawn.nodes()) == sorted(node.id.name for node in other.nodes())


def test_demand_is_that_of_the_list_whatever_the_order(folder: Path) -> None:
    demand = trace(folder).demand()
    assert sum(count for _, count in demand) == 40
    assert demand == trace(folder, 7, offered=0.1).demand()


def test_pods_arrive_in_groups_and_in_order(folder: Path) -> None:
    offers = trace(folder, group=4).offers()
    assert [offer.job.submitted_ms for offer in offers[:9]] == [0] * 4 + [1000] * 4 + [2000]
    assert [offer.job.seq for offer in offers] == list(range(len(offers)))


def test_only_pods_on_at_most_one_card_may_move(folder: Path) -> None:
    offers = trace(folder, movable=True).offers()
    assert {offer.job.members[0].cards for offer in offers if offer.job.movable} == {1}
    assert not any(offer.job.movable for offer in trace(folder).offers())


# --- bad input -------------------------------------------------------------------------------------------


def test_a_folder_without_traces(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"no openb traces in .*: expected .*openb_pod_list_\*\.csv"):
        list_workloads(tmp_path)


def test_a_workload_that_is_not_there_names_the_nearest(folder: Path) -> None:
    with pytest.raises(NotFoundError, match=r"no workload 'smal' in .*; did you mean 'small'"):
        OpenbTrace(folder, "smal", 42, MODELS)


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("pod-x,abc,8192,1,250,", r":42: cpu_milli: 'abc' is not a whole number from 0 to"),
        ("pod-x,4000,-1,1,250,", r":42: memory_mib: '-1' is not a whole"),
        ("pod-x,4000,8192,1.5,250,", r":42: num_gpu: '1\.5' is not a whole"),
        ("pod-x,4000,8192,1,1250,", r":42: gpu_milli: '1250' is not a whole number from 1 to 1000"),
        ("pod-x,4000,8192,1,0,", r":42: gpu_milli: '0' is not a whole"),
        ("pod-x,4000,8192,1", r":42: gpu_milli: .* the row is cut short"),
        ("pod-x,0x10,8192,1,250,", r":42: cpu_milli: '0x10' is not a whole"),
        ("pod-x,٤٠٠٠,8192,1,250,", r":42: cpu_milli: '٤٠٠٠' is not a whole"),
        ("pod-x,99999999999999999999,8192,1,250,", r":42: cpu_milli: '9+' is not a whole"),
    ],
    ids=[
        "words",
        "negative",
        "a fraction",
        "over a card",
        "nothing of a card",
        "cut short",
        "hex",
        "foreign digits",
        "too large",
    ],
)
def test_a_broken_row_is_named_by_file_row_and_column(folder: Path, row: str, told: str) -> None:
    file = folder / "openb" / "openb_pod_list_small.csv"
    file.write_text(file.read_text() + row + "\n")
    with pytest.raises(DocumentError, match=r"openb_pod_list_small\.csv" + told):
        trace(folder)


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("node-x,64000,262144,2,B9000", r":8: model: 'B9000' is not a GPU model of the catalogue"),
        ("node-x,64000,262144,many,T4", r":8: gpu: 'many' is not a whole"),
        ("node-x,64000,262144", r":8: gpu: .* the row is cut short"),
        ("node-a,64000,262144,2,T4", r":8: sn: 'node-a' is not a name of its own"),
        ("node-x,64000,262144,20,T4", r":8: gpu: '20' is not a whole number from 0 to 16"),
    ],
    ids=["unknown model", "words", "cut short", "twice the same name", "too many cards"],
)
def test_a_broken_machine_is_named_too(folder: Path, row: str, told: str) -> None:
    file = folder / "openb" / "openb_node_list_gpu_node.csv"
    file.write_text(file.read_text() + row + "\n")
    with pytest.raises(DocumentError, match=r"openb_node_list_gpu_node\.csv" + told):
        trace(folder, 7).nodes()


def test_a_missing_column_an_empty_list_and_bytes_that_are_no_text(folder: Path) -> None:
    file = folder / "openb" / "openb_pod_list_small.csv"
    file.write_text("name,cpu_milli\npod-1,5\n")
    with pytest.raises(DocumentError, match=r":1: no column 'memory_mib' \(columns name, cpu_milli"):
        trace(folder)
    file.write_text(COLUMNS + "\n")
    with pytest.raises(DocumentError, match="no rows"):
        trace(folder)
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DocumentError, match="can't be read"):
        trace(folder)


def test_a_sequence_of_another_list_is_refused(folder: Path) -> None:
    """Indices beyond the list would silently offer other pods."""
    file = folder / "openb" / "openb_pod_list_small.csv"
    file.write_text("\n".join(file.read_text().splitlines()[:11]) + "\n")
    with pytest.raises(AliquotError, match=r"small\.npz.*pods_42"):
        trace(folder)
    (folder / "openb_sequences" / "small.npz").write_bytes(b"no archive")
    with pytest.raises(AliquotError, match=r"small\.npz"):
        trace(folder)


def test_the_published_lists_read_whole(shared: Path) -> None:
    whole = OpenbTrace(shared / "traces", "default", 42, MODELS)
    assert (len(whole.nodes()), whole.capacity_milli) == (1_213, 6_212_000)
    assert whole.notes == []
    assert len(read_rows(shared / "traces/openb/openb_pod_list_default.csv", ("name",))) == 8_152
