"""The one place that touches numba's decorator, so that everything else stays typed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile at first call, cached on disk, single-threaded, with exact float order (no fastmath)."""
    return cast("F", numba.njit(cache=True, nogil=True)(function))


def inlined(function: F) -> F:
    """As `compiled`, and part of every compiled function that calls it: for what is called for every card.

    A call hands over each array of a bundle field by field, which takes longer than such a function does.
    """
    return cast("F", numba.njit(cache=True, nogil=True, forceinline=True)(function))
