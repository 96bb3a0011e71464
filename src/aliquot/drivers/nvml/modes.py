"""Changes who may use a card. The present mode is checked first, so that nobody's later change is undone."""

from __future__ import annotations

from typing import Any

from aliquot.core.errors import PermanentError
from aliquot.core.ids import CardId
from aliquot.drivers.nvml.binding import Nvml
from aliquot.drivers.nvml.cards import read_compute_mode
from aliquot.drivers.nvml.readings import ComputeMode


class UnexpectedStateError(PermanentError):
    """The card is not in the state that the change was decided for; look again and decide anew."""


def change_compute_mode(
    nvml: Nvml, handle: Any, card: CardId, expected: ComputeMode, wanted: ComputeMode
) -> None:
    """Set `wanted` on a card that is `expected`; already as wanted changes nothing. Raises DriverError."""
    now = read_compute_mode(nvml, handle, card)
    if now is wanted:
        return
    check_expected(card, now, expected)
    nvml.call("nvmlDeviceSetComputeMode", handle, wanted.value, card=card)
    check_expected(card, read_compute_mode(nvml, handle, card), wanted)


def check_expected(card: CardId, now: ComputeMode | None, expected: ComputeMode) -> None:
    """Raises UnexpectedStateError where the mode is another one."""
    if now is not expected:
        found = "not reported" if now is None else now.name
        raise UnexpectedStateError(f"{card}: compute mode is {found}, expected {expected.name}")
