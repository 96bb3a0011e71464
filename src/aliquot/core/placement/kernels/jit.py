"""The one place that touches numba's decorator, so that everything else stays typed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile at first call, cached on disk, single-threaded, with exact float order (no fastmath)."""
    return cast("F", numba.njit(cache=True, nogil=True)(function))
