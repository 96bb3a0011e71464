"""How a card is cut right now: MIG mode, GPU instances with their places, and the devices CUDA can use.

Reading only. Cuts are found by their UUIDs and instance ids, never by the position among the card's devices:
that changes whenever a slice is made or destroyed.
"""

from __future__ import annotations

from ctypes import byref, c_uint
from typing import Any, Final

from aliquot.drivers.nvml.answers import NotPermittedError, NotThereError
from aliquot.drivers.nvml.binding import Nvml
from aliquot.drivers.nvml.readings import GpuInstance, MigDevice, MigState

_NAME_MARK: Final = " MIG "


def read_mig(nvml: Nvml, handle: Any, card: str) -> MigState | None:
    """None for a card that cannot be cut. Raises DriverError."""
    modes = nvml.ask("nvmlDeviceGetMigMode", handle, card=card)
    if modes is None:
        return None
    enabled, pending = (bool(mode) for mode in modes)
    if not enabled:
        return MigState(enabled, pending)
    return MigState(enabled, pending, _read_devices(nvml, handle, card), _read_instances(nvml, handle, card))


def _read_devices(nvml: Nvml, handle: Any, card: str) -> tuple[MigDevice, ...]:
    """By GPU and compute instance. A slice that vanishes while we look is left out."""
    most = nvml.ask("nvmlDeviceGetMaxMigDeviceCount", handle, card=card) or 0
    found = []
    for position in range(int(most)):
        try:
            device = nvml.call("nvmlDeviceGetMigDeviceHandleByIndex", handle, position, card=card)
            found.append(_read_device(nvml, device, card))
        except NotThereError:
            continue
    return tuple(sorted(found, key=lambda device: (device.gi, device.ci)))


def _read_device(nvml: Nvml, device: Any, card: str) -> MigDevice:
    name = nvml.ask("nvmlDeviceGetName", device, card=card)
    about = nvml.ask("nvmlDeviceGetAttributes", device, card=card)
    return MigDevice(
        uuid=str(nvml.call("nvmlDeviceGetUUID", device, card=card)),
        gi=int(nvml.call("nvmlDeviceGetGpuInstanceId", device, card=card)),
        ci=int(nvml.call("nvmlDeviceGetComputeInstanceId", device, card=card)),
        profile=name.partition(_NAME_MARK)[2] or None if name else None,
        memory_mib=None if about is None else int(about.memorySizeMB),
        sm_count=None if about is None else int(about.multiprocessorCount),
        compute_slices=None if about is None else int(about.computeInstanceSliceCount),
    )


def _read_instances(nvml: Nvml, handle: Any, card: str) -> tuple[GpuInstance, ...] | None:
    """All cuts, those without a device too; None where this user may not look."""
    found = []
    for profile in range(int(nvml.binding.NVML_GPU_INSTANCE_PROFILE_COUNT)):
        try:
            about = nvml.ask("nvmlDeviceGetGpuInstanceProfileInfo", handle, profile, card=card)
            if about is not None:
                found += _of_profile(nvml, handle, int(about.id), int(about.instanceCount), card)
        except NotPermittedError:
            return None
    return tuple(sorted(found, key=lambda instance: instance.start))


def _of_profile(nvml: Nvml, handle: Any, profile: int, most: int, card: str) -> list[GpuInstance]:
    array = (nvml.binding.c_nvmlGpuInstance_t * max(most, 1))()
    count = c_uint(most)
    nvml.call("nvmlDeviceGetGpuInstances", handle, profile, array, byref(count), card=card)
    found = []
    for position in range(count.value):
        about = nvml.call("nvmlGpuInstanceGetInfo", array[position], card=card)
        found.append(
            GpuInstance(
                int(about.id), int(about.profileId), int(about.placement.start), int(about.placement.size)
            )
        )
    return found
