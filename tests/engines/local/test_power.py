"""Power cuts: a machine that runs the service is killed, and the journal on its disk is all that is left."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from aliquot.core.events import Outcome
from aliquot.core.lifecycle import Phase
from aliquot.engines.local.leftovers import find_supervisors
from tests.support.local import Site, wait_for
from tests.support.power import Story, careless
from tests.support.uml import need_kernel

CUTS = 4  # bench/bench_power.py has more


def test_a_job_of_which_a_reboot_left_nothing_is_lost_and_begins_anew(tmp_path: Path) -> None:
    with Site(tmp_path, durable=False) as site:
        site.submit("ran", "sleep 60").submit("done", "true").until_running("ran").until_over("done")
        lose_all_but_the_disk(site)
        site.crash().until(lambda: len(site.starts("ran")) > 1, "another start")
        assert (site.outcomes("ran"), site.starts("ran")) == ([Outcome.LOST], [1, 2])
        assert site.phase("done") is None
        site.cancel("ran").until_over("ran")


def test_a_cancelled_job_of_which_a_reboot_left_nothing_is_over(tmp_path: Path) -> None:
    with Site(tmp_path, durable=False) as site:
        site.submit("j", "trap '' TERM; sleep 60").until_running("j")
        site.cancel("j").until(lambda: site.phase("j") is Phase.STOPPING)
        lose_all_but_the_disk(site)
        site.crash().until_over("j")
        assert site.starts("j") == [1]


def lose_all_but_the_disk(site: Site) -> None:
    """Every process of every job, and the folders of attempts, which lie in memory."""
    found = find_supervisors(site.places.state)
    pids = [pid for folder in found for pid in (folder.holder(), getattr(folder.begun(), "pid", None)) if pid]
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not find_supervisors(site.places.state), "supervisors to go")
    shutil.rmtree(site.places.state)
    site.places.state.mkdir()


@pytest.mark.uml
def test_what_was_acknowledged_survives_power_cuts_at_random_moments(tmp_path: Path) -> None:
    need_kernel()
    story = Story(tmp_path, seed=5)
    for _ in range(CUTS):
        story.cut()
    story.finish()
    assert len(story.acknowledged) > 2 * CUTS  # else too little went on to prove anything
    assert story.runs > 0


@pytest.mark.uml
def test_on_a_disk_that_never_flushes_a_power_cut_loses_what_was_acknowledged(tmp_path: Path) -> None:
    need_kernel()
    story = Story(tmp_path, seed=2, preload=careless(tmp_path))
    story.cut()
    with pytest.raises(AssertionError, match=r"acknowledged|no 'READY'|ended without"):
        story.finish()
