"""Arrays and gangs on a running service: real processes, and what people see of them."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from aliquot.client import Submission
from aliquot.control.errors import ConflictError
from aliquot.core.errors import NotFoundError
from tests.support.command import complaint
from tests.support.local import wait_for
from tests.support.service import LiveService


@pytest.fixture(scope="module")
def service() -> Iterator[LiveService]:
    with LiveService() as running:
        yield running


def array(service: LiveService, indices: str, script: str, **more: object) -> str:
    """An array of shell scripts on a card each."""
    spec = {"gpu": {"count": 1}, "array": indices}
    return service.client.submit(Submission(command=("sh", "-c", script), spec=spec, grace="0.5s", **more))


def gang(service: LiveService, members: int, script: str, **more: object) -> str:
    """Members of one card each."""
    return service.submit(script, spec={"members": members}, **more)


def test_an_array_is_a_job_for_each_index_and_at_most_so_many_at_once(service: LiveService) -> None:
    under_way = service.folder / "under-way"
    under_way.mkdir()
    own = f"{under_way}/$ALIQUOT_ARRAY_INDEX"
    script = f"touch {own}; ls {under_way} | wc -l; sleep 0.3; rm {own}; exit $((ALIQUOT_ARRAY_INDEX == 5))"
    name = array(service, "1,5,10-14:2%2", script)
    rows = service.client.jobs(array=name)
    assert [row.id for row in rows] == [f"{name}_{index}" for index in (1, 5, 10, 12, 14)]
    assert service.run("wait", name).code == 1
    seen = [int(service.client.output(row.id).body) for row in rows]
    assert max(seen) <= 2
    (folded,) = service.client.jobs(array=name, fold=True)
    assert folded.counts == {"succeeded": 4, "failed": 1}
    assert (folded.id, folded.exit_status, folded.phase) == (name, 1, "failed")
    line = next(line for line in service.run("jobs", "--all").out.splitlines() if line.split()[0] == name)
    assert "4 succeeded, 1 failed" in line
    assert f"{name}_12" in service.run("jobs", "--all", "--each").out
    assert f"{name}_12" in service.run("job", name).out
    assert "exited with 1" in service.run("job", f"{name}_5").out


def test_run_stays_with_an_array_and_answers_with_its_worst_exit_code(service: LiveService) -> None:
    script = "exit $((ALIQUOT_ARRAY_INDEX / 3 * 7))"
    done = service.run("run", "--gpus", "0", "--array", "0-3%2", "--", "sh", "-c", script)
    assert done.code == 7
    assert "3 succeeded, 1 failed" in done.err


def test_to_cancel_an_array_cancels_all_of_it(service: LiveService) -> None:
    name = array(service, "0-29%3", "sleep 60")
    wait_for(lambda: sum(row.phase == "running" for row in service.client.jobs(array=name)) == 3, "three")
    assert "array" in complaint(service.run("logs", name))
    service.client.cancel(name)
    assert service.run("wait", name).code != 0
    assert {row.phase for row in service.client.jobs(array=name)} == {"cancelled"}
    with pytest.raises(ConflictError, match="over already"):
        service.client.cancel(name)


def test_a_job_may_wait_for_a_whole_array_and_a_document_may_hold_one(service: LiveService) -> None:
    marks = service.folder / "marks"
    file = service.write(
        "array.yaml",
        "apiVersion: aliquot.dev/v1\nkind: Job\nmetadata: {name: all}\n"
        f"spec: {{cpu: 1, array: {{size: 3}}, command: 'sleep 0.2; echo x >> {marks}'}}\n---\n"
        "apiVersion: aliquot.dev/v1\nkind: Job\nmetadata: {name: last}\n"
        f"spec: {{cpu: 1, afterOk: all, command: 'wc -l < {marks}'}}\n",
    )
    answers = json.loads(service.run("submit", file, "--json").out)
    assert [answer["jobs"] for answer in answers] == [3, 1]
    last = answers[1]["id"]
    assert service.client.wait(last).job.phase == "succeeded"
    assert service.client.output(last).body.split() == [b"3"]


def test_an_array_under_a_key_is_one_array_however_often_it_is_submitted(service: LiveService) -> None:
    name = array(service, "0-4", "true", key="k")
    assert array(service, "0-4", "true", key="k") == name
    service.kill().start()
    assert array(service, "0-4", "true", key="k") == name
    assert service.submit("true") == str(int(name) + 5), "numbers go on behind it"


def test_numbers_that_are_no_indices_are_refused(service: LiveService) -> None:
    for wrong in ("5-1", "a", "1-5:0", "0-9%x", ""):
        said = complaint(service.run("run", "--array", wrong, "--", "true"))
        assert "spec.array" in said


def test_members_of_a_gang_have_cards_of_their_own_and_can_meet(service: LiveService) -> None:
    script = (
        "echo $ALIQUOT_RANK $ALIQUOT_SIZE $RANK $WORLD_SIZE $MASTER_ADDR $MASTER_PORT $CUDA_VISIBLE_DEVICES"
    )
    job = gang(service, 3, script)
    assert service.client.wait(job).job.phase == "succeeded"
    said = [service.client.output(job, member=member).body.decode().split() for member in range(3)]
    assert [words[:4] for words in said] == [[str(rank), "3", str(rank), "3"] for rank in range(3)]
    assert len({words[5] for words in said}) == 1
    assert {words[4] for words in said} == {"127.0.0.1"}
    assert len({words[6] for words in said}) == 3
    lines = service.run("logs", job).out.splitlines()
    assert [line.split()[:2] for line in lines] == [["0:", "0"], ["1:", "1"], ["2:", "2"]]
    assert service.run("logs", "--member", "2", job).out.split()[0] == "2"


MEET = """
import os, socket
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
at = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if rank == 0:
    with socket.create_server(at) as server:
        others = [server.accept()[0] for _ in range(size - 1)]
        print(sorted(int(other.recv(9)) for other in others))
