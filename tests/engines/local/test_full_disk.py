"""A disk that a job's output, or somebody else, fills: ends are recorded, new work has to wait."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from aliquot.control.errors import UnavailableError
from aliquot.core.events import Event, JobCancelled, JobSubmitted, Reserved
from aliquot.core.ids import JobId
from aliquot.engines.local.errors import JournalFullError
from aliquot.engines.local.journal import SqliteJournal
from aliquot.engines.local.reserve import Reserve
from tests.support.build import a_job
from tests.support.local import is_root, wait_for
from tests.support.service import LiveService

MIB = 1 << 20


def test_output_leaves_room_on_the_disk_and_what_is_lost_is_counted() -> None:
    with service_on_a_small_disk() as service:
        job = service.submit("yes | head -c 60M")
        detail = service.client.wait(job)
        assert detail.job.phase == "succeeded"
        (ending,) = detail.attempts[-1].exits
        assert ending is not None
        assert ending.lost_bytes > 45 * MIB
        said = service.run("job", job).out
        assert f"{ending.lost_bytes:,} bytes of its output are lost" in said
        assert service.client.wait(service.submit("true")).job.phase == "succeeded", "others go on"


def test_on_a_full_disk_jobs_end_and_are_cancelled_and_new_ones_wait_for_room() -> None:
    with service_on_a_small_disk() as service:
        first, second = service.submit("sleep 100"), service.submit("sleep 100")
        for job in (first, second):
            wait_for(partial(is_in, service, job, "running"), "it to run")
        fill(service.state / "ballast")
        with pytest.raises(UnavailableError, match="disk is full"):
            submit_many(service)
        fill(service.state / "ballast")  # nothing is left but the reserve
        for job in (first, second):
            service.client.cancel(job)
            wait_for(partial(is_in, service, job, "cancelled"), "it to be over")
        with pytest.raises(UnavailableError, match="new ones once there is room"):
            service.submit("true")
        service.kill().start()
        assert {service.client.job(job).job.phase for job in (first, second)} == {"cancelled"}
        (service.state / "ballast").unlink()
        assert service.client.wait(service.submit("true")).job.phase in {"succeeded", "pending"}


def test_neither_new_work_nor_plans_take_the_reserve_and_ends_do(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 4) as disk, SqliteJournal(disk / "journal.db") as journal:
        reserve = disk / "journal.db.reserve"
        assert reserve.exists()
        (disk / "ballast").write_bytes(b"x" * MIB)
        with pytest.raises(JournalFullError):
            append_many(journal)
        assert reserve.exists()
        assert journal.lack()
        fill(disk / "ballast")
        with pytest.raises(JournalFullError):
            journal.append([Reserved(0, JobId("1"), (), 0)] * 1_000)
        assert reserve.exists(), "what is planned is planned again once there is room"
        gone: list[Event] = [JobCancelled(0, JobId(str(at)), by=1_000 + at) for at in range(400)]
        journal.append(gone)
        assert not reserve.exists()
        assert list(journal.replay())[-len(gone) :] == gone
        (disk / "ballast").unlink()
        assert journal.lack() == ""
        assert reserve.exists(), "it is held again"
        journal.append(submissions(1_000_000, 1))


def test_a_reserve_is_held_only_where_as_much_stays_free(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 4) as disk:
        (disk / "ballast").write_bytes(b"x" * (4 * MIB - 300_000))
        reserve = Reserve(disk / "file")
        assert not reserve.keep()
        assert not reserve.release()
        (disk / "ballast").unlink()
        assert reserve.keep()
        assert Reserve(disk / "file").is_held


QUOTA: Final = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int is_used_up(int fd) {
    char name[64], path[PATH_MAX] = "", reserve[PATH_MAX];
    const char *folder = getenv("QUOTA_OF");
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    if (!folder || readlink(name, path, sizeof path - 1) < 0) return 0;
    if (strncmp(path, folder, strlen(folder))) return 0;
    snprintf(reserve, sizeof reserve, "%s/journal.db.reserve", folder);
    snprintf(path, sizeof path, "%s/used-up", folder);
    return access(path, F_OK) == 0 && access(reserve, F_OK) == 0;
}
#define REAL(name) __typeof__(&name) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
ssize_t pwrite64(int fd, const void *from, size_t size, off64_t at) {
    REAL(pwrite64);
    return is_used_up(fd) ? (errno = EDQUOT, -1) : real(fd, from, size, at);
}
int posix_fallocate64(int fd, off64_t at, off64_t size) {
    REAL(posix_fallocate64);
    return is_used_up(fd) ? EDQUOT : real(fd, at, size);
}
int posix_fallocate(int fd, off_t at, off_t size) { return posix_fallocate64(fd, at, size); }
"""
"""A folder whose quota is used up while a file is there, but for what the reserve in it takes up."""


def test_a_quota_that_is_used_up_is_a_full_disk_and_stops_no_service(tmp_path: Path) -> None:
    shim = str(tmp_path / "quota.so")
    command = ["cc", "-shared", "-fPIC", "-o", shim, "-xc", "-", "-ldl"]
    subprocess.run(command, input=QUOTA, text=True, check=True)
    service = LiveService(LD_PRELOAD=shim)
    service.variables["QUOTA_OF"] = str(service.state)
    with service:
        running = service.submit("sleep 100")
        wait_for(partial(is_in, service, running, "running"), "it to run")
        (service.state / "used-up").touch()
        for _ in range(2):
            with pytest.raises(UnavailableError, match="the disk is full, or the quota on it"):
                service.submit("true")
        service.client.cancel(running)
        wait_for(partial(is_in, service, running, "cancelled"), "it to be over")
        (service.state / "used-up").unlink()
        assert service.client.wait(service.submit("true")).job.phase in {"succeeded", "pending"}


def is_in(service: LiveService, job: str, phase: str) -> bool:
    return service.client.job(job).job.phase == phase


def submissions(first: int, count: int) -> list[Event]:
    return [JobSubmitted(0, a_job(str(at))) for at in range(first, first + count)]


def submit_many(service: LiveService) -> None:
    for _ in range(2_000):
        service.submit("true", gpus=8, env={"PAD": "x" * 50_000})


def append_many(journal: SqliteJournal) -> None:
    for first in range(0, 100_000, 20):
        journal.append(submissions(first, 20))


def fill(path: Path) -> None:
    """Take what is free on the disk."""
    with path.open("ab", buffering=0) as file, suppress(OSError):
        while file.write(b"x" * 4096) == 4096:
            pass


@contextmanager
def small_disk(folder: Path, mib: int) -> Iterator[Path]:
    """A disk of `mib` MiB; skips where it may not be mounted."""
    folder.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={mib}m", "tmpfs", str(folder)]
    if not is_root() or subprocess.run(command, check=False).returncode:
        pytest.skip("a small disk cannot be mounted here; run as root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)  # a job may still write


@contextmanager
def service_on_a_small_disk() -> Iterator[LiveService]:
    """A service whose state has 12 MiB."""
    service = LiveService()
    program = next((service.state / "bin").iterdir())
    body = program.read_bytes()
    with ExitStack() as stack:
        stack.callback(service.__exit__)  # once the disk is gone
        stack.enter_context(small_disk(service.state, 12))
        stack.callback(service.stop)
        service.state.chmod(0o711)
        program.parent.mkdir()
        program.write_bytes(body)
        program.chmod(0o755)
        yield service.start()
