"""The counting of `predicting`, loaded beside the loop once somebody waits.

Its kernels need a compiler that takes a second to load and 60 MiB to keep. A site where nobody waits spends
neither, and where somebody does, the loop goes on meanwhile; till then no start is predicted.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np


class Counting:
    """Call it to ask whether all is there; the first time begins to load in a thread of its own.

    `prepare` is called first. What fails counts as done: who counts then meets what is wrong.
    """

    def __init__(self, prepare: Callable[[], object] = lambda: None) -> None:
        self._prepare = prepare
        self._thread: threading.Thread | None = None

    def __call__(self) -> bool:
        """Whether it is loaded."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._load, name="aliquot-counting", daemon=True)
            self._thread.start()
        return not self._thread.is_alive()

    def _load(self) -> None:
        self._prepare()
        count_once()


def count_once() -> None:
    """One job on one card. Compiles what no run before this one has compiled."""
    from aliquot.core.room import backfill, counts, forward

    one, none = np.ones(1, np.int64), np.zeros((0, 1), np.int64)
    running = counts.Running(none[:, 0], none, none)
    forward.foresee(0, one, one, running, backfill.Waiting(one, one, one))
