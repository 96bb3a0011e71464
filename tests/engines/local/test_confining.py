"""Where a member was placed confines it to the cores beside its cards and keeps it off the others'."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from aliquot.core.grants import Placement
from aliquot.core.ids import CardId
from aliquot.core.slices import Vector
from aliquot.engines.local.confining import Grounds, confine, find_lapses, read_grounds
from aliquot.engines.local.payload import Limits
from tests.support.build import a_node, a_placement

NODE = a_node("n", 2)
FIRST, SECOND = (card.uuid for card in NODE.cards)
HOST = Grounds(
    cpus={0: "0-31", 1: "32-63"},
    numa={FIRST: 0, SECOND: 1},
    devices={FIRST: "/dev/nvidia0", SECOND: "/dev/nvidia1"},
)


def on(*cards: int) -> Placement:
    return a_placement(NODE, list(cards))


@pytest.mark.parametrize(
    ("placement", "cpus", "mems"),
    [
        pytest.param(on(0), "0-31", "0", id="beside its card"),
        pytest.param(on(1), "32-63", "1", id="beside the other"),
        pytest.param(on(0, 1), "0-31,32-63", "0,1", id="beside both"),
        pytest.param(on(), None, None, id="no card, no place"),
        pytest.param(replace(on(0), numa=((1, 4000, 100),)), "32-63", "1", id="where its cores were booked"),
    ],
)
def test_cores_and_memory_follow_the_cards(placement: Placement, cpus: str | None, mems: str | None) -> None:
    limits = confine(Limits(), placement, HOST)
    assert (limits.cpus, limits.mems) == (cpus, mems)


def test_cards_that_are_not_its_own_are_denied() -> None:
    assert confine(Limits(), on(1), HOST).denied_devices == ("/dev/nvidia0",)
    assert confine(Limits(), on(), HOST).denied_devices == ("/dev/nvidia0", "/dev/nvidia1")
    assert confine(Limits(), on(0, 1), HOST).denied_devices == ()


def test_what_the_host_cannot_enforce_is_not_asked_for() -> None:
    assert confine(Limits(), on(0), HOST, {"cpuset", "devices"}) == Limits()


def test_one_numa_node_and_unknown_ones_bind_nobody() -> None:
    single = HOST._replace(cpus={0: "0-63"}, devices={})
    unknown = HOST._replace(numa={}, devices={})
    assert confine(Limits(), on(0), single) == confine(Limits(), on(0), unknown) == Limits()


def test_other_limits_stay() -> None:
    limits = confine(Limits(memory_mib=100, pids=5), on(0), HOST)
    assert (limits.memory_mib, limits.pids) == (100, 5)


def test_the_host_is_read_from_the_kernels_tree(tmp_path: Path) -> None:
    for node, listed in ((0, "0-3\n"), (1, "4-7\n"), (2, "\n")):
        folder = tmp_path / f"sys/devices/system/node/node{node}"
        folder.mkdir(parents=True)
        (folder / "cpulist").write_text(listed)
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/nvidia0").symlink_to("/dev/null")
    card, other = CardId("a"), CardId("b")
    found = read_grounds(tmp_path, {card: 1, other: None}, {card: 0, other: 1})
    assert found == Grounds({0: "0-3", 1: "4-7"}, {card: 1}, {card: "/dev/nvidia0"})


LIMITED = Limits(memory_mib=2048, cpu_milli=1500)
SLICE = replace(on(0), vector=Vector(500, 8192, 500), whole=False)


@pytest.mark.parametrize(
    ("limits", "placement", "missing", "said"),
    [
        pytest.param(LIMITED, on(0), {}, [], id="a host that has it all"),
        pytest.param(
            LIMITED,
            on(0),
            {"memory": "no hierarchy carries it", "devices": "version 2 has no list of devices"},
            [
                "at most 2 GiB of host memory: no hierarchy carries it",
                "no access to other cards' device files: version 2 has no list of devices",
            ],
            id="controls that the host lacks",
        ),
        pytest.param(Limits(), on(), {"memory": "x", "cpuset": "y", "devices": "z"}, [], id="nothing asked"),
        pytest.param(LIMITED, None, {"cpu": "x"}, ["at most 1.5 cores: x"], id="not placed yet"),
        pytest.param(
            Limits(),
            SLICE,
            {},
            ["50 % of a card's compute: booked, and nothing holds the job to it"],
            id="slice",
        ),
    ],
)
def test_what_is_not_in_force_is_said_with_its_reason(
    limits: Limits, placement: Placement | None, missing: dict[str, str], said: list[str]
) -> None:
    assert find_lapses(limits, placement, HOST, missing) == said


def test_without_root_nothing_is_in_force() -> None:
    lapses = find_lapses(LIMITED, on(0), HOST, None)
    assert len(lapses) == 4
    assert all(lapse.endswith("the service was not started by root") for lapse in lapses)
