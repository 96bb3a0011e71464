"""One run as a value: what was run, how it went, and how far the figures may be trusted."""

from __future__ import annotations

import msgspec

from aliquot.core.queueing.outlook import PredictedStart
from aliquot.core.report.charts import Timeline
from aliquot.core.report.scorecard import Scorecard
from aliquot.core.workload import Standing


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
    notes: tuple[str, ...] = ()  # warnings of the scenario, what of it is not enforced, ...
    predicted_start: PredictedStart | None = None  # None: starts were not predicted

    @property
    def name(self) -> str:
        """Policy and variant, as it is shown."""
        return f"{self.policy} ({self.variant})" if self.variant else self.policy


__all__ = ["RunResult", "Standing"]
