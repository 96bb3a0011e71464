"""Attempts through the port: gangs, repeated steps, refusals, retries, moves, restarts."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from aliquot.core import commit
from aliquot.core.events import Ended, NodeJoined, Outcome, StartRefused, Stopping
from aliquot.core.ids import JobId
from aliquot.core.lifecycle import Phase
from aliquot.core.steps import Kill, Move, Start
from aliquot.engines.local.nursery import await_end
from aliquot.engines.local.payload import Output, Stop
from aliquot.engines.local.ports import free_port
from tests.support.build import a_node, a_placement, a_request
from tests.support.first_fit import first_fit
from tests.support.local import Site, wait_for

OK, FAILED, LOST = Outcome.SUCCEEDED, Outcome.FAILED, Outcome.LOST


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with Site(tmp_path, durable=False) as made:
        yield made


def test_members_of_a_gang_know_who_they_are_and_end_together(site: Site) -> None:
    script = 'echo $ALIQUOT_MEMBER of $ALIQUOT_MEMBERS on "$CUDA_VISIBLE_DEVICES"'
    site.submit("gang", script, [a_request(1), a_request(2), a_request(0, cpu=1000)]).until_over("gang")
    printed = [site.output("gang", member=at) for at in range(3)]
    assert printed == ["0 of 3 on here-g0\n", "1 of 3 on here-g1,here-g2\n", "2 of 3 on \n"]
    assert (site.starts("gang"), site.outcomes("gang")) == ([1], [OK])


def test_a_gang_does_not_outlive_its_first_failure(site: Site) -> None:
    script = "[ $ALIQUOT_MEMBER = 1 ] && exit 9; sleep 60"
    site.submit("gang", script, [a_request(1)] * 3).until_over("gang")
    endings = [site.ending("gang", member=at) for at in range(3)]
    assert [(ending.status, ending.reason) for ending in endings] == [(143, "gang"), (9, ""), (143, "gang")]
    assert site.outcomes("gang") == [FAILED]


def test_more_jobs_than_cards_take_turns(site: Site) -> None:
    names = [f"j{at}" for at in range(12)]
    for name in names:
        site.submit(name, "sleep 0.02")
    site.until_over(*names)
    assert all(site.outcomes(name) == [OK] for name in names)


def test_a_failure_is_tried_again_as_often_as_was_said(site: Site) -> None:
    site.submit("j", "echo $ALIQUOT_ATTEMPT_NUMBER; exit 1", retries=2).until_over("j")
    assert site.outcomes("j") == [LOST, LOST, FAILED]
    assert [site.output("j", attempt) for attempt in (1, 2, 3)] == ["1\n", "2\n", "3\n"]


@pytest.mark.parametrize("crashes", [False, True], ids=["one service", "taken up by another"])
@pytest.mark.parametrize("reason", ["time-limit", "MemoryLimit"])
def test_a_limit_is_final_however_many_retries_are_left(site: Site, reason: str, crashes: bool) -> None:
    limit = {"time_ms": 300} if reason == "time-limit" else {}
    site.submit("j", "sleep 60", retries=3, **limit).until_running("j")
    if reason != "time-limit":
        site.launcher.stop(JobId("j"), 1, reason)
    if crashes:
        site.crash()
    site.until_over("j")
    assert (site.ending("j").reason, site.outcomes("j")) == (reason, [FAILED])


def test_repeated_steps_change_nothing(site: Site) -> None:
    site.submit("j", f"echo x >> {site.folder}/ran; sleep 60").until_running("j")
    start = Start(JobId("j"), 1, (a_placement(site.nodes[0], [0]),))
    site.cluster.carry_out([start, start, Kill(JobId("j"), 0)])
    site.crash()
    site.cluster.carry_out([start, start])
    site.turn(50)
    assert site.phase("j") is Phase.RUNNING
    site.cancel("j").until_over("j")
    site.cluster.carry_out([start, Kill(JobId("j"), 1)])
    assert site.turn(50) == []
    assert (site.folder / "ran").read_text() == "x\n"
    assert site.outcomes("j") == [FAILED]


def test_news_that_was_lost_with_the_service_is_told_again(site: Site) -> None:
    site.submit("j", "exit 6").until(lambda: site.at("j").ending() is not None)
    site.crash()
    site.until_over("j")
    assert (site.ending("j").status, site.outcomes("j")) == (6, [FAILED])


def test_nothing_of_an_attempt_is_kept_in_its_folder_once_it_is_on_record(site: Site) -> None:
    site.submit("j", "true").until_over("j").turn(10)
    wait_for(lambda: not [path for path in site.places.state.iterdir() if path.is_dir()])
    assert site.ending("j").is_success


def test_a_kill_of_what_was_never_started_is_an_end(site: Site) -> None:
    site.cluster.carry_out([Kill(JobId("ghost"), 1)] * 2)
    assert [(event.job, event.outcome) for event in site.turn() if isinstance(event, Ended)] == [
        ("ghost", FAILED)
    ]
    site.cluster.carry_out([Start(JobId("ghost"), 1, (a_placement(site.nodes[0], [0]),))])
    assert site.turn(50) == []


def test_a_move_is_a_restart_elsewhere(site: Site) -> None:
    site.submit("j", "sleep 60").until_running("j")
    site.cluster.carry_out([Move(JobId("j"), 1, 0, a_placement(site.nodes[0], [3]))])
    site.until(lambda: site.starts("j") == [1, 2])
    assert site.outcomes("j") == [LOST]
    assert site.ending("j").reason == "moved"


def test_a_job_without_a_payload_fails_by_name(site: Site) -> None:
    site.submit("j", "true")
    site.journal._beside._attached.clear()
    site.until_over("j")
    assert site.outcomes("j") == [FAILED]
    assert site.said == ["j: nothing that can be read says what it runs; it has failed"]
    assert site.ending("j").text == "nothing that can be read says what it runs"


def test_a_host_that_cannot_start_anything_refuses_and_keeps_the_job(site: Site) -> None:
    site.launcher.places = site.places._replace(program=site.folder / "gone")
    site.submit("j", "true").until(lambda: site.outcomes("j") == [None])
    (refusal,) = [event for event in site.told if isinstance(event, StartRefused)]
    assert "gone" in refusal.reason or "No such file" in refusal.reason
    assert site.phase("j") is Phase.PENDING
    site.launcher.places = site.places
    site.until_over("j")
    assert site.outcomes("j") == [None, OK]


def test_work_that_is_over_while_processes_are_not_is_stopping_and_stays_booked(site: Site) -> None:
    site.submit("j", "(trap '' TERM; sleep 60; sleep 60) & sleep 0.1").until(
        lambda: any(isinstance(event, Stopping) for event in site.told)
    )
    assert site.phase("j") is Phase.STOPPING
    assert JobId("j") in site.world.grants
    site.until_over("j")
    assert site.outcomes("j") == [OK]


def test_times_told_never_go_back(site: Site) -> None:
    for at in range(5):
        site.submit(f"j{at}", "true")
    site.until_over(*(f"j{at}" for at in range(5)))
    times = [event.at for event in site.told]
    assert times == sorted(times)


def test_supervisors_outlive_the_nursery_and_a_new_one_is_begun(site: Site) -> None:
    site.submit("before", "sleep 0.3; exit 7").submit("long", "sleep 60").until_running("before", "long")
    nursery = site.launcher._nursery
    assert nursery is not None
    os.kill(nursery._pid, signal.SIGKILL)
    site.submit("after", "true").until_over("before", "after")
    assert (site.ending("before").status, site.starts("before")) == (7, [1])
    assert (site.phase("long"), site.starts("long")) == (Phase.RUNNING, [1])
    site.cancel("long").until_over("long")


def test_a_nursery_that_hangs_does_not_keep_the_next_service_from_beginning(site: Site) -> None:
    site.submit("j", "sleep 60").until_running("j")
    nursery = site.launcher._nursery
    assert nursery is not None
    os.kill(nursery._pid, signal.SIGSTOP)
    site._close()
    await_end(site.places.state, patience_s=0.05)
    site._open()
    assert site.turn(20) == []
    site.cancel("j").until_over("j")


def test_an_evicted_job_is_warned_has_its_grace_and_goes_back_to_its_queue(site: Site) -> None:
    saving = "trap 'echo saving; sleep 0.2; echo saved; exit 0' TERM"
    script = f"{saving}; echo ready; while :; do sleep 0.02; done"
    site.submit("j", script, stop=Stop(grace_ms=1), output=Output(err="/dev/null"))
    site.until(lambda: site.output("j") == "ready\n")
    kill = Kill(JobId("j"), 1, grace_ms=10_000, evicted=True)
    site.cluster.carry_out([kill, kill])
    site.until(lambda: site.starts("j") == [1, 2])
    assert site.output("j") == "ready\nsaving\nsaved\n"
    assert (site.outcomes("j"), site.ending("j").reason) == ([LOST], "preempted")
    site.cancel("j").until_over("j")


def test_a_second_job_on_a_card_that_lets_in_one_process_is_refused(site: Site) -> None:
    card = site.nodes[0].cards[0].uuid
    site.launcher._refusal = lambda cards, taken: f"{card} is another's" if card in taken else ""
    half = a_request(1, memory=1000)
    site.submit("first", "sleep 60", half).until_running("first")
    place = site.world.grants[JobId("first")][0].placement
    assert place.cards == (card,)
    site.submit("second", "true", half)
    site.cluster.observe()
    site.cluster.carry_out([Start(JobId("second"), 1, (place,))])
    (refused,) = [event for event in site.cluster.observe() if isinstance(event, StartRefused)]
    assert refused.reason == f"{card} is another's"
    site.cancel("first").until_over("first")


def test_nobody_is_started_on_a_card_that_is_gone_since_it_was_granted(site: Site) -> None:
    """I7: granted, then the service dies, a board is swapped, and the start is still owed: it is refused."""
    site.turn()
    first, *others = (card.uuid for card in site.nodes[0].cards)
    site.submit("j", "echo $CUDA_VISIBLE_DEVICES")
    site._record(site.cluster.observe())
    frozen = site.world.freeze()
    site._record(commit.check(first_fit(frozen, site.clock.now()), frozen, site.clock.now()).events)
    assert site.world.grants[JobId("j")][0].placement.cards == (first,)
    site.crash()
    swapped = a_node("here", ["new", *others])
    site.launcher._refusal = lambda cards, taken: f"{first} is not there" if first in cards else ""
    site.cluster.tell(NodeJoined(0, swapped))
    site.until_over("j")
    assert site.outcomes("j") == [None, OK]
    (refused,) = [event for event in site.told if isinstance(event, StartRefused)]
    assert refused.reason == f"{first} is not there"
    assert site.output("j", 2).strip() in {"new", *others}


def test_a_gang_that_was_begun_in_part_when_the_service_died_is_begun_anew_as_a_whole(site: Site) -> None:
    script = "[ $ALIQUOT_ATTEMPT_NUMBER = 2 ] || exec sleep 60; echo $ALIQUOT_ATTEMPT_NUMBER"
    site.submit("gang", script, [a_request(1)] * 3)
    site.until(lambda: site.phase("gang") is Phase.STARTING)
    wait_for(lambda: all(site.at("gang", member=at).begun() for at in range(3)))
    site._close()
    await_end(site.places.state)
    left = site.at("gang", member=2)  # as if its order had never reached the nursery
    pid = left.holder()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: left.holder() is None and not site.processes("gang", member=2))
    left.drop()
    site._open()
    site.until_over("gang")
    assert site.outcomes("gang") == [LOST, OK]
    assert [site.output("gang", 2, member) for member in range(3)] == ["2\n"] * 3


def test_ports_of_gangs_differ_and_are_free(site: Site) -> None:
    site.submit("a", "echo $MASTER_PORT; sleep 60", [a_request(1)] * 2)
    site.submit("b", "echo $MASTER_PORT; sleep 60", [a_request(1)] * 2).until_running("a", "b")
    wait_for(lambda: all(site.output(name, member=at) for name in "ab" for at in range(2)))
    ports = {name: {site.output(name, member=at) for at in range(2)} for name in "ab"}
    assert all(len(one) == 1 for one in ports.values())
    assert ports["a"] != ports["b"]
    taken = {int(port) for one in ports.values() for port in one}
    port = free_port(taken, "a 1")
    assert port is not None
    assert port not in taken
    with socket.create_server(("127.0.0.1", port)):
        assert free_port(taken, "a 1") != port


def test_a_job_without_others_is_told_of_no_meeting_place_and_one_of_an_array_its_index(site: Site) -> None:
    site.submit("7_3", 'echo "$ALIQUOT_ARRAY $ALIQUOT_ARRAY_INDEX $MASTER_PORT"').until_over("7_3")
    assert site.output("7_3") == "7 3 \n"
