"""Cutting simulated cards: placements, the order that matters, numbers that change, what blocks what."""

from __future__ import annotations

from collections.abc import Iterator
from ctypes import byref
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.drivers.conftest import Simulate
from tests.support.nvml.state import SimulatedNvml


class Cutter:
    """A MIG card as its administrator uses it: profile ids in, instance ids and names out."""

    def __init__(self, nvml: ModuleType, sim: SimulatedNvml) -> None:
        self.nvml, self.sim = nvml, sim
        sim.set_mig(0, enabled=True)
        self.card = nvml.nvmlDeviceGetHandleByIndex(0)
        self.instances: dict[int, Any] = {}

    def create(self, profile: int, start: int | None = None) -> int | None:
        """The id of the new GPU instance, with one compute instance over it; None if there is no room."""
        nvml = self.nvml
        try:
            if start is None:
                made = nvml.nvmlDeviceCreateGpuInstance(self.card, profile)
            else:
                place = nvml.c_nvmlGpuInstancePlacement_t(start, self.size(profile))
                made = nvml.nvmlDeviceCreateGpuInstanceWithPlacement(self.card, profile, byref(place))
        except nvml.NVMLError_InsufficientResources:
            return None
        about = nvml.nvmlGpuInstanceGetInfo(made)
        self.instances[about.id] = made
        whole = {1: 0, 2: 1, 3: 2, 4: 3, 7: 4}[self.slices(profile)]
        if self.slices(profile) == 1 and self.size(profile) == 2:
            whole = nvml.NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE_REV1
        nvml.nvmlGpuInstanceCreateComputeInstance(made, whole)
        return int(about.id)

    def destroy(self, instance: int) -> None:
        made = self.instances.pop(instance)
        self.nvml.nvmlComputeInstanceDestroy(self.nvml.nvmlGpuInstanceGetComputeInstanceById(made, 0))
        self.nvml.nvmlGpuInstanceDestroy(made)

    def taken(self) -> list[int]:
        """Memory units in use, each as often as it is used."""
        found: list[int] = []
        for made in self.instances.values():
            place = self.nvml.nvmlGpuInstanceGetInfo(made).placement
            found += range(place.start, place.start + place.size)
        return sorted(found)

    def start_of(self, instance: int) -> int:
        return int(self.nvml.nvmlGpuInstanceGetInfo(self.instances[instance]).placement.start)

    def devices(self) -> list[tuple[str, str]]:
        """(profile, UUID) of the MIG devices in the order of their numbers."""
        found = []
        for number in range(self.nvml.nvmlDeviceGetMaxMigDeviceCount(self.card)):
            try:
                device = self.nvml.nvmlDeviceGetMigDeviceHandleByIndex(self.card, number)
            except self.nvml.NVMLError_NotFound:
                break
            name = self.nvml.nvmlDeviceGetName(device).partition(" MIG ")[2]
            found.append((name, self.nvml.nvmlDeviceGetUUID(device)))
        return found

    def free(self, profile: int) -> int:
        return int(self.nvml.nvmlDeviceGetGpuInstanceRemainingCapacity(self.card, profile))

    def size(self, profile: int) -> int:
        return int(self._row(profile).size)

    def slices(self, profile: int) -> int:
        return int(self._row(profile).compute_slices)

    def _row(self, profile: int) -> Any:
        rows = self.sim.state.device[0].profile
        return next(row for row in rows if row.name and row.id == profile)


@pytest.fixture
def cutter(simulate: Simulate, pynvml: ModuleType, request: pytest.FixtureRequest) -> Iterator[Cutter]:
    sim = simulate(getattr(request, "param", "a100-40"))
    pynvml.nvmlInit()
    yield Cutter(pynvml, sim)
    pynvml.nvmlShutdown()


def test_small_slices_first_leave_no_room_for_a_large_one(cutter: Cutter) -> None:
    assert [cutter.create(profile) is not None for profile in (19, 19, 14, 9)] == [True, True, True, False]


