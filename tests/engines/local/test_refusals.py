"""Starts that the host refuses time after time: who can't begin here fails, a host that can't begins none."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from pathlib import Path

from aliquot.core.events import Ended, Event, NodeDrained, Outcome, Started, StartRefused
from aliquot.core.grants import Placement
from aliquot.core.ids import GrantId, JobId
from aliquot.engines.local.payload import Payload
from aliquot.engines.local.refusals import REFUSALS, Refusals
from tests.support.build import node_id
from tests.support.local import Site

NODE = node_id("here")
ONE, OTHER = JobId("1"), JobId("2")


class Heard:
    """What follows from what attempts tell, and what a person is told."""

    def __init__(self) -> None:
        self.refusals, self.said = Refusals(), list[str]()

    def refuse(self, job: JobId, times: int = 1) -> list[Event]:
        return [
            event
            for _ in range(times)
            for event in self.refusals.hear([StartRefused(0, job, 1, "no room")], NODE, self.said.append)
        ]

    def begin(self, job: JobId) -> None:
        assert self.refusals.hear([Started(0, job, 1)], NODE, self.said.append) == []


def test_who_is_refused_while_others_begin_has_failed_in_the_end() -> None:
    heard = Heard()
    assert heard.refuse(ONE) == []
    heard.begin(OTHER)
    assert heard.refuse(ONE, REFUSALS - 3) == []
    assert not heard.refusals.is_last(ONE)
    assert heard.refuse(ONE) == []
    assert heard.refusals.is_last(ONE)
    heard.refusals.hear([Ended(0, ONE, 1, Outcome.FAILED)], NODE, heard.said.append)
    assert not heard.refusals.is_last(ONE)
    assert heard.said == []


def test_where_nobody_begins_the_node_is_drained_and_no_job_fails() -> None:
    heard = Heard()
    heard.begin(OTHER)
    assert heard.refuse(ONE, REFUSALS - 1) == []
    assert not heard.refusals.is_last(ONE)
    assert heard.refuse(ONE) == [NodeDrained(0, NODE, True)]
    (said,) = heard.said
    assert "at last since no room" in said
    assert "aliquot undrain" in said
    assert heard.refuse(ONE) == [], "whoever undrains it has it tried as often again"


def test_only_refusals_in_a_row_count() -> None:
    heard = Heard()
    for _ in range(3):
        assert heard.refuse(ONE, REFUSALS - 1) == []
        heard.begin(ONE)
    assert not heard.refusals.is_last(ONE)


def out_of_room(site: Site, *jobs: str) -> None:
    """The host begins none of these jobs; it has tried the first of them once less than it takes."""

    def exports(held: GrantId, placement: Placement, payload: Payload) -> Sequence[tuple[str, str]]:
        if held.job in jobs:
            raise OSError(errno.ENOSPC, "No space left on device", "cgroup")
        return ()

    launcher = site.launcher
    launcher._exports = exports
    site.submit(jobs[0], "true").until(lambda: bool(site.outcomes(jobs[0])), "its first refusal")
    for _ in range(REFUSALS - 2):
        launcher._refusals._count(JobId(jobs[0]))


def test_a_job_that_never_can_begin_here_fails_once_others_have(tmp_path: Path) -> None:
    with Site(tmp_path, durable=False) as site:
        out_of_room(site, "bad")
        site.submit("good", "true").until_over("good", "bad")
        assert site.outcomes("bad") == [None, Outcome.FAILED]
        ending = site.ending("bad", 2)
        assert (ending.how, ending.reason) == ("refused", "refused")
        assert ending.text == "cgroup: No space left on device"
        assert not any(isinstance(event, NodeDrained) for event in site.told)


def test_a_host_on_which_nothing_begins_keeps_its_queue(tmp_path: Path) -> None:
    with Site(tmp_path, durable=False) as site:
        out_of_room(site, "bad", "next")
        site.until(lambda: any(isinstance(event, NodeDrained) for event in site.told), "it to be drained")
        assert "cgroup: No space left on device" in site.said[-1]
        site.submit("next", "true").turn(50)
        assert site.outcomes("next") == []
        site.launcher._exports = lambda held, placement, payload: ()
        site.cluster.tell(NodeDrained(0, site.nodes[0].id, False))
        site.until_over("bad", "next")
        assert site.outcomes("bad") == [None, None, Outcome.SUCCEEDED]
