"""The record under a running service: what is broken, locked or out of time costs no more than it must."""

from __future__ import annotations

import contextlib
import resource
import sqlite3
import subprocess
import time

import pytest

from aliquot.control.errors import UnavailableError
from aliquot.core.events import JobCancelled
from aliquot.core.ids import JobId
from aliquot.core.queueing.outlook import Expected
from aliquot.engines.local.journal import SqliteJournal
from tests.engines.local.test_full_disk import small_disk
from tests.engines.local.test_journal_damage import change, make_unreadable
from tests.support.command import aliquot, complaint
from tests.support.local import wait_for
from tests.support.service import LiveService

HOUR_MS = 3_600_000


def notes(service: LiveService) -> str:
    """All that a person is told of the service."""
    return "\n".join(service.client.site().notes)


def test_a_page_of_what_jobs_run_that_cannot_be_read_costs_those_on_it_and_stops_no_restart() -> None:
    with LiveService() as service:
        running = service.submit("sleep 60", gpus=8)
        service.until_running(running)
        lost = service.submit("true", gpus=8, env={"MARK": "of-the-lost" + "x" * 9_000})
        padding = [service.submit("true", gpus=8, env={"PAD": "x" * 9_000}) for _ in range(5)]
        service.stop()
        make_unreadable(service.state / "journal.db", b"of-the-lost")
        service.start()
        assert "pages of payloads cannot be read" in notes(service)
        assert service.client.job(running).job.phase == "running"
        service.client.cancel(running)
        detail = service.client.wait(lost)
        (ending,) = detail.attempts[-1].exits
        assert ending is not None
        assert (detail.job.phase, ending.text) == ("failed", "nothing that can be read says what it runs")
        ends = [service.client.wait(job).job.phase for job in padding]
        assert ends.count("succeeded") >= 4, "one may have been on the same page"
        assert f"{lost}: nothing that can be read says what it runs" in notes(service)


@pytest.mark.parametrize("table", ["payloads", "endings"])
def test_what_lies_beside_a_job_and_makes_no_sense_stops_no_restart(table: str) -> None:
    with LiveService() as service:
        over, runs = service.submit("true"), service.submit("sleep 60")
        service.until_running(runs).client.wait(over)
        service.stop()
        change(service.state / "journal.db", f"UPDATE {table} SET body = x'7b22ff'")
        service.start()
        assert service.client.job(over).job.phase == "succeeded"
        assert service.client.wait(service.submit("true")).job.phase == "succeeded"
        assert service.client.job(runs).job.phase == "running"
        service.client.cancel(runs)


def test_a_byte_that_turned_in_what_a_job_runs_fails_the_job_and_runs_nothing_else() -> None:
    with LiveService() as service:
        busy = service.submit("sleep 60", gpus=8)
        service.until_running(busy)
        waiting = service.submit("echo right", gpus=8)
        service.kill()
        statement = "UPDATE payloads SET body = CAST(replace(body, 'right', 'wrong') AS BLOB) WHERE job = "
        change(service.state / "journal.db", statement + waiting)
        service.start()
        assert f"what job {waiting} runs is not what was recorded: its checksum is wrong" in notes(service)
        service.client.cancel(busy)
        detail = service.client.wait(waiting)
        assert detail.job.phase == "failed"
        assert service.client.output(waiting).body == b""


def test_how_right_predicted_starts_were_outlives_a_killed_service() -> None:
    with LiveService() as service:
        busy = service.submit("sleep 60", gpus=8, time="2m")
        service.until_running(busy)
        waiting = [service.submit("true", gpus=8, time="1m") for _ in range(3)]
        for job in waiting:
            wait_for(lambda job=job: expected(service, job).at_ms is not None, "a look ahead")
        service.client.cancel(busy, now=True)
        for job in waiting:
            service.client.wait(job)
        for end in (service.kill, service.stop):
            end()
            service.start()
            busy = service.submit("sleep 60", gpus=8, time="2m")
            service.until_running(busy)
            last = service.submit("true", gpus=8, time="1m")
            wait_for(lambda last=last: expected(service, last).at_ms is not None, "a look ahead")
            assert expected(service, last).seen >= len(waiting)
            service.client.cancel(last)
            service.client.cancel(busy, now=True)
            service.client.wait(busy)


def expected(service: LiveService, job: str) -> Expected:
    """When it is expected to start."""
    found = service.client.job(job).expected
    assert found is not None
    return found


def test_a_broken_tail_is_named_and_everything_before_it_is_there() -> None:
    with LiveService() as service:
        job = service.submit("true")
        service.client.wait(job)
        service.kill()
        with contextlib.closing(sqlite3.connect(service.state / "journal.db")) as db:
            db.execute("DELETE FROM snapshots")
            db.execute("UPDATE batches SET body = x'5b' WHERE seq = (SELECT max(seq) FROM batches)")
            db.commit()
        service.start()
        assert "its checksum is wrong" in notes(service)
        assert service.client.wait(job).job.over_ms is not None
        assert service.client.wait(service.submit("true")).job.phase == "succeeded"


def test_a_second_service_on_one_record_is_told_who_has_it_and_changes_nothing() -> None:
    with LiveService() as service:
        job = service.submit("sleep 60")
        service.until_running(job)
        assert service.process is not None
        said = complaint(aliquot("up", "--simulate", "l40s-4", "--state", service.state))
        assert f"process {service.process.pid}" in said
        assert service.client.job(job).job.phase == "running"
        service.client.cancel(job)


def test_a_wall_clock_that_was_set_back_between_two_services_sets_no_time_back() -> None:
    with LiveService() as service:
        before = service.submit("true")
        service.client.wait(before)
        service.stop()
        ahead = time.time_ns() // 1_000_000 + HOUR_MS
        with SqliteJournal(service.state / "journal.db") as journal:
            journal.append([JobCancelled(ahead, JobId("nobody"))])
        service.start()
        assert "s behind the last recorded event; times go on from that event" in notes(service)
        after = service.submit("true", retries=1)
        detail = service.client.wait(after)
        assert detail.job.phase == "succeeded"
        assert detail.job.submitted_ms >= ahead
        assert ahead <= detail.attempts[0].granted_ms <= (detail.job.over_ms or 0) < ahead + HOUR_MS
        assert service.client.job(before).job.phase == "succeeded"
        wait_for(lambda: {card.free_compute_milli for card in service.client.gpus()} == {1000}, "the cards")


def test_a_disk_that_fails_under_a_running_service_ends_it_in_one_line_and_no_job() -> None:
    with LiveService() as service:
        job = service.submit("sleep 60")
        service.until_running(job)
        assert service.process is not None
        resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (8192, 8192))
        with pytest.raises(UnavailableError):
            service.submit("true")
        said, _ = service.process.communicate(timeout=20)
        assert service.process.returncode == 2
        last = said.splitlines()[-1]
        assert last.startswith("aliquot: error: the service stopped: ")
        assert "disk I/O error; the journal is closed until the service is restarted" in last
        assert "Traceback" not in said
        service.start()
        assert [one.id for one in service.client.jobs()] == [job], "what was not acknowledged is not there"
        assert service.client.job(job).attempts[-1].number == 1
        assert service.client.job(job).job.phase == "running"
        service.client.cancel(job)


def test_a_state_on_a_disk_that_may_only_be_read_is_named_in_one_line() -> None:
    with LiveService() as service, small_disk(service.folder / "disk", 4) as disk:
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        for state in (disk, disk / "new"):
            said = complaint(aliquot("up", "--simulate", "l40s-4", "--state", state))
            assert str(disk) in said
            assert "Read-only file system" in said