def test_the_large_slice_first_leaves_room_for_all(cutter: Cutter) -> None:
    assert [cutter.create(profile) is not None for profile in (9, 14, 19, 19)] == [True] * 4


def test_an_unplaced_slice_goes_where_it_spoils_least(cutter: Cutter) -> None:
    made = [cutter.create(19) for _ in range(2)]
    assert [cutter.start_of(instance) for instance in made if instance is not None] == [6, 4]


def test_holes_decide_what_still_fits(cutter: Cutter) -> None:
    for start in (0, 1, 5):
        cutter.create(19, start)
    assert {profile: cutter.free(profile) for profile in (9, 5, 0, 14, 15, 19)} == {
        9: 0, 5: 0, 0: 0, 14: 1, 15: 2, 19: 4
    }  # fmt: skip  # a table reads by rows
    assert cutter.create(14, 4) is None
    assert cutter.create(14, 2) is not None


def test_a_slice_is_taken_only_at_a_start_of_its_own(cutter: Cutter) -> None:
    with pytest.raises(cutter.nvml.NVMLError_InvalidArgument):
        cutter.create(14, 1)


def test_media_engines_go_to_one_slice_only(cutter: Cutter) -> None:
    assert cutter.create(20) is not None
    assert cutter.create(20) is None


@pytest.mark.parametrize("cutter", ["a30x2"], indirect=True)
def test_a_new_larger_slice_renumbers_the_older_ones_and_keeps_their_names(cutter: Cutter) -> None:
    cutter.create(14, 0)
    cutter.create(14, 1)
    before = cutter.devices()
    cutter.create(5, 2)
    after = cutter.devices()
    assert [name for name, _ in before] == ["1g.6gb", "1g.6gb"]
    assert [name for name, _ in after] == ["2g.12gb", "1g.6gb", "1g.6gb"]
    assert after[1:] == before


def test_instance_ids_follow_the_chip_not_the_start(cutter: Cutter) -> None:
    cutter.sim.set_card(0, mig_rotation=4)
    assert [cutter.create(5, 0), cutter.create(14, 4), cutter.create(19, 6)] == [2, 3, 9]


def test_seven_and_no_more(cutter: Cutter) -> None:
    assert [cutter.create(19) is not None for _ in range(8)] == [True] * 7 + [False]
    assert len({uuid for _, uuid in cutter.devices()}) == 7


def test_a_slice_in_use_is_not_destroyed(cutter: Cutter) -> None:
    instance = cutter.create(9)
    assert instance is not None
    nvml, made = cutter.nvml, cutter.instances[instance]
    compute = nvml.nvmlGpuInstanceGetComputeInstanceById(made, 0)
    with pytest.raises(nvml.NVMLError_InUse):
        nvml.nvmlGpuInstanceDestroy(made)
    cutter.sim.add_process(0, 77, memory_mib=100, gi=instance, ci=0)
    with pytest.raises(nvml.NVMLError_InUse):
        nvml.nvmlComputeInstanceDestroy(compute)
    cutter.sim.remove_process(0, 77)
    nvml.nvmlComputeInstanceDestroy(compute)
    nvml.nvmlGpuInstanceDestroy(made)
    assert cutter.devices() == []
    with pytest.raises(nvml.NVMLError_NotFound):
        nvml.nvmlGpuInstanceGetInfo(made)


