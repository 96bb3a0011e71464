"""Aliquot's co-location in the Muri replay, with the jobs' sizes and without.

With sizes it is told the time each job still needs alone, as Muri-S is. Without, it knows what Muri-L knows:
how long each job has been running. The preference and grace of both were chosen on traces 1 and 3.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from aliquot.core.columns import I64
from aliquot.core.errors import BrokenInvariantError
from aliquot.core.room.colocate import Candidates, ColocateRules, colocate
from aliquot.core.room.grouping import Sharing
from aliquot.traces.published.muri_model import (
    CARDS,
    CARDS_PER_NODE,
    F64,
    NODES,
    Columns,
    Turn,
    place_in_order,
)

WITH_SIZES: Final = ColocateRules(preference=0.1, grace_s=1.0)
WITHOUT_SIZES: Final = ColocateRules(preference=0.07, grace_s=1000.0)


class Colocated:
    """Asks `colocate` at every event; keeps no state of its own."""

    def __init__(
        self, columns: Columns, sharing: Sharing, sized: bool, rules: ColocateRules | None = None
    ) -> None:
        self._columns, self._sharing, self._sized = columns, sharing, sized
        self._rules = rules or (WITH_SIZES if sized else WITHOUT_SIZES)

    def choose(self, active: I64, left: F64, had_s: F64) -> Turn:
        """Groups for the jobs of `active`, in order of arrival."""
        columns, sharing = self._columns, self._sharing
        width, kind = columns.width[active], columns.kind[active]
        effort = left[active] * columns.alone_s[active] if self._sized else had_s[active]
        groups = colocate(Candidates(width, kind, np.maximum(effort, 0.0)), sharing, CARDS, self._rules)
        _check_fit(sharing.widths[groups.width])
        present = groups.members >= 0
        kinds = np.where(present, kind[groups.members], sharing.alone.shape[1])
        period = sharing.period[(groups.width, *kinds.T)]
        overhead = np.where(present, columns.overhead_s[active[groups.members]], 0.0).sum(axis=1)
        owner = np.nonzero(present)[0]
        return Turn(active, active[groups.members[present]], period[owner], overhead[owner])


def _check_fit(widths: I64) -> None:
    """Groups are placed widest first, each on one node or on whole nodes."""
    if not place_in_order(np.sort(widths)[::-1].copy(), NODES, CARDS_PER_NODE).all():
        raise BrokenInvariantError(f"groups of {widths.tolist()} cards do not fit the nodes")
