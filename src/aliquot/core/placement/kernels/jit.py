"""The one place that touches numba's decorator, so that everything else stays typed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile at first call, cached on disk, single-threaded, with exact float order (no fastmath)."""
    result: F = numba.njit(cache=True, nogil=True)(function)
    return result


def inlined(function: F) -> F:
    """A small function used by kernels only."""
    result: F = numba.njit(cache=True, nogil=True, inline="never")(function)
    return result
