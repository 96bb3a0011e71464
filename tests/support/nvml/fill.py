"""Writes a described machine into a blank state, field by field."""

from __future__ import annotations

import ctypes
from typing import Any

from tests.support.nvml.cuts import CUTS
from tests.support.nvml.layout import CONSTANTS, NA64
from tests.support.nvml.machines import BOARDS, MIB, SWITCH, Board, Machine, Place


def set_fields(target: Any, fields: dict[str, object]) -> None:
    """Assign by name, as the structure needs it. AttributeError for a field that is not there."""
    kinds = dict(target._fields_)
    for name, value in fields.items():
        if name not in kinds:
            raise AttributeError(f"no field {name!r} in {type(target).__name__}")
        if isinstance(value, str):
            setattr(target, name, value.encode())
        elif isinstance(value, (list, tuple)):
            for i, item in enumerate(value):
                getattr(target, name)[i] = item
        elif value is None:
            setattr(target, name, (1 << 8 * ctypes.sizeof(kinds[name])) - 1)
        else:
            setattr(target, name, value)


def fill_state(state: Any, machine: Machine) -> None:
    """Write a described machine into a blank state."""
    state.driver_version, state.nvml_version = machine.driver.encode(), f"13.{machine.driver}".encode()
    state.cuda_version, state.privileged, state.devices = machine.cuda, 1, len(machine.places)
    for i, place in enumerate(machine.places):
        board = BOARDS[place.board] if isinstance(place.board, str) else place.board
        set_fields(state.device[i], place_fields(i, place, board, machine))
        fill_cuts(state.device[i], board)
        fill_links(state.device[i], machine, i)
        for j in range(len(machine.places)):
            state.level[i][j] = 0 if i == j else machine.level(i, j)
            state.peer[i][j] = machine.peers(i, j)


def place_fields(position: int, place: Place, board: Board, machine: Machine) -> dict[str, object]:
    """The fields of one card."""
    shutdown, slowdown, most = board.temperatures
    pages = 0 if board.architecture < 7 else None  # taken out of use before Ampere, rows remapped since
    return {
        "name": board.name, "uuid": place.uuid, "serial": f"13240{position:08d}" if board.serial else "",
        "part_number": "900-00000-0000-000", "bus_id": f"{place.domain:08X}:{place.bus:02X}:00.0",
        "domain": place.domain, "bus": place.bus, "slot": 0, "pci_device_id": board.pci_device_id,
        "pci_subsystem_id": 0x100010DE, "minor": position, "module": position, "board": place.bus << 8,
        "brand": board.brand, "architecture": board.architecture, "capability_major": board.capability[0],
        "capability_minor": board.capability[1], "cores": board.cores, "bus_width": 5120, "numa": place.numa,
        "own_numa": None,
        "cpus": cpu_words(place.cpus), "memory_total": board.memory_mib * MIB,
        "memory_reserved": board.reserved_mib * MIB, "memory_base_used": 0,
        "bar1_total": None if board.unified else 1 << 36, "unified": int(board.unified), "compute_mode": 0,
        "persistence": 1, "gpu_util": 0, "memory_util": 0, "temperature": 34,
        "memory_temperature": None if board.name.startswith("Tesla") else 32,
        "shutdown_temperature": shutdown,
        "slowdown_temperature": slowdown, "max_temperature": most, "fan": None,
        "power_mw": board.power_w * 130, "power_limit_mw": board.power_w * 1000,
        "power_default_mw": board.power_w * 1000, "power_least_mw": board.power_w * 250,
        "power_most_mw": board.power_w * 1000, "energy_mj": 1000, "performance": 0,
        "clocks": [210, 210, 1215, 1155], "max_clocks": [1410, 1410, 1215, 1290], "throttle": 1,
        "pcie_generation": board.pcie, "pcie_max_generation": board.pcie,
        "pcie_width": 16, "pcie_max_width": 16,
        "ecc_current": 1 if board.ecc else None, "ecc_pending": 1 if board.ecc else None,
        "retired_single": pages, "retired_double": pages, "retired_pending": pages,
        "remapped_corrected": 0 if pages is None and board.ecc else None,
        "recovery_action": 0, "fabric_state": 3 if machine.fabric else None,
        "c2c": 1 if board.unified else None,
        "mig_current": 0 if board.cut else None, "mig_pending": 0 if board.cut else None,
        "mig_change": CONSTANTS["SIM_MIG_AT_ONCE" if board.resetless else "SIM_MIG_NEEDS_RESET"],
    }  # fmt: skip  # a table reads by rows


def fill_cuts(device: Any, board: Board) -> None:
    """The card's MIG profiles."""
    if not board.cut:
        return
    cuts = CUTS[board.cut]
    device.mig_units, device.mig_slices, device.profiles = cuts.units, cuts.slices, len(cuts.profiles)
    for row, cut in zip(device.profile, cuts.profiles, strict=False):
        copy, decode, encode, jpeg, flow = cut.engines
        fields: dict[str, object] = {
            "name": cut.name, "id": cut.id, "enumeration": cut.enumeration, "compute_slices": cut.slices,
            "size": cut.size, "memory_mib": cut.memory_mib, "sm_count": cut.sm_count, "copy_engines": copy,
            "decoders": decode, "encoders": encode, "jpeg": jpeg, "ofa": flow, "max_instances": cut.most,
            "media_extension": int(cut.name.endswith("+me")), "placements": len(cut.starts),
            "starts": cut.starts,
        }  # fmt: skip  # a table reads by rows
        set_fields(row, fields)


def fill_links(device: Any, machine: Machine, position: int) -> None:
    """The card's NVLinks."""
    ends = machine.links[position] if machine.links else ()
    for link, end in zip(device.link, ends, strict=False):
        link.state = CONSTANTS["SIM_LINK_DOWN" if end is None else "SIM_LINK_ACTIVE"]
        link.remote = far_end(end)
        link.version, link.speed_mbps = machine.link_version, machine.link_mbps


def far_end(end: int | str | None) -> int:
    """A card by its position, a switch, or nobody knows."""
    if isinstance(end, int):
        return end
    return CONSTANTS["SIM_TO_SWITCH" if end == SWITCH else "SIM_TO_UNKNOWN"]


def cpu_words(ranges: tuple[tuple[int, int], ...]) -> list[int]:
    """CPUs as 64-bit words, lowest first."""
    mask = sum(1 << cpu for first, last in ranges for cpu in range(first, last + 1))
    return [mask >> 64 * word & NA64 for word in range(16)]
