"""The one door to NVML: opens the library, asks by symbol, and turns its errors into ours.

Nothing here knows what a question means. The library is loaded when first opened, so that a machine without
a driver can import all of this. pynvml is untyped; what is read from it is given its type where it is asked.
"""

from __future__ import annotations

import importlib
from types import ModuleType, TracebackType
from typing import Any, Final, Self

from aliquot.drivers.nvml.answers import NOT_REPORTED, error_for

_BINDING: Final = "pynvml"


class Nvml:
    """An open library; a context that closes it. Raises DriverError when it cannot be opened."""

    def __init__(self) -> None:
        self.binding = load_binding()
        self._open = False
        self.call("nvmlInit")
        self._open = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the library; more than once is fine."""
        if self._open:
            self._open = False
            self.call("nvmlShutdown")

    def call(self, symbol: str, *arguments: Any, card: str = "") -> Any:
        """The answer of `symbol`. Raises TemporaryError or PermanentError, naming `card`."""
        try:
            return getattr(self.binding, symbol)(*arguments)
        except self.binding.NVMLError as error:
            raise error_for(int(error.value), symbol, card) from error

    def ask(self, symbol: str, *arguments: Any, card: str = "") -> Any | None:
        """The same, with None where the card does not report it."""
        try:
            return getattr(self.binding, symbol)(*arguments)
        except self.binding.NVMLError as error:
            if int(error.value) in NOT_REPORTED:
                return None
            raise error_for(int(error.value), symbol, card) from error


def load_binding() -> ModuleType:
    """The installed pynvml; ImportError where it is not installed, which is a broken installation of ours."""
    return importlib.import_module(_BINDING)
