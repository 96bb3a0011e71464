"""Cards as real machines printed them: old drivers, consumer boards and a cut card, read by the inventory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from ctypes import byref
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

from aliquot.core.ids import NodeId, SiteId
from aliquot.core.inventory import CardModel
from aliquot.drivers.nvml import Found, NvmlInventory
from aliquot.drivers.nvml.readings import NoticeKind
from tests.support.nvml.capture import CapturedCard, play_capture, read_capture
from tests.support.nvml.kernel import KernelTree
from tests.support.nvml.state import SimulatedNvml

UNKNOWN_MODEL = NoticeKind.MODEL_UNKNOWN


class Known(NamedTuple):
    """What the inventory must say. `people`: processes listed, None where the driver lists none."""

    usable_mib: int
    serial: bool
    people: int | None
    notices: tuple[NoticeKind, ...] = ()


EXPECTED = {
    "01_t4_515_v11": Known(15360 - 388, True, 2),
    "02_a10g_515_v11": Known(23028 - 435, True, 1),
    "04_rtx3080_595_v13_clocks_event_reasons": Known(10240 - 397, True, 0, (UNKNOWN_MODEL,)),
    "05_gtx1070ti_old_minimal": Known(4096, False, None, (UNKNOWN_MODEL, NoticeKind.RESERVED_UNKNOWN)),
    "06_quadro_p400": Known(1998, True, 0, (UNKNOWN_MODEL, NoticeKind.RESERVED_UNKNOWN)),
    "07_rtx3060_v12": Known(12288 - 368, False, 0, (UNKNOWN_MODEL,)),
}


class Stage:
    """A captured card in place of this machine's own."""

    def __init__(self, stack: ExitStack, folder: Path, root: Path, models: dict[str, CardModel]) -> None:
        self._stack, self._folder, self._root, self._models = stack, folder, root, models

    def show(self, name: str) -> tuple[CapturedCard, SimulatedNvml]:
        card = read_capture((self._folder / f"{name}.xml").read_text(encoding="utf-8"))
        sim = self._stack.enter_context(play_capture(card))
        self._stack.enter_context(sim.here())
        return card, sim

    def detect(self) -> Found:
        inventory = NvmlInventory(NodeId(SiteId(""), "n"), self._models, self._root)
        seen = inventory.detect()
        inventory.close()
        assert isinstance(seen, Found), seen
        return seen


@pytest.fixture
def stage(shared: Path, nvml_library: Path, tmp_path: Path, models: dict[str, CardModel]) -> Iterator[Stage]:
    root = KernelTree(tmp_path).host([("0-7", 32)]).root
    with ExitStack() as stack:
        yield Stage(stack, shared / "captures/xml", root, models)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_captured_card_is_read_as_what_it_was(stage: Stage, name: str) -> None:
    captured, _ = stage.show(name)
    seen, known = stage.detect(), EXPECTED[name]
    card = seen.cards[0]
    assert (card.uuid, card.name, card.memory_mib) == (captured.uuid, captured.name, captured.total_mib)
    assert card.model.usable_mib == known.usable_mib
    assert (card.serial is not None) == known.serial
    assert (None if card.processes is None else len(card.processes)) == known.people
    assert card.mig is None
    assert tuple(notice.kind for notice in seen.notices) == known.notices


def test_a_captured_cut_card_shows_its_four_slices(stage: Stage, pynvml: ModuleType) -> None:
    captured, _ = stage.show("03_a100_mig_535_v12_attached4")
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    for start in range(0, 2 * captured.slices, 2):
        place = pynvml.c_nvmlGpuInstancePlacement_t(start, 2)
        made = pynvml.nvmlDeviceCreateGpuInstanceWithPlacement(handle, 15, byref(place))
        pynvml.nvmlGpuInstanceCreateComputeInstance(made, pynvml.NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE_REV1)
    pynvml.nvmlShutdown()
    seen = stage.detect()
    mig = seen.cards[0].mig
    assert mig is not None
    assert [(part.gi, part.profile, part.memory_mib, part.sm_count) for part in mig.devices] == [
        (gi, "1g.20gb", 19968, 14) for gi in (3, 4, 5, 6)
    ]
    assert seen.not_whole == (captured.uuid,)
