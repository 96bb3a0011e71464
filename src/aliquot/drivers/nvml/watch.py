"""Waits for the driver's critical errors (Xids). Each watch gets every event; nobody takes them from another.

A lost card makes the driver answer at once and for ever, so it is reported once and no longer waited for.
"""

from __future__ import annotations

from collections.abc import Mapping
from ctypes import c_void_p, cast
from typing import Any, Final

from aliquot.core.errors import DriverError
from aliquot.core.ids import CardId
from aliquot.drivers.nvml.answers import CardLostError, TimedOutError
from aliquot.drivers.nvml.binding import Nvml
from aliquot.drivers.nvml.readings import CardFault

_WHOLE: Final = 0xFFFFFFFF


class FaultWatch:
    """Listens to the given cards from now on."""

    def __init__(self, nvml: Nvml, handles: Mapping[CardId, Any]) -> None:
        self._nvml, self._handles = nvml, dict(handles)
        self._unwatched: tuple[CardId, ...] = ()
        self._set: Any = None
        self._listen()

    @property
    def unwatched(self) -> tuple[CardId, ...]:
        """Cards that the driver does not let us listen to."""
        return self._unwatched

    def wait(self, timeout_ms: int) -> tuple[CardFault, ...]:
        """Faults since the last call, at once if any, else within `timeout_ms`. Raises DriverError."""
        found: list[CardFault] = []
        limit = timeout_ms
        while True:
            try:
                event = self._nvml.call("nvmlEventSetWait_v2", self._set, limit)
            except CardLostError:
                lost = self._drop_lost()
                if not lost:
                    return tuple(found)
                found += lost
                limit = 0
                continue
            except TimedOutError:
                return tuple(found)
            limit = 0
            fault = self._fault(event)
            if fault is not None:
                found.append(fault)

    def close(self) -> None:
        """Stop listening; more than once is fine."""
        if self._set is not None:
            self._nvml.call("nvmlEventSetFree", self._set)
            self._set = None

    def _listen(self) -> None:
        self.close()
        self._set = self._nvml.call("nvmlEventSetCreate")
        unwatched = []
        for uuid, handle in self._handles.items():
            try:
                self._nvml.call(
                    "nvmlDeviceRegisterEvents",
                    handle,
                    self._nvml.binding.nvmlEventTypeXidCriticalError,
                    self._set,
                    card=uuid,
                )
            except DriverError:
                unwatched.append(uuid)
        self._unwatched = tuple(unwatched)

    def _drop_lost(self) -> list[CardFault]:
        """The driver does not say which card is lost: ask each, and listen to the rest anew."""
        lost = [uuid for uuid, handle in self._handles.items() if self._is_lost(uuid, handle)]
        for uuid in lost:
            del self._handles[uuid]
        self._listen()
        return [CardFault(uuid, None) for uuid in lost]

    def _is_lost(self, uuid: CardId, handle: Any) -> bool:
        try:
            self._nvml.ask("nvmlDeviceGetUUID", handle, card=uuid)
        except CardLostError:
            return True
        except DriverError:
            return False
        return False

    def _fault(self, event: Any) -> CardFault | None:
        """None for an event of a card that is not among ours."""
        address = _address(event.device)
        for uuid, handle in self._handles.items():
            if _address(handle) == address:
                gi, ci = int(event.gpuInstanceId), int(event.computeInstanceId)
                xid = int(event.eventData)
                return CardFault(uuid, xid, None if gi == _WHOLE else gi, None if ci == _WHOLE else ci)
        return None


def _address(handle: Any) -> int | None:
    """What a handle points at: two handles of one card are equal only by that."""
    return cast(handle, c_void_p).value
