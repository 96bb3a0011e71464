"""A what-if in one value: the machines, what is offered to them, and the policies to try.

An `Offer` is a job with what only its engine knows: how much work it truly is and how long its owner waits.
The planner never sees that part.
"""

from __future__ import annotations

from enum import Enum

import msgspec

from aliquot.core.inventory import Node
from aliquot.core.jobs import Job, Request
from aliquot.core.settings import Settings
from aliquot.core.speed import SpeedTable
from aliquot.core.windows import Window


class Standing(Enum):
    """What kind of evidence a run is; shown beside every figure of it."""

    WHAT_IF = "what-if"  # invented or planned load on a described site
    REPLAY = "replay"  # a published workload in a model of its cluster
    CALIBRATED = "calibrated-replay"  # sizes and load were chosen so that a told story's figures come out
    LIVE = "live"  # measured on the site


class Offer(msgspec.Struct, frozen=True):
    """One job as its owner and its engine know it."""

    job: Job
    work_ms: int | None = None  # at full speed; None: never ends
    patience_ms: int | None = None  # withdrawn after waiting this long; None: waits for ever
    busy_milli: int | None = None  # SM activity on each of its cards, milli of a whole card; None: unknown
    idle_after_ms: int | None = None  # of running: from then on it holds its cards and does nothing
    gflops: int | None = None  # GFLOP/s of its model, on all its cards at full speed; None: not reported
    linked: bool = False  # its speed depends on the links between its cards


class Announced(msgspec.Struct, frozen=True):
    """A window that is made at `at_ms` and taken back at `cancelled_ms`, if it is."""

    at_ms: int
    window: Window
    cancelled_ms: int | None = None


class Scenario(msgspec.Struct, frozen=True):
    """Nodes in the fixed node order, offers by submit time, and named policies."""

    name: str
    nodes: tuple[Node, ...]
    offers: tuple[Offer, ...]
    policies: tuple[tuple[str, Settings], ...]
    speeds: SpeedTable = SpeedTable()
    standing: Standing = Standing.WHAT_IF
    notes: tuple[str, ...] = ()  # warnings and assumptions to show beside every result
    known_demand: tuple[tuple[Request, int], ...] | None = None  # of the whole list, where it is published
    failures: tuple[tuple[int, str, int | None], ...] = ()  # (at ms, node name, back at ms or None)
    windows: tuple[Announced, ...] = ()

    def settings(self, name: str) -> Settings | None:
        """The policy called `name`, or None."""
        return dict(self.policies).get(name)

    def demand(self) -> tuple[tuple[Request, int], ...]:
        """Every request with its count, most frequent first, then first offered; or as published."""
        if self.known_demand is not None:
            return self.known_demand
        counts: dict[Request, int] = {}
        for offer in self.offers:
            for request in offer.job.members:
                counts[request] = counts.get(request, 0) + 1
        return tuple(sorted(counts.items(), key=lambda entry: -entry[1]))
