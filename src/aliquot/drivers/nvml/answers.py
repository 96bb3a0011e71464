"""What the driver's error codes mean to us: not reported, worth another try, or not.

A table by code, with one sentence each for a person. Codes are the library's own and do not change.
"""

from __future__ import annotations

from typing import Final

from aliquot.core.errors import DriverError, PermanentError, TemporaryError


class CardLostError(PermanentError):
    """The card no longer answers; only a reset or a reboot brings it back."""


class NotThereError(PermanentError):
    """What was asked about does not exist, or no longer."""


class NotPermittedError(PermanentError):
    """This user may not ask or change that."""


class RefusedArgumentError(PermanentError):
    """The driver does not know this argument: a link beyond the last one, a version it has not."""


class TimedOutError(TemporaryError):
    """The driver did not answer in time, or what was waited for did not happen."""


class NoDriverError(PermanentError):
    """No library, or no driver behind it: this process can speak to no card."""


INVALID_ARGUMENT: Final = 2
NOT_SUPPORTED: Final = 3
NO_PERMISSION: Final = 4
NOT_FOUND: Final = 6
DRIVER_NOT_LOADED: Final = 9
TIMEOUT: Final = 10
LIBRARY_NOT_FOUND: Final = 12
FUNCTION_NOT_FOUND: Final = 13
GPU_IS_LOST: Final = 15
NO_DATA: Final = 21
VERSION_MISMATCH: Final = 25
DEPRECATED: Final = 26

# The card or the driver has no such fact.
NOT_REPORTED: Final = frozenset({NOT_SUPPORTED, FUNCTION_NOT_FOUND, NO_DATA, VERSION_MISMATCH, DEPRECATED})

_PERMANENT: Final[dict[int, type[PermanentError]]] = {
    INVALID_ARGUMENT: RefusedArgumentError,
    NO_PERMISSION: NotPermittedError,
    NOT_FOUND: NotThereError,
    DRIVER_NOT_LOADED: NoDriverError,
    LIBRARY_NOT_FOUND: NoDriverError,
    GPU_IS_LOST: CardLostError,
}
_MEANING: Final = {
    1: "the driver's library was not opened",
    2: "the driver does not accept this argument",
    3: "not supported by this card or driver",
    4: "no permission: run as root, or let the user open the driver's device files",
    5: "the driver's library is open already",
    6: "not found",
    7: "the driver has more to say than was asked for",
    8: "the card's power cables are not connected",
    9: "the NVIDIA driver is not loaded",
    10: "the driver did not answer in time",
    11: "the card's interrupts do not arrive",
    12: "no libnvidia-ml.so.1: no NVIDIA driver is installed here",
    13: "this driver is too old for that question",
    14: "the card's own store of settings (infoROM) is corrupted",
    15: "the card has fallen off the bus or does not answer",
    16: "the card needs a reset",
    17: "the operating system refused",
    18: "driver and library are of different versions: reboot or reload the driver after its update",
    19: "in use by another client",
    20: "the driver has no memory left",
    21: "no data",
    23: "no room left for it on the card",
    25: "this driver speaks another version of that question",
    26: "no longer supported by this driver",
    27: "not ready yet",
    28: "no card found",
    29: "not possible in the card's present state",
    999: "the driver failed in a way it cannot name",
}
_RETRY_MS: Final = {10: 2000, 11: 5000, 17: 5000, 19: 5000, 20: 5000, 27: 1000, 999: 5000}


def explain_code(code: int) -> str:
    """A sentence for a person."""
    return _MEANING.get(code, f"the driver's error {code}")


def error_for(code: int, symbol: str, card: str) -> DriverError:
    """The exception for a code that is not an answer, naming the card and the question."""
    text = f"{card + ': ' if card else ''}{explain_code(code)} ({symbol})"
    if code in _RETRY_MS:
        kind = TimedOutError if code == TIMEOUT else TemporaryError
        return kind(text, _RETRY_MS[code])
    return _PERMANENT.get(code, PermanentError)(text)
