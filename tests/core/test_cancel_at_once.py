"""A job that is given up without a grace: what the engine is told, in every phase, and after a restart."""

from __future__ import annotations

import pytest

from aliquot.core.events import Evicting, JobCancelled
from aliquot.core.ids import JobId
from aliquot.core.image import image_of, world_of
from aliquot.core.lifecycle import Phase
from aliquot.core.steps import Cause, Kill
from tests.support.worlds import WorldBuilder

JOB = JobId("job")


def a_site(phase: str) -> WorldBuilder:
    """The job in a phase of its life."""
    site = WorldBuilder().node("n", 8).submit("job")
    if phase == "pending":
        return site
    site.placed()
    if phase == "starting":
        return site
    site.started("job")
    if phase == "leaving":
        site.stopping("job")
    elif phase == "cancelled":
        site.cancel("job")
    elif phase == "evicted":
        site.happen(Evicting(site.at, JOB, 1, Cause.PRIORITY, JobId("other"), 60_000))
    return site


@pytest.mark.parametrize(
    ("phase", "kill"),
    [
        ("starting", Kill(JOB, 1, at_once=True)),
        ("running", Kill(JOB, 1, at_once=True)),
        ("leaving", Kill(JOB, 1, at_once=True)),
        ("cancelled", Kill(JOB, 1, at_once=True)),
        ("evicted", Kill(JOB, 1, 60_000, evicted=True, at_once=True)),
    ],
)
def test_it_is_killed_whatever_end_was_under_way(phase: str, kill: Kill) -> None:
    site = a_site(phase).happen(JobCancelled(0, JOB, at_once=True))
    assert site.world.outstanding() == [kill]
    assert world_of(image_of(site.world)).outstanding() == [kill], "a restart tells the same"
    site.cancel("job").happen(JobCancelled(0, JOB, at_once=True))
    assert site.world.outstanding() == [kill], "said again, with or without a grace, it is no other"
    site.ended("job")
    assert JOB not in site.world.jobs
    assert site.world.outstanding() == []


def test_one_that_waits_is_over_at_once() -> None:
    site = a_site("pending").happen(JobCancelled(0, JOB, at_once=True))
    assert JOB not in site.world.jobs
    assert site.world.outstanding() == []


def test_with_a_grace_an_end_under_way_is_left_as_it_is() -> None:
    site = a_site("leaving").cancel("job")
    assert site.world.outstanding() == []
    assert site.job("job").phase is Phase.STOPPING
