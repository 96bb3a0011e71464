"""Supervisors and nurseries that hang: what they should have done is done without them, and told."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from aliquot.core.events import Outcome
from aliquot.engines.local import attempts
from aliquot.engines.local.folders import Folder
from aliquot.engines.local.nursery import living_nursery
from aliquot.engines.local.payload import Ending, Stop
from tests.support.build import a_request
from tests.support.local import Site, wait_for

SOON = Stop(grace_ms=100)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr(attempts, "SLACK_MS", 300)
    monkeypatch.setattr(attempts, "LOOK_MS", 100)
    monkeypatch.setattr(attempts, "START_MS", 700)
    with Site(tmp_path, durable=False) as made:
        yield made


@pytest.mark.parametrize("is_restarted", [False, True])
def test_who_gives_up_a_job_need_not_wait_for_a_supervisor_that_hangs(
    site: Site, *, is_restarted: bool
) -> None:
    hang(site.submit("j", "sleep 100", stop=SOON).until_running("j"), "j")
    if is_restarted:
        site.crash()
    site.cancel("j").until_over("j")
    assert site.processes("j") == []
    assert "j attempt 1: its supervisor hangs, and is killed" in site.said


def test_a_time_limit_holds_though_the_supervisor_hangs(site: Site) -> None:
    hang(site.submit("j", "sleep 100", stop=SOON, time_ms=500, retries=3).until_running("j"), "j")
    site.until_over("j")
    assert site.outcomes("j") == [Outcome.FAILED], "and what a limit ended is not tried again"
    assert site.processes("j") == []


def test_all_of_a_gang_goes_with_the_one_that_hangs(site: Site) -> None:
    site.submit("gang", "sleep 100", [a_request(1)] * 3, stop=SOON).until_running("gang")
    hang(site, "gang", member=1)
    site.cancel("gang").until_over("gang")
    assert [site.processes("gang", member=at) for at in range(3)] == [[], [], []]


def test_a_job_within_its_time_is_left_alone_for_longer_than_a_start_may_take(site: Site) -> None:
    site.submit("j", "sleep 1.5", time_ms=60_000).until_over("j")
    assert site.outcomes("j") == [Outcome.SUCCEEDED]
    assert site.said == []


def test_a_nursery_that_hangs_is_replaced(site: Site) -> None:
    site.submit("first", "true").until_over("first")
    pid = living_nursery(site.places.state)
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    site.submit("j", "echo here").until_over("j")
    assert site.output("j", attempt=len(site.outcomes("j"))) == "here\n"
    assert site.outcomes("j")[-1] is Outcome.SUCCEEDED
    assert "the process that starts supervisors hangs, and is replaced" in site.said


def test_an_end_that_is_recorded_while_a_restarted_service_looks_is_not_lost(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.submit("j", "sleep 100").until_running("j")
    site._close()
    folder = site.at("j")
    folder.command("stop cancelled")
    wait_for(lambda: folder.ending() is not None and folder.holder() is None, "its end")
    found = [None]  # the first look is a moment too early

    def look(folder: Folder, ending: Callable[[Folder], Ending | None] = Folder.ending) -> Ending | None:
        return found.pop() if found else ending(folder)

    monkeypatch.setattr(Folder, "ending", look)
    site._open()
    site.until_over("j")
    assert site.ending("j").reason == "cancelled"


def hang(site: Site, name: str, member: int = 0) -> None:
    """Stop a supervisor as a debugger would."""
    pid = site.at(name, member=member).holder()
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
