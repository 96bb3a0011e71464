"""Implements `control.watching.Eyes` over an inventory: what it samples, with each process's job."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

import msgspec

from aliquot.core.errors import DriverError
from aliquot.core.health import Fault, Process, Reading
from aliquot.core.ids import CardId, JobId
from aliquot.drivers.nvml.readings import (
    CardReading,
    CardSample,
    ComputeMode,
    Found,
    Inventory,
    Watch,
    usable_whole,
)

MODES_S: Final = 10.0  # how often it is asked how cards are set, which costs more than a sample
_EXCLUSIVE: Final = {ComputeMode.EXCLUSIVE_PROCESS, ComputeMode.EXCLUSIVE_THREAD}


class CardEyes:
    """`found` is the last detection of `inventory`; `job_of` names the job that a pid belongs to.

    How cards are set is asked again every `modes_s` seconds.
    """

    def __init__(
        self,
        inventory: Inventory,
        found: Found,
        job_of: Callable[[int], JobId | None],
        modes_s: float = MODES_S,
    ) -> None:
        self._inventory, self._found, self._job_of, self._modes_s = inventory, found, job_of, modes_s
        self._watch: Watch | None = None
        self._lost: frozenset[CardId] = frozenset()
        self._asked = time.monotonic()

    def look(self, at: int) -> Sequence[Reading]:
        """Every card that was found once, now; one that is not there any more is lost. Raises DriverError."""
        if time.monotonic() - self._asked > self._modes_s:
            self._asked = time.monotonic()
            detection = self._inventory.detect()
            if isinstance(detection, Found):
                self._found = _renewed(self._found, detection)
        readings = {sample.uuid: self._reading(sample) for sample in self._inventory.sample(at).cards}
        all_ = [readings.get(card) or Reading(card, lost=True) for card in _uuids(self._found)]
        lost = frozenset(reading.card for reading in all_ if reading.lost)
        if self._lost - lost:
            self._watch = None  # who was lost is not listened to any more: listen to all anew
        self._lost = lost
        return all_

    def listen(self, timeout_ms: int) -> Sequence[tuple[CardId, int | None]]:
        """Critical errors. Raises DriverError, at once."""
        if self._watch is None:
            self._watch = self._inventory.watch()
        try:
            return [(fault.card, fault.xid) for fault in self._watch.wait(timeout_ms)]
        except DriverError:
            self._watch = None
            raise

    def unusable(self) -> Mapping[CardId, Fault]:
        """Prohibited, or cut, and which of these."""
        return {card.uuid: _fault_of(card) for card in self._found.cards if not usable_whole(card)}

    def exclusive(self) -> Sequence[CardId]:
        """Those that let in one process."""
        return [card.uuid for card in self._found.cards if card.compute_mode in _EXCLUSIVE]

    def refusal(self, cards: Collection[CardId], taken: Collection[CardId]) -> str:
        """Why nobody can be started on `cards`, of which others have `taken`, as last seen; "" where he can.

        From any thread.
        """
        there = frozenset(_uuids(self._found)) - self._lost
        if gone := [card for card in cards if card not in there]:
            return f"{min(gone)} is not there"  # an id that names nothing is given to nobody
        shut = set(taken).intersection(self.exclusive()) if taken else ()
        return f"{min(shut)} lets in one process only, and another job has it" if shut else ""

    def _reading(self, sample: CardSample) -> Reading:
        processes = None
        if sample.processes is not None:
            processes = tuple(
                Process(one.pid, one.memory_mib, one.sm_percent, self._job_of(one.pid))
                for one in sample.processes
            )
        return Reading(sample.uuid, sample.used_mib, sample.gpu_percent, processes, sample.lost)


def _fault_of(card: CardReading) -> Fault:
    """What keeps a card from being given to a program as a whole."""
    if card.compute_mode is ComputeMode.PROHIBITED:
        return Fault("prohibited", "its compute mode is PROHIBITED")
    if card.mig is None:
        return Fault("mig unknown", "whether it is cut (MIG) cannot be read")
    if card.mig.enabled:
        return Fault("mig", "MIG is on, and only whole cards are given to jobs")
    return Fault("mig", "MIG will be on after its next reset")


def _renewed(found: Found, fresh: Found) -> Found:
    """The same cards as they are set now; one that cannot be read keeps what was known of it."""
    known = {card.uuid: card for card in fresh.cards}
    return msgspec.structs.replace(found, cards=tuple(known.get(card.uuid, card) for card in found.cards))


def _uuids(found: Found) -> tuple[CardId, ...]:
    return tuple(card.uuid for card in found.cards)
