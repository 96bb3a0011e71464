"""Who may ask for how much. So far a name, a priority, and quotas that are read but not enforced."""

from __future__ import annotations

import msgspec


class Queue(msgspec.Struct, frozen=True):
    """A queue such as `ai-lab/training`. Absent limits are None: not said, neither 0 nor unlimited."""

    name: str
    priority: int = 0
    nominal_mib: int | None = None  # GPU memory quota; not enforced yet, and reported so