def test_two_compute_instances_share_the_memory_of_their_slice(cutter: Cutter) -> None:
    nvml = cutter.nvml
    made = nvml.nvmlDeviceCreateGpuInstance(cutter.card, 14)
    for _ in range(2):
        nvml.nvmlGpuInstanceCreateComputeInstance(made, nvml.NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE)
    with pytest.raises(nvml.NVMLError_InsufficientResources):
        nvml.nvmlGpuInstanceCreateComputeInstance(made, nvml.NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE)
    gi = nvml.nvmlGpuInstanceGetInfo(made).id
    cutter.sim.add_process(0, 88, memory_mib=71, gi=gi, ci=1)
    handles = [nvml.nvmlDeviceGetMigDeviceHandleByIndex(cutter.card, number) for number in range(2)]
    assert [name for name, _ in cutter.devices()] == ["1c.2g.10gb"] * 2
    assert [nvml.nvmlDeviceGetMemoryInfo(handle).used >> 20 for handle in handles] == [71, 71]
    assert [len(nvml.nvmlDeviceGetComputeRunningProcesses(handle)) for handle in handles] == [0, 1]
    assert nvml.nvmlDeviceGetAttributes(handles[0]).multiprocessorCount == 14


def test_a_device_is_found_by_both_forms_of_its_name(cutter: Cutter) -> None:
    gi = cutter.create(9)
    (_, uuid), card = cutter.devices()[0], cutter.sim.uuid(0)
    by_uuid = cutter.nvml.nvmlDeviceGetHandleByUUID(uuid)
    by_old_form = cutter.nvml.nvmlDeviceGetHandleByUUID(f"MIG-{card}/{gi}/0")
    assert cutter.nvml.nvmlDeviceGetUUID(by_old_form) == uuid
    assert cutter.nvml.nvmlDeviceGetGpuInstanceId(by_uuid) == gi


@pytest.mark.parametrize(
    ("machine", "after_set", "after_reset", "after_reboot"),
    [
        pytest.param("a100-40", [0, 1], [1, 1], [1, 1], id="Ampere: after a reset, and it stays"),
        pytest.param("dgx-h100", [1, 1], [1, 1], [0, 0], id="Hopper: at once, and it does not"),
    ],
)
def test_mode_changes_when_the_card_allows_it(
    simulate: Simulate,
    pynvml: ModuleType,
    machine: str,
    after_set: list[int],
    after_reset: list[int],
    after_reboot: list[int],
) -> None:
    sim = simulate(machine)
    pynvml.nvmlInit()
    card = pynvml.nvmlDeviceGetHandleByIndex(0)
    pynvml.nvmlDeviceSetMigMode(card, 1)
    seen = [list(pynvml.nvmlDeviceGetMigMode(card))]
    sim.reset(0)
    seen.append(list(pynvml.nvmlDeviceGetMigMode(card)))
    sim.reboot()
    seen.append(list(pynvml.nvmlDeviceGetMigMode(card)))
    pynvml.nvmlShutdown()
    assert seen == [after_set, after_reset, after_reboot]


def test_a_card_in_use_keeps_its_mode(simulate: Simulate, pynvml: ModuleType) -> None:
    sim = simulate("a100-40")
    pynvml.nvmlInit()
    sim.add_process(0, 5, memory_mib=1)
    with pytest.raises(pynvml.NVMLError_InUse):
        pynvml.nvmlDeviceSetMigMode(pynvml.nvmlDeviceGetHandleByIndex(0), 1)
    pynvml.nvmlShutdown()


def test_without_permission_nothing_is_cut(cutter: Cutter) -> None:
    with cutter.sim.edit() as state:
        state.privileged = 0
    with pytest.raises(cutter.nvml.NVMLError_NoPermission):
        cutter.create(19)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.one_of(st.sampled_from([0, 5, 9, 14, 15, 19, 20]), st.none()), max_size=14))
def test_no_sequence_of_cuts_breaks_the_card(cutter: Cutter, steps: list[int | None]) -> None:
    for profile in steps:
        if profile is None:
            if cutter.instances:
                cutter.destroy(min(cutter.instances))
            continue
        promised = cutter.free(profile)
        assert (cutter.create(profile) is not None) == (promised > 0)
        assert len(set(cutter.taken())) == len(cutter.taken())
        assert len(cutter.devices()) == len(cutter.instances)
    while cutter.instances:
        cutter.destroy(min(cutter.instances))
    assert cutter.free(19) == 7
