"""Who gave a job up, from what is on record of it."""

from __future__ import annotations

import pytest

from aliquot.control.chronicle import Life
from aliquot.control.end_views import GivenUp
from aliquot.control.giving_up import given_up
from aliquot.control.views import AttemptView
from aliquot.core.events import JobCancelled
from aliquot.core.ids import JobId
from aliquot.core.lifecycle import Phase
from tests.support.build import a_job

J, FIRST = JobId("j"), JobId("first")
RAN = (AttemptView(1, 0, ()),)
NAMES = {0: "root", 7: "ana"}


def told(cancel: JobCancelled | None, other: Life | None = None, **how: object) -> GivenUp | None:
    """Of a job that was cancelled; `other`: what is remembered of the one it waited for."""
    life = Life(
        a_job("j"), **{"phase": Phase.CANCELLED, "owner": 7, "name": "", "over_ms": 9, "cancel": cancel} | how
    )
    return given_up(life, lambda job: other if job == FIRST else None, NAMES.__getitem__)


def first(phase: Phase) -> Life:
    """What it waited for, over."""
    return Life(a_job("first"), phase, 7, "train", over_ms=3)


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (first(Phase.FAILED), "job first (train), which had to succeed, failed"),
        (first(Phase.CANCELLED), "job first (train), which had to succeed, was cancelled"),
        (None, "job first, which had to succeed, did not"),
    ],
)
def test_the_job_that_had_to_succeed_is_named_as_far_as_it_is_remembered(
    other: Life | None, why: str
) -> None:
    event = JobCancelled(1, J, "job first did not succeed", others=(FIRST,))
    assert told(event, other) == GivenUp(None, "", "dependency", why)


@pytest.mark.parametrize(
    ("event", "how", "said"),
    [
        pytest.param(JobCancelled(1, J, by=0), {}, GivenUp(0, "root"), id="root"),
        pytest.param(JobCancelled(1, J), {}, GivenUp(), id="on an older record"),
        pytest.param(
            JobCancelled(1, J, "job x did not succeed"),
            {},
            GivenUp(None, "", "dependency", "job x did not succeed"),
            id="by nobody, on an older record",
        ),
        pytest.param(
            JobCancelled(1, J, "its cards were not used for 9 min"),
            {"attempts": RAN},
            GivenUp(None, "", "idle", "its cards were not used for 9 min"),
            id="for what it did not use",
        ),
        pytest.param(None, {}, None, id="nothing is known"),
        pytest.param(JobCancelled(1, J, by=7), {"phase": Phase.SUCCEEDED}, None, id="too late"),
        pytest.param(
            JobCancelled(1, J, by=7),
            {"phase": Phase.STOPPING, "over_ms": None},
            GivenUp(7, "ana"),
            id="soon",
        ),
    ],
)
def test_it_is_said_who_gave_it_up(
    event: JobCancelled | None, how: dict[str, object], said: GivenUp | None
) -> None:
    assert told(event, **how) == said
