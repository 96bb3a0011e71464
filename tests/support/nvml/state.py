"""Builds and edits the machine behind the simulated NVML, while any number of processes look at it.

    with SimulatedNvml("a100-40x8") as sim:
        subprocess.run([...], env=sim.env())            # sees eight cards
        sim.add_process(0, os.getpid(), memory_mib=900)  # and now somebody on card 0

Every edit holds the lock that the library's calls take. `here()` lets this very process see the machine too:
the library is already loaded under the name that pynvml asks for.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from tests.support.nvml.build import build_library
from tests.support.nvml.fill import fill_state, set_fields
from tests.support.nvml.layout import CONSTANTS, NA, NA64, State
from tests.support.nvml.machines import MIB, Machine, find_machine

VARIABLE: Final = "ALIQUOT_NVML_STATE"
XID: Final = 8  # nvmlEventTypeXidCriticalError
KINDS: Final = {
    "compute": CONSTANTS["SIM_COMPUTE"],
    "graphics": CONSTANTS["SIM_GRAPHICS"],
    "mps": CONSTANTS["SIM_MPS"],
}
CODES: Final = {
    "NOT_SUPPORTED": 3, "NO_PERMISSION": 4, "NOT_FOUND": 6, "DRIVER_NOT_LOADED": 9, "TIMEOUT": 10,
    "FUNCTION_NOT_FOUND": 13,
    "GPU_IS_LOST": 15, "RESET_REQUIRED": 16, "LIB_RM_VERSION_MISMATCH": 18, "IN_USE": 19, "MEMORY": 20,
    "NO_DATA": 21, "INSUFFICIENT_RESOURCES": 23, "GPU_NOT_FOUND": 28, "UNKNOWN": 999,
}  # fmt: skip  # a table reads by rows


class SimulatedNvml:
    """A machine in a state file. `machine` is a name of `machines.MACHINES` or a description of one's own.

    With `path` of an existing file and no machine it joins the machine that is there. As a context it removes
    the file it made.
    """

    def __init__(self, machine: str | Machine | None = None, *, path: Path | None = None) -> None:
        self.library = build_library()
        self._native = load_native(self.library)
        self._folder = None if path else tempfile.TemporaryDirectory(prefix="aliquot-nvml-")
        self.path = path or Path(self._folder.name if self._folder else "") / "state"
        self._open(fresh=machine is not None)
        if machine is not None:
            self._native.sim_format(self._address)
            with self.edit():
                fill_state(self.state, find_machine(machine) if isinstance(machine, str) else machine)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def env(self, **more: str) -> dict[str, str]:
        """An environment in which `libnvidia-ml.so.1` is this library and shows this machine."""
        paths = [str(self.library.parent), os.environ.get("LD_LIBRARY_PATH", "")]
        return {
            **os.environ,
            "LD_LIBRARY_PATH": ":".join(filter(None, paths)),
            VARIABLE: str(self.path),
            **more,
        }

    @contextmanager
    def here(self) -> Iterator[Self]:
        """This process sees the machine too, through pynvml or any other caller of NVML, until the end."""
        before = os.environ.get(VARIABLE)
        os.environ[VARIABLE] = str(self.path)
        try:
            yield self
        finally:
            os.environ.pop(VARIABLE) if before is None else os.environ.update({VARIABLE: before})

    @contextmanager
    def edit(self) -> Iterator[Any]:
        """The state with the lock held; never call NVML in this process meanwhile."""
        self._native.sim_lock(self._address)
        try:
            yield self.state
        finally:
            self._native.sim_unlock(self._address)

    # -- cards -----------------------------------------------------------------------------------------

    def uuid(self, card: int) -> str:
        """The UUID of card number `card`."""
        return str(self.state.device[card].uuid.decode())

    def set_card(self, card: int, **fields: object) -> None:
        """Set fields of `struct sim_device` by name; None is "not reported", text and lists are copied."""
        with self.edit() as state:
            set_fields(state.device[card], fields)

    def use_memory(self, card: int, mib: int) -> None:
        """Memory in use that belongs to nobody's process."""
        self.set_card(card, memory_base_used=mib * MIB)

    def lose(self, card: int, *, xid: int = 79) -> None:
        """The card falls off the bus: the Xid first, then every call on it fails."""
        with self.edit() as state:
            state.device[card].lost = 1
            self._post(card, XID, xid)

    def find_again(self, card: int) -> None:
        """The card is back, as after a reset."""
        self.set_card(card, lost=0)

    def reset(self, card: int) -> None:
        """A reset: instances are gone, a pending MIG mode is in force."""
        with self.edit():
            self._native.sim_reset_card(self._address, card)

    def reboot(self) -> None:
        """A reboot: instances, processes and injected errors are gone; MIG mode stays where it is kept."""
        with self.edit() as state:
            for card in range(state.devices):
                device = state.device[card]
                self._native.sim_reset_card(self._address, card)
                ctypes.memset(ctypes.byref(device.process), 0, ctypes.sizeof(device.process))
                if device.mig_change == CONSTANTS["SIM_MIG_AT_ONCE"] and device.mig_current != NA:
                    device.mig_current = device.mig_pending = 0
                device.lost = 0
                device.mig_salt += 1
            state.faults = 0

    def set_mig(self, card: int, enabled: bool) -> None:
        """MIG mode as if it had been set and the card reset."""
        self.set_card(card, mig_current=int(enabled), mig_pending=int(enabled))

    def break_link(self, card: int, number: int) -> None:
        """One NVLink is down; the far end does not notice."""
        with self.edit() as state:
            state.device[card].link[number].state = CONSTANTS["SIM_LINK_DOWN"]

    # -- processes -------------------------------------------------------------------------------------

    def add_process(
        self,
        card: int,
        pid: int,
        *,
        memory_mib: int | None,
        kind: str = "compute",
        gi: int | None = None,
        ci: int | None = None,
        sm_util: int | None = None,
        memory_util: int = 0,
        follow: bool = False,
    ) -> None:
        """Somebody uses a card. Memory None is "not reported"; `follow` ends it with the real process."""
        with self.edit() as state:
            row = next(row for row in state.device[card].process if row.pid == 0)
            row.kind, row.memory = KINDS[kind], NA64 if memory_mib is None else memory_mib * MIB
            row.gi, row.ci = NA if gi is None else gi, NA if ci is None else ci
            row.sm_util, row.memory_util = NA if sm_util is None else sm_util, memory_util
            row.follow, row.sampled_us, row.pid = int(follow), 0, pid

    def set_process(self, card: int, pid: int, *, memory_mib: int) -> None:
        """Another amount of memory for a process that is there; KeyError where it is not."""
        with self.edit() as state:
            self._row(state, card, pid).memory = memory_mib * MIB

    def remove_process(self, card: int, pid: int) -> None:
        """A process has left; KeyError where it is not there."""
        with self.edit() as state:
            row = self._row(state, card, pid)
            ctypes.memset(ctypes.byref(row), 0, ctypes.sizeof(row))

    # -- trouble ---------------------------------------------------------------------------------------

    def raise_xid(self, card: int, code: int, *, gi: int | None = None, ci: int | None = None) -> None:
        """Every event set that waits for Xids of this card gets one."""
        with self.edit():
            self._post(card, XID, code, NA if gi is None else gi, NA if ci is None else ci)

    def inject(
        self,
        symbol: str,
        code: str | None,
        *,
        card: int | None = None,
        skip: int = 0,
        times: int | None = None,
        delay_ms: int = 0,
    ) -> None:
        """Let `symbol` ("*": any) answer `code` of CODES for `times` calls after the first `skip`.

        Without a card it strikes all; a code of None only delays. Calls on no card (counting, finding by
        UUID) are struck only where no card is given.
        """
        with self.edit() as state:
            free = next(i for i, fault in enumerate(state.fault) if not fault.symbol or i >= state.faults)
            fault = state.fault[free]
            fault.symbol = symbol.encode()
            fault.device, fault.code = -1 if card is None else card, CODES[code] if code else 0
            fault.skip, fault.left, fault.delay_ms, fault.hits = (
                skip,
                -1 if times is None else times,
                delay_ms,
                0,
            )
            state.faults = max(state.faults, free + 1)

    def clear_faults(self) -> None:
        """No injected error any more."""
        with self.edit() as state:
            ctypes.memset(ctypes.byref(state.fault), 0, ctypes.sizeof(state.fault))
            state.faults = 0

    def fail_init(self, code: str | None) -> None:
        """`nvmlInit` answers `code`, or works again."""
        with self.edit() as state:
            state.init_error = CODES[code] if code else 0

    def calls(self) -> int:
        """Calls answered so far, over all processes."""
        return int(self.state.calls)

    # -- inside ----------------------------------------------------------------------------------------

    def _open(self, *, fresh: bool) -> None:
        size = ctypes.sizeof(State)
        if size != self._native.sim_state_size():
            raise RuntimeError("layout.py reads state.h otherwise than the compiler")
        with self.path.open("w+b" if fresh else "r+b") as file:
            if fresh:
                file.truncate(size)
            self._map = mmap.mmap(file.fileno(), size)
        self.state = State.from_buffer(self._map)
        self._address = ctypes.addressof(self.state)

    def _post(self, card: int, kind: int, value: int, gi: int = NA, ci: int = NA) -> None:
        self._native.sim_post(self._address, card, kind, value, gi, ci)

    def _row(self, state: Any, card: int, pid: int) -> Any:
        for row in state.device[card].process:
            if row.pid == pid:
                return row
        raise KeyError(f"no process {pid} on card {card}")


def load_native(library: Path) -> ctypes.CDLL:
    """The library's own doors beside NVML's."""
    native = ctypes.CDLL(str(library))
    native.sim_state_size.restype = ctypes.c_uint64
    for name in ("sim_format", "sim_lock", "sim_unlock"):
        getattr(native, name).argtypes = [ctypes.c_void_p]
        getattr(native, name).restype = None
    native.sim_post.argtypes = [
        ctypes.c_void_p,
        ctypes.c_uint32,
        *[ctypes.c_uint64] * 2,
        *[ctypes.c_uint32] * 2,
    ]
    native.sim_post.restype = None
    native.sim_reset_card.argtypes = [ctypes.c_void_p, ctypes.c_uint32]
    native.sim_reset_card.restype = None
    return native


def joined_machine() -> SimulatedNvml:
    """The machine that this process's environment names, for a program under test that plays a GPU job."""
    with suppress(KeyError):
        return SimulatedNvml(path=Path(os.environ[VARIABLE]))
    raise KeyError(f"{VARIABLE} is not set: no simulated machine to join")
