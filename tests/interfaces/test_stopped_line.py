"""What explain says of those who gave way."""

from __future__ import annotations

from aliquot.core.ids import JobId
from aliquot.core.steps import Cause, Evict, Resize
from aliquot.interfaces.cli.gates import stopped_line

GONE = Evict(JobId("b"), 1, Cause.PRIORITY, JobId("a"), 0, 60_000)
NARROWER = Resize(JobId("c"), 1, (), JobId("a"), 8, 4, 120_000)


def test_who_is_stopped_and_who_shrinks_with_the_loss_of_both() -> None:
    line = stopped_line([GONE, NARROWER], None)
    assert line == ("1 job is stopped for it (b) and it shrinks c from 8 to 4: 3.0 card-min of work lost.")


def test_who_only_shrinks() -> None:
    assert stopped_line([NARROWER], None) == "It shrinks c from 8 to 4: 2.0 card-min of work lost."
