"""The inventory over NVML: what it reads, what it says when something is wrong, what it never concludes."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from ctypes import byref
from pathlib import Path
from types import ModuleType

import pytest

from aliquot.core.errors import PermanentError, TemporaryError
from aliquot.core.ids import CardId, NodeId, SiteId
from aliquot.core.inventory import CardModel
from aliquot.core.topology.links import Link
from aliquot.core.topology.wiring import Fabric
from aliquot.drivers import nvml as drivers
from aliquot.drivers.nvml import Absent, Failed, Found, NvmlInventory
from aliquot.drivers.nvml.readings import ComputeMode, Detection, NoticeKind, ProcessKind
from tests.drivers.conftest import ROOT, Simulate
from tests.support.nvml.kernel import KernelTree
from tests.support.nvml.state import SimulatedNvml

NODE = NodeId(SiteId(""), "server")
Open = Callable[..., NvmlInventory]


@pytest.fixture
def tree(tmp_path: Path) -> KernelTree:
    """A host of eight NUMA nodes, so that every simulated card has its place."""
    return KernelTree(tmp_path).host([(f"{16 * i}-{16 * i + 15}", 64) for i in range(8)])


@pytest.fixture
def inventory(tree: KernelTree, models: dict[str, CardModel]) -> Iterator[NvmlInventory]:
    opened = NvmlInventory(NODE, models, tree.root)
    yield opened
    opened.close()


def found(detection: Detection) -> Found:
    assert isinstance(detection, Found), detection
    return detection


def kinds(detection: Detection) -> list[NoticeKind]:
    return [notice.kind for notice in found(detection).notices]


def test_eight_cards_become_a_node_without_a_doubt(simulate: Simulate, inventory: NvmlInventory) -> None:
    sim = simulate("a100-40x8")
    seen = found(inventory.detect())
    node = seen.node
    assert seen.notices == ()
    assert (node.id, node.cpu_milli, node.host_mib, len(node.numa)) == (NODE, 128_000, 512 * 1024, 8)
    assert [card.uuid for card in node.cards] == [sim.uuid(i) for i in range(8)]
    assert [card.numa for card in node.cards] == [3, 3, 1, 1, 7, 7, 5, 5]
    assert {(card.model.name, card.model.usable_mib) for card in node.cards} == {
        ("A100-SXM4-40GB", 40960 - 613)
    }
    assert node.cards[0].model.flops_of("bf16") == 312_000
    assert (seen.driver, seen.cuda) == ("580.95.05", "13.0")


def test_switched_nvlinks_join_every_pair(simulate: Simulate, inventory: NvmlInventory) -> None:
    simulate("a100-40x8")
    wiring = found(inventory.detect()).node.wiring
    assert wiring is not None
    assert (wiring.fabric, wiring.nvlinks(0, 7), wiring.gen) == (Fabric.UNIFORM, 12, 4)
    assert wiring.cpus[0] == ((48, 63), (176, 191))
    assert wiring.domains == (0, 0, 1, 1, 2, 2, 3, 3)


def test_straight_nvlinks_join_the_pairs_they_join(simulate: Simulate, inventory: NvmlInventory) -> None:
    simulate("v100-cube")
    wiring = found(inventory.detect()).node.wiring
    assert wiring is not None
    assert wiring.fabric is Fabric.PARTIAL
    assert [wiring.nvlinks(0, card) for card in range(8)] == [0, 1, 1, 2, 2, 0, 0, 0]
    assert wiring.level(0, 5) is Link.SYS


def test_a_broken_link_is_counted_out_and_told(simulate: Simulate, inventory: NvmlInventory) -> None:
    sim = simulate("a100-40x8")
    sim.break_link(2, 4)
    seen = found(inventory.detect())
    assert seen.node.wiring is not None
    assert [seen.node.wiring.nvlinks(2, card) for card in (0, 7)] == [11, 11]
    assert [(notice.kind, notice.card) for notice in seen.notices] == [(NoticeKind.LINKS_UNEVEN, sim.uuid(2))]


def test_unreadable_links_are_unknown_not_none(simulate: Simulate, inventory: NvmlInventory) -> None:
    sim = simulate("a100-40x8")
    sim.inject("nvmlDeviceGetNvLinkState", "UNKNOWN", card=1)
    seen = found(inventory.detect())
    assert seen.node.wiring is not None
    assert not seen.node.wiring.nvlink_known
    assert seen.node.wiring.fabric is Fabric.UNKNOWN
    assert kinds(seen) == [NoticeKind.WIRING_UNKNOWN]


def test_cards_without_nvlink_meet_on_pcie(simulate: Simulate, inventory: NvmlInventory) -> None:
    simulate("l40s-4")
    wiring = found(inventory.detect()).node.wiring
    assert wiring is not None
    assert wiring.nvlink_known
    assert wiring.fabric is Fabric.NONE
    assert (wiring.level(0, 1), wiring.level(1, 2)) == (Link.NODE, Link.SYS)


def test_peers_that_refuse_each_other_are_blocked(simulate: Simulate, inventory: NvmlInventory) -> None:
    simulate("mixed")
    wiring = found(inventory.detect()).node.wiring
    assert wiring is not None
    assert wiring.blocked == (0b11100, 0b11100, 0b10011, 0b10011, 0b01111)


@pytest.mark.parametrize(
    ("symbol", "code", "notice"),
    [
        pytest.param("UUID", "UNKNOWN", NoticeKind.CARD_UNREADABLE, id="no identity: left out"),
        pytest.param("MemoryInfo_v2", "UNKNOWN", NoticeKind.CARD_UNREADABLE, id="no size: left out"),
        pytest.param("ComputeMode", "UNKNOWN", NoticeKind.FACT_UNKNOWN, id="no mode: kept"),
        pytest.param("MigMode", "UNKNOWN", NoticeKind.FACT_UNKNOWN, id="no MIG mode: kept"),
        pytest.param(
            "ComputeRunningProcesses_v3", "NO_PERMISSION", NoticeKind.FACT_UNKNOWN, id="hidden: kept"
        ),
        pytest.param("MemoryInfo_v2", "FUNCTION_NOT_FOUND", NoticeKind.RESERVED_UNKNOWN, id="an old driver"),
    ],
)
def test_what_fails_on_one_card_is_told_of_that_card_and_spares_the_others(
    simulate: Simulate, inventory: NvmlInventory, symbol: str, code: str, notice: NoticeKind
) -> None:
    sim = simulate("l40s-4")
    sim.inject(f"nvmlDeviceGet{symbol}", code, card=2)
    seen = found(inventory.detect())
    kept = notice is not NoticeKind.CARD_UNREADABLE
    assert kinds(seen) == [notice]
    assert (sim.uuid(2) in {card.uuid for card in seen.cards}, seen.lost) == (kept, 0 if kept else 1)
    assert "2" in seen.notices[0].text or sim.uuid(2) in seen.notices[0].text


def test_unknown_processes_are_not_nobody(simulate: Simulate, inventory: NvmlInventory) -> None:
    sim = simulate("l40s-4")
    sim.inject("nvmlDeviceGetComputeRunningProcesses_v3", "NO_PERMISSION", card=0)
    cards = found(inventory.detect()).cards
    assert (cards[0].processes, cards[1].processes) == (None, ())


def test_an_old_driver_lists_processes_in_its_own_form(simulate: Simulate, inventory: NvmlInventory) -> None:
    sim = simulate("t4")
    sim.add_process(0, 12, memory_mib=30)
    for symbol in ("Compute", "Graphics", "MPSCompute"):
        sim.inject(f"nvmlDeviceGet{symbol}RunningProcesses_v3", "FUNCTION_NOT_FOUND")
    processes = found(inventory.detect()).cards[0].processes
    assert processes is not None
    assert [(process.pid, process.memory_mib) for process in processes] == [(12, 30)]


def test_a_process_in_two_lists_is_one_process(simulate: Simulate, inventory: NvmlInventory) -> None:
    sim = simulate("t4")
    sim.add_process(0, 7, memory_mib=100, kind="mps", sm_util=12)
    sim.add_process(0, 8, memory_mib=None)
    sim.add_process(0, 9, memory_mib=50, kind="graphics")
    sim.add_process(0, 9, memory_mib=40, kind="compute")
    inventory.detect()
    processes = inventory.sample(1).cards[0].processes
    assert processes is not None
    assert [(p.pid, p.kind, p.memory_mib, p.sm_percent) for p in processes] == [
        (7, ProcessKind.MPS, 100, 12),
        (8, ProcessKind.COMPUTE, None, None),
        (9, ProcessKind.COMPUTE, 50, None),
    ]


def test_a_card_of_the_hosts_memory_is_told_as_such(simulate: Simulate, inventory: NvmlInventory) -> None:
    sim = simulate("gb10")
    sim.add_process(0, 40, memory_mib=900)
    seen = found(inventory.detect())
    card = seen.cards[0]
    assert (card.unified, card.memory_mib, card.model.memory_mib) == (True, None, 512 * 1024)
    assert kinds(seen) == [NoticeKind.MODEL_UNKNOWN, NoticeKind.UNIFIED_MEMORY]
    assert inventory.sample(0).cards[0].used_mib == 900


def test_prohibited_cards_and_cut_cards_are_not_for_whole_jobs(
    simulate: Simulate, inventory: NvmlInventory
) -> None:
    sim = simulate("a100-40x8")
    sim.set_card(0, compute_mode=ComputeMode.PROHIBITED.value)
    sim.set_mig(1, enabled=True)
    sim.set_card(2, mig_pending=1)
    sim.inject("nvmlDeviceGetMigMode", "UNKNOWN", card=3)
    seen = found(inventory.detect())
    assert seen.not_whole == tuple(sim.uuid(card) for card in range(4))
    assert kinds(seen) == [
        NoticeKind.NOT_USABLE, NoticeKind.NOT_USABLE, NoticeKind.RESET_DUE, NoticeKind.FACT_UNKNOWN
    ]  # fmt: skip  # one line per card


def test_slices_are_read_with_their_places_and_names(
    simulate: Simulate, inventory: NvmlInventory, pynvml: ModuleType
) -> None:
    sim = simulate("a100-40")
    sim.set_mig(0, enabled=True)
    cut_card(pynvml, [(9, 4), (14, 0)])
    mig = found(inventory.detect()).cards[0].mig
    assert mig is not None
    assert mig.instances is not None
    assert [(part.profile, part.start, part.size) for part in mig.instances] == [(14, 0, 2), (9, 4, 4)]
    assert [(device.profile, device.memory_mib, device.sm_count) for device in mig.devices] == [
        ("3g.20gb", 19968, 42)
    ]
    assert mig.devices[0].uuid.startswith("MIG-")


def test_a_user_without_permission_sees_slices_but_not_their_places(
    simulate: Simulate, inventory: NvmlInventory, pynvml: ModuleType
) -> None:
    sim = simulate("a100-40")
    sim.set_mig(0, enabled=True)
    cut_card(pynvml, [(9, 4)])
    sim.inject("nvmlDeviceGetGpuInstances", "NO_PERMISSION")
    mig = found(inventory.detect()).cards[0].mig
    assert mig is not None
    assert (len(mig.devices), mig.instances) == (1, None)


def test_a_fabric_that_is_not_up_is_told(simulate: Simulate, inventory: NvmlInventory) -> None:
    sim = simulate("dgx-h100")
    sim.set_card(4, fabric_state=2)
    assert [(n.kind, n.card) for n in found(inventory.detect()).notices] == [(NoticeKind.FABRIC, sim.uuid(4))]


def test_a_card_on_a_numa_node_that_the_host_lacks_has_none(
    simulate: Simulate, tmp_path: Path, models: dict[str, CardModel]
) -> None:
    simulate("dgx-h100")
    small = KernelTree(tmp_path / "guest").host([("0-7", 32)])
    inventory = NvmlInventory(NODE, models, small.root)
    seen = found(inventory.detect())
    inventory.close()
    assert [card.numa for card in seen.cards] == [0] * 4 + [None] * 4
    assert kinds(seen) == [NoticeKind.FACT_UNKNOWN] * 4


@pytest.mark.parametrize(
    ("trouble", "expected"),
    [
        pytest.param(lambda sim: sim.fail_init("LIB_RM_VERSION_MISMATCH"), Failed, id="updated, no reboot"),
        pytest.param(lambda sim: sim.fail_init("UNKNOWN"), Failed, id="the driver fails"),
        pytest.param(lambda sim: sim.fail_init("DRIVER_NOT_LOADED"), Absent, id="no driver and no card"),
        pytest.param(lambda sim: sim.inject("nvmlDeviceGetCount_v2", "UNKNOWN"), Failed, id="cannot count"),
        pytest.param(lambda sim: [sim.lose(card) for card in range(4)], Failed, id="every card is lost"),
        pytest.param(lambda sim: sim.inject("nvmlDeviceGetName", "UNKNOWN"), Failed, id="none can be read"),
    ],
)
def test_could_not_look_is_never_no_cards(
    simulate: Simulate,
    inventory: NvmlInventory,
    trouble: Callable[[SimulatedNvml], object],
    expected: type[Detection],
) -> None:
    trouble(simulate("l40s-4"))
    assert isinstance(inventory.detect(), expected)


def test_a_card_on_the_bus_without_a_driver_is_a_failure(
    simulate: Simulate, inventory: NvmlInventory, tree: KernelTree
) -> None:
    simulate("t4").fail_init("DRIVER_NOT_LOADED")
    tree.card(("pci0000:00", "0000:00:01.0", "0000:01:00.0"))
    seen = inventory.detect()
    assert isinstance(seen, Failed)
    assert "0000:01:00.0" in seen.reason


def test_a_card_that_only_the_bus_shows_is_missing(
    simulate: Simulate, inventory: NvmlInventory, tree: KernelTree
) -> None:
    simulate("t4")
    tree.card(("pci0000:00", "0000:00:01.0", "0000:01:00.0")).card(
        ("pci0000:00", "0000:00:02.0", "0000:02:00.0")
    )
    assert [(n.kind, n.card) for n in found(inventory.detect()).notices] == [
        (NoticeKind.CARD_MISSING, "0000:02:00.0")
    ]


def test_it_recovers_when_the_driver_does(simulate: Simulate, inventory: NvmlInventory) -> None:
    sim = simulate("t4")
    sim.fail_init("UNKNOWN")
    first = inventory.detect()
    sim.fail_init(None)
    assert isinstance(first, Failed)
    assert first.retry_after_ms == 5000
    assert found(inventory.detect()).cards[0].uuid == sim.uuid(0)


def test_a_machine_without_the_library_is_absent_and_says_what_is_missing(tmp_path: Path) -> None:
    KernelTree(tmp_path).host([("0-3", 8)])
    code = (
        "from pathlib import Path; from aliquot.drivers.nvml import NvmlInventory\n"
        "from aliquot.core.ids import NodeId, SiteId\n"
        f"print(NvmlInventory(NodeId(SiteId(''), 'n'), {{}}, Path({str(tmp_path)!r})).detect())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(ROOT / "src"), "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("Absent(")
    assert "libnvidia-ml.so.1" in done.stdout


@pytest.mark.parametrize(
    ("code", "kind", "retry"),
    [
        pytest.param("IN_USE", TemporaryError, 5000, id="in use now"),
        pytest.param("NO_PERMISSION", PermanentError, None, id="not permitted"),
        pytest.param("GPU_IS_LOST", PermanentError, None, id="lost"),
    ],
)
def test_errors_say_whether_another_try_is_worth_it(
    simulate: Simulate, inventory: NvmlInventory, code: str, kind: type[Exception], retry: int | None
) -> None:
    sim = simulate("t4")
    card = found(inventory.detect()).cards[0].uuid
    sim.inject("nvmlDeviceSetComputeMode", code)
    with pytest.raises(kind, match=card) as caught:
        inventory.set_compute_mode(card, ComputeMode.DEFAULT, ComputeMode.PROHIBITED)
    assert getattr(caught.value, "retry_after_ms", None) == retry


def test_a_fault_of_a_slice_names_the_slice(simulate: Simulate, inventory: NvmlInventory) -> None:
    sim = simulate("a100-40")
    card = found(inventory.detect()).cards[0].uuid
    watch = inventory.watch()
    sim.raise_xid(0, 31, gi=2, ci=0)
    faults = watch.wait(1000)
    watch.close()
    assert [(fault.card, fault.xid, fault.gi, fault.ci) for fault in faults] == [(card, 31, 2, 0)]


CODES = ["UNKNOWN", "NOT_SUPPORTED", "NO_PERMISSION", "FUNCTION_NOT_FOUND", "GPU_IS_LOST", "TIMEOUT"]
SYMBOLS = sorted({
    symbol
    for module in Path(drivers.__path__[0]).glob("*.py")
    for symbol in re.findall(r'"(nvmlDevice\w+)"', module.read_text(encoding="utf-8"))
})  # fmt: skip  # one set


@pytest.mark.parametrize("code", CODES)
def test_whatever_fails_on_one_card_the_others_are_found_and_watched(
    simulate: Simulate, inventory: NvmlInventory, code: str
) -> None:
    sim = simulate("mixed")
    well = {sim.uuid(card) for card in range(5) if card != 1}
    forms = [form for symbol in SYMBOLS for form in (symbol, f"{symbol}_v2", f"{symbol}_v3")]
    for symbol in forms:
        sim.inject(symbol, code, card=1)
        seen = found(inventory.detect())
        assert well <= {card.uuid for card in seen.cards}, symbol
        assert (sim.uuid(1) in {card.uuid for card in seen.cards}) == (seen.lost == 0), symbol
        samples = {card.uuid: card for card in inventory.sample(0).cards}
        assert {samples[card].used_mib for card in map(CardId, well)} == {0}, symbol
        sim.clear_faults()


def test_a_machine_of_more_cards_than_a_node_holds_says_so(
    simulate: Simulate, inventory: NvmlInventory
) -> None:
    simulate("l40s-20")
    seen = found(inventory.detect())
    assert len(seen.node.cards) == len(seen.cards) == 16
    assert NoticeKind.CARDS_LEFT_OUT in kinds(seen)


def test_network_cards_are_as_near_as_the_kernel_shows(
    simulate: Simulate, inventory: NvmlInventory, tree: KernelTree
) -> None:
    simulate("t4")
    tree.card(("pci0000:00", "0000:00:01.0", "0000:01:00.0"), numa=0)  # the address that the card says it has
    tree.rdma("mlx5_0", ("pci0000:00", "0000:00:02.0", "0000:02:00.0"), numa=0)
    tree.rdma("mlx5_1", ("pci0000:80", "0000:80:02.0", "0000:81:00.0"), numa=1)
    wiring = found(inventory.detect()).node.wiring
    assert wiring is not None
    assert [(nic.device, nic.levels) for nic in wiring.nics] == [
        ("mlx5_0", (Link.PHB,)),
        ("mlx5_1", (Link.SYS,)),
    ]


def cut_card(pynvml: ModuleType, parts: list[tuple[int, int]]) -> None:
    """GPU instances (profile, start) on card 0; the first also gets its compute instance."""
    pynvml.nvmlInit()
    card = pynvml.nvmlDeviceGetHandleByIndex(0)
    sizes = {9: 4, 14: 2}
    made = [
        pynvml.nvmlDeviceCreateGpuInstanceWithPlacement(
            card, profile, byref(pynvml.c_nvmlGpuInstancePlacement_t(start, sizes[profile]))
        )
        for profile, start in parts
    ]
    pynvml.nvmlGpuInstanceCreateComputeInstance(made[0], pynvml.NVML_COMPUTE_INSTANCE_PROFILE_3_SLICE)
    pynvml.nvmlShutdown()
