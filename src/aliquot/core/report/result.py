"""One run as a value: what was run, how it went, and how far the figures may be trusted."""

from __future__ import annotations

from enum import Enum

import msgspec

from aliquot.core.report.charts import Timeline
from aliquot.core.report.scorecard import Scorecard


class Standing(Enum):
    """What kind of evidence a run is; shown beside every figure of it."""

    WHAT_IF = "what-if"  # invented or planned load on a described site
    REPLAY = "replay"  # a published workload in a model of its cluster
    CALIBRATED = "calibrated-replay"  # sizes and load were chosen so that a told story's figures come out
    LIVE = "live"  # measured on the site


class RunResult(msgspec.Struct, frozen=True):
    """One run of one policy. `variant` tells runs of one policy apart, such as "literal reading"."""

    scenario: str
    policy: str
    scorecard: Scorecard
    seed: int | None = None
    variant: str = ""
    standing: Standing = Standing.WHAT_IF
    timeline: Timeline | None = None
    assumptions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # warnings of the scenario, quotas that are not enforced, ...

    @property
    def name(self) -> str:
        """Policy and variant, as it is shown."""
        return f"{self.policy} ({self.variant})" if self.variant else self.policy
