"""What is remembered, from plan to plan, of running jobs that might be stopped.

A cache outside the world: an entry stands as long as the job's grants and charge are the very ones it was
made from, and all are forgotten when the queues change, or the places from which nothing comes back.
"""

from __future__ import annotations

from typing import NamedTuple

from aliquot.core.grants import Grant, Placement, Seat
from aliquot.core.ids import JobId
from aliquot.core.queueing.quota import Charge
from aliquot.core.queueing.tree import QueueTree
from aliquot.core.records import Asked


class Level(NamedTuple):
    """A job going on at a narrower width: `freed` is what it leaves beyond the level before, `rest` what it
    would leave if it were stopped then, `asked` what it is charged for, `placements` what it holds.
    """

    keep: int
    freed: tuple[Seat, ...]
    rest: tuple[Seat, ...]
    asked: tuple[Asked, ...]
    placements: tuple[Placement, ...]


class Lodger(NamedTuple):
    """A running job: `seats` that would be free without it, and where and what it is charged."""

    grants: tuple[Grant, ...]
    asked: tuple[Asked, ...]
    seats: tuple[Seat, ...]
    leaf: int
    charge: Charge
    levels: tuple[Level, ...] = ()


class LodgersMemo:
    """Those of the last plan."""

    def __init__(self) -> None:
        self._tree: QueueTree | None = None
        self._closed: object = None
        self._lodgers: dict[JobId, Lodger] = {}

    def known(self, tree: QueueTree | None, closed: object) -> dict[JobId, Lodger]:
        """By job, if `tree`, and what says whence nothing comes back, are those of the last plan."""
        if tree is not self._tree or closed != self._closed:
            self._tree, self._closed, self._lodgers = tree, closed, {}
        return self._lodgers

    def keep(self, lodgers: dict[JobId, Lodger]) -> None:
        """For the next plan."""
        self._lodgers = lodgers
