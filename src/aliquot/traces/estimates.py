"""What the planner is told of run times: the truth, a drawn error, what a history recorded, or nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aliquot.control.replaying import Estimates


def draw_estimates(
    kind: Estimates, ran_ms: Sequence[int], seed: int, recorded: Sequence[int | None] | None = None
) -> list[int | None]:
    """An estimate per job, ms, at least 1; None is unknown. `seed` draws OVER and WRONG10, job by job."""
    count = len(ran_ms)
    if kind is Estimates.NONE:
        return [None] * count
    if kind is Estimates.RECORDED:
        return list(recorded) if recorded is not None else [None] * count
    factors = np.ones(count)
    if kind is Estimates.OVER:
        factors = np.random.default_rng(seed).uniform(1, 5, count)
    elif kind is Estimates.WRONG10:
        factors = 10 ** np.random.default_rng(seed).uniform(-1, 1, count)
    told = (np.asarray(ran_ms, np.int64) * factors).astype(np.int64)
    return [max(1, int(value)) for value in told]
