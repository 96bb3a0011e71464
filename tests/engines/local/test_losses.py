"""Jobs of which nobody sees how they end, time after time, with real processes."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from aliquot.core.events import Ended, Granted, Outcome
from tests.support.build import a_request
from tests.support.local import Site, wait_for

DEADLY: Final = "kill -{how} $PPID; exec sleep 60"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with Site(tmp_path, durable=False) as made:
        yield made


def endless(site: Site, how: str = "KILL", **more: Any) -> Site:
    """A job that ends its own supervisor whenever it is begun."""
    return site.submit("j", DEADLY.format(how=how), **more).until_over("j")


@pytest.mark.parametrize(("how", "reason"), [("KILL", "lost"), ("TERM", "supervisor-stopped")])
def test_a_job_that_is_lost_each_time_fails_in_the_end_whatever_its_retries(
    site: Site, how: str, reason: str
) -> None:
    endless(site, how, retries=50)
    assert site.outcomes("j") == [Outcome.LOST, Outcome.LOST, Outcome.FAILED]
    assert site.ending("j", 3).reason == reason
    assert site.processes("j", 3) == []


def test_it_is_begun_again_later_each_time(site: Site) -> None:
    endless(site)
    ends = [event.at for event in site.told if isinstance(event, Ended)]
    grants = [event.at for event in site.told if isinstance(event, Granted)]
    pauses = [begun - over for begun, over in zip(grants[1:], ends, strict=False)]
    assert [pause >= least for pause, least in zip(pauses, (1_000, 2_000), strict=True)] == [True, True]


def test_how_often_it_was_lost_outlives_the_service(site: Site) -> None:
    site.submit("j", DEADLY.format(how="KILL"))
    for losses in (1, 2):
        site.until(lambda losses=losses: len(site.outcomes("j")) == losses)
        site.crash()
    site.until_over("j")
    assert site.outcomes("j") == [Outcome.LOST, Outcome.LOST, Outcome.FAILED]


def test_only_what_is_lost_in_a_row_counts(site: Site) -> None:
    seen = f"[ $ALIQUOT_ATTEMPT_NUMBER = 3 ] && exit 1; {DEADLY.format(how='KILL')}"
    site.submit("j", seen, retries=9).until_over("j")
    assert site.outcomes("j") == [*[Outcome.LOST] * 5, Outcome.FAILED]


def test_a_gang_of_which_one_member_is_lost_each_time_fails_as_well(site: Site) -> None:
    deadly = f"[ $ALIQUOT_RANK = 1 ] || exec sleep 60; {DEADLY.format(how='KILL')}"
    site.submit("j", deadly, [a_request(1)] * 2).until_over("j")
    assert site.outcomes("j") == [Outcome.LOST, Outcome.LOST, Outcome.FAILED]
    assert [site.ending("j", 3, member).reason for member in (0, 1)] == ["gang", "lost"]


def test_who_is_lost_with_the_machine_time_after_time_is_begun_again(site: Site) -> None:
    site.submit("j", "[ $ALIQUOT_ATTEMPT_NUMBER = 5 ] || exec sleep 60")
    for number in range(1, 5):
        site.until(lambda number=number: site.starts("j")[-1:] == [number])
        site._close()
        folder = site.at("j", number)
        pid = folder.holder()
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda folder=folder: folder.holder() is None)
        site._open()
    site.until_over("j")
    assert site.outcomes("j") == [*[Outcome.LOST] * 4, Outcome.SUCCEEDED]
