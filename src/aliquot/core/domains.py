"""Which domain each row of the columns is in, level by level.

A cache: all of it follows from what nodes say of themselves. Domains are numbered in the order of their
names, so that the first of equals is the first by id.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from aliquot.core.placement.cells import I32, I64
from aliquot.core.records import Frozen
from aliquot.core.wishes import Level, domain_of


class Split(NamedTuple):
    """The rows of a site by domain of one level."""

    number: I64  # [rows] domain of each row; the number of domains where it is unknown
    names: tuple[tuple[str, ...], ...]  # [domains]
    rows: tuple[I32, ...]  # [domains] rows of each, rising

    def sums(self, counts: I64, rows: I32 | None) -> I64:
        """[domains] the sum of `counts` [rows] by domain; of `rows` only where given."""
        total = len(self.names)
        number = self.number if rows is None else self.number[rows]
        counts = counts[: number.shape[0]] if rows is None else counts[rows]
        summed: I64 = np.bincount(number, counts, total + 1)[:total].astype(np.int64)
        return summed


class Domains:
    """The splits of one world, made when they are first asked for."""

    def __init__(self, world: Frozen) -> None:
        self.nodes = world.nodes
        self._order = world.node_at
        self._splits: dict[Level, Split] = {}

    def split(self, level: Level) -> Split:
        """Rows by domain of `level`."""
        if level not in self._splits:
            self._splits[level] = self._make(level)
        return self._splits[level]

    def _make(self, level: Level) -> Split:
        homes = [domain_of(self.nodes[name].node, level) for name in self._order]
        names = tuple(sorted({home for home in homes if home is not None}))
        at = {name: number for number, name in enumerate(names)}
        number = np.array([len(names) if home is None else at[home] for home in homes], np.int64)
        order = number.argsort(kind="stable").astype(np.int32)
        ends = np.searchsorted(number[order], np.arange(len(names) + 1))
        rows = tuple(order[ends[one] : ends[one + 1]] for one in range(len(names)))
        return Split(number, names, rows)


class DomainsMemo:
    """The domains of the world that was last asked for."""

    def __init__(self) -> None:
        self._known: Domains | None = None

    def of(self, world: Frozen) -> Domains:
        """Those of `world`."""
        if self._known is None or self._known.nodes is not world.nodes:
            self._known = Domains(world)
        return self._known