else:
    import time
    for _ in range(400):
        try:
            peer = socket.create_connection(at)
            break
        except OSError:
            time.sleep(0.05)
    peer.sendall(str(rank).encode())
"""


def test_the_port_is_one_that_the_first_member_can_listen_on(service: LiveService) -> None:
    program = service.write("meet.py", MEET)
    done = service.run("run", "--members", "4", "--gpus", "0", "--cpu", "0.1", "--", "python3", program)
    assert (done.code, done.out) == (0, "0: [1, 2, 3]\n"), done


def test_a_gang_fails_as_a_whole_where_one_member_fails(service: LiveService) -> None:
    script = (
        "if [ $ALIQUOT_RANK = 1 ]; then sleep 0.3; exit 5; fi;"
        "trap 'echo told; exit 0' TERM; while :; do sleep 0.05; done"
    )
    done = service.run("run", "--members", "3", "--", "sh", "-c", script)
    assert done.code == 5
    assert {"0: told", "2: told"} <= set(done.out.splitlines())
    plain = service.run("run", "--members", "3", "--", "sh", "-c", "[ $RANK = 1 ] && exit 4; exec sleep 60")
    failed = service.client.jobs()[-1].id
    assert (plain.code, service.client.job(failed).job.exit_status) == (4, 4)
    assert service.run("wait", failed).code == 4
    deaf = service.folder / "deaf"
    fails = f"[ $ALIQUOT_RANK = 1 ] && {{ until [ -e {deaf} ]; do sleep 0.05; done; exit 6; }}"
    stubborn = gang(service, 2, f"{fails}; trap '' TERM; touch {deaf}; while :; do sleep 0.05; done")
    detail = service.client.wait(stubborn)
    (attempt,) = detail.attempts
    assert [ending and ending.status for ending in attempt.exits] == [128 + signal.SIGKILL, 6]
    assert [card.free_compute_milli for card in service.client.gpus()] == [1000] * 8


def test_a_gang_that_asks_for_more_than_there_is_waits_and_never_starts_in_part(service: LiveService) -> None:
    busy = service.submit("sleep 60", gpus=6)
    service.until_running(busy)
    job = gang(service, 4, "true")
    assert service.client.job(job, phase="pending", timeout=0.4).attempts == ()
    service.client.cancel(busy)
    assert service.client.wait(job).job.phase == "succeeded"


def test_a_gang_is_adopted_whole_and_ends_whole_when_a_member_is_killed(service: LiveService) -> None:
    pids = service.folder / "pids"
    job = gang(service, 3, f"echo $$ >> {pids}; exec sleep 60", retries=0)
    service.until_running(job)
    wait_for(lambda: pids.exists() and len(pids.read_text().split()) == 3, "all members")
    service.kill().start()
    assert service.client.job(job).job.phase == "running"
    assert all(_lives(int(pid)) for pid in pids.read_text().split())
    os.kill(int(pids.read_text().split()[1]), signal.SIGKILL)
    detail = service.client.wait(job)
    assert detail.job.phase == "failed"
    assert not any(_lives(int(pid)) for pid in pids.read_text().split())
    assert len(detail.attempts) == 1


def test_a_task_of_an_array_that_never_was_is_not_found(service: LiveService) -> None:
    with pytest.raises(NotFoundError):
        service.client.job("999_3")


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except OSError:
        return False
