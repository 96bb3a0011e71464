"""Real processes beside a real supervisor: how they end, what they print, and that none of them stays."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from aliquot.core.events import Outcome
from aliquot.core.ids import GrantId, JobId
from aliquot.engines.local.compiled import find_supervisor, put
from aliquot.engines.local.errors import NoSupervisorError
from aliquot.engines.local.folders import Folder, quoted
from aliquot.engines.local.leftovers import is_alive
from aliquot.engines.local.orders import spec_of
from aliquot.engines.local.payload import Output, Stop, User
from tests.support.local import Site, a_payload, is_root, private_kib, supervisor, wait_for

QUIET = Output(err="/dev/null")  # a shell tells of each child that a signal to the whole group ended
OK, FAILED, LOST = Outcome.SUCCEEDED, Outcome.FAILED, Outcome.LOST


@pytest.fixture
def site() -> Iterator[Site]:
    """In a folder that every user may pass through, as a service's is."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o711)
        with Site(folder, durable=False) as made:
            yield made


@pytest.mark.parametrize(
    ("script", "how", "status", "outcome"),
    [
        pytest.param("true", "exited", 0, OK, id="success"),
        pytest.param("exit 3", "exited", 3, FAILED, id="an exit code"),
        pytest.param("exit 255", "exited", 255, FAILED, id="the largest exit code"),
        pytest.param("kill -9 $$", "signalled", 137, FAILED, id="its own KILL"),
        pytest.param("kill -SEGV $$", "signalled", 139, FAILED, id="a fault"),
        pytest.param(["no-such-program"], "unrunnable", 127, FAILED, id="a program that is not there"),
        pytest.param(["/dev/null"], "unrunnable", 126, FAILED, id="a file that is no program"),
    ],
)
def test_ends_are_recorded_as_they_were(
    site: Site, script: str | list[str], how: str, status: int, outcome: Outcome
) -> None:
    site.submit("j", script, rlimits=(("core", 0, 0),)).until_over("j")
    ending = site.ending("j")
    assert (ending.how, ending.status, site.outcomes("j")) == (how, status, [outcome])
    assert ending.reason == ""


def test_a_folder_to_work_in_that_is_not_there_is_the_jobs_fault(site: Site) -> None:
    site.submit("j", "true", cwd="/no/such/folder").until_over("j")
    assert site.outcomes("j") == [FAILED]
    assert site.ending("j").text == "cannot work in /no/such/folder: No such file or directory"


def test_a_job_finds_what_was_said_around_it(site: Site) -> None:
    script = (
        "pwd; umask; echo $GREETING; ulimit -n; echo $CUDA_VISIBLE_DEVICES; echo $0 $#; ps -o pid= -o sid= $$"
    )
    how: dict[str, Any] = {
        "env": (("GREETING", "ni hao 你好"),),
        "umask": 0o077,
        "rlimits": (("nofile", 64, 64),),
    }
    site.submit("j", script, cwd="/usr", **how).until_over("j")
    assert site.output("j").split("\n")[:6] == ["/usr", "0077", "ni hao 你好", "64", "here-g0", "sh 0"]
    pid, session = site.output("j").split()[-2:]
    assert pid == session, "it leads its own session"


def test_usage_is_recorded(site: Site) -> None:
    script = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; sleep 0.1"
    site.submit("j", script).until_over("j")
    ending = site.ending("j")
    assert ending.wall_ms >= 100
    assert ending.user_ms + ending.system_ms > 0
    assert ending.max_rss_kib > 500


# --- output ----------------------------------------------------------------------------------------------


def test_both_streams_go_where_they_were_sent(site: Site) -> None:
    out, err = site.folder / "out", site.folder / "err"
    site.submit("j", "echo one; echo two >&2", output=Output(str(out), str(err))).until_over("j")
    assert (out.read_text(), err.read_text()) == ("one\n", "two\n")
    site.submit("k", "echo one; echo two >&2").until_over("k")
    assert site.output("k") == "one\ntwo\n"


def test_long_output_is_rotated_and_nothing_is_torn(site: Site) -> None:
    out = site.folder / "out"
    script = "i=1000; while [ $i -lt 5000 ]; do echo $i; i=$((i+1)); done"
    site.submit("j", script, output=Output(str(out), keep_kib=4, keep_files=3)).until_over("j")
    files = [out.with_name("out.2"), out.with_name("out.1"), out]
    text = "".join(file.read_text() for file in files)
    numbers = [int(line) for line in text.split("\n")[1:-1]]
    assert numbers == list(range(5000 - len(numbers), 5000))
    assert all(file.stat().st_size <= 4096 for file in files)
    assert not out.with_name("out.3").exists()
    assert len(numbers) > 800, "any two files in a row hold more than one may"


def test_output_that_cannot_be_written_is_counted_and_holds_nobody_up(site: Site) -> None:
    site.submit("j", "head -c 300000 /dev/zero", output=Output("/dev/full")).until_over("j")
    assert site.outcomes("j") == [OK]
    assert site.ending("j").lost_bytes == 300_000


def test_a_great_deal_of_output_arrives_whole(site: Site) -> None:
    site.submit("j", "head -c 20000000 /dev/zero | tr '\\0' x").until_over("j")
    assert site.launcher.output_of(GrantId(JobId("j"), 1, 0)).stat().st_size == 20_000_000
    assert site.ending("j").lost_bytes == 0


# --- users -----------------------------------------------------------------------------------------------


@pytest.fixture
def nobody() -> User:
    if not is_root():
        pytest.skip("only root may run jobs as other users")
    return User(65534, 65534, (4, 20))


def test_a_job_runs_as_its_user_and_nothing_of_ours_stays_open_to_it(site: Site, nobody: User) -> None:
    site.submit("j", "id -u; id -g; id -G; ls /proc/self/fd", user=nobody).until_over("j")
    uid, gid, groups, *fds = site.output("j").splitlines()
    assert (uid, gid, groups) == ("65534", "65534", "65534 4 20")
    assert fds == ["0", "1", "2", "3"], "3 is what ls itself opened"


def test_output_cannot_be_sent_where_the_user_may_not_write(site: Site, nobody: User) -> None:
    secret = site.folder / "secret"
    secret.write_text("untouched")
    secret.chmod(0o600)
    link = Path(tempfile.mkdtemp()) / "link"
    link.symlink_to(secret)
    link.parent.chmod(0o777)
    site.submit("j", "echo gone", user=nobody, output=Output(str(link))).until_over("j")
    shutil.rmtree(link.parent)
    assert secret.read_text() == "untouched"
    assert site.outcomes("j") == [FAILED]
    assert "Permission denied" in site.ending("j").text


def test_the_records_are_not_open_to_the_jobs_user(site: Site, nobody: User) -> None:
    path = site.at("j").path
    script = f"cat {path}/spec {path}/start; echo kill x > {path}/control; ls {site.places.state}; true"
    site.submit("j", script, user=nobody).until_over("j")
    assert site.output("j").count("ermission denied") == 4
    assert site.outcomes("j") == [OK]


# --- stopping --------------------------------------------------------------------------------------------


def test_a_job_is_warned_then_asked_then_killed(site: Site) -> None:
    script = "trap 'echo warned' USR1; trap 'echo asked' TERM; echo ready; while :; do sleep 0.02; done"
    stop = Stop(warn_signal=int(signal.SIGUSR1), warn_ms=150, grace_ms=200)
    site.submit("j", script, stop=stop, output=QUIET).until(lambda: site.output("j") == "ready\n")
    site.cancel("j").until_over("j")
    ending = site.ending("j")
    assert site.output("j") == "ready\nwarned\nasked\n"
    assert (ending.how, ending.signal, ending.reason) == ("signalled", signal.SIGKILL, "cancelled")
    assert 350 <= ending.wall_ms < 3000


@pytest.mark.parametrize("first", [(), ("cancelled",)], ids=["at once", "while it takes its own time"])
def test_who_harms_others_does_not_take_the_time_he_asked_for(site: Site, first: tuple[str, ...]) -> None:
    script = "trap '' USR1 TERM; echo ready; while :; do sleep 0.02; done"
    hour = 3_600_000
    stop = Stop(warn_signal=int(signal.SIGUSR1), warn_ms=hour, grace_ms=hour)
    site.submit("j", script, stop=stop, output=QUIET).until(lambda: site.output("j") == "ready\n")
    for reason in first:
        site.launcher.stop(JobId("j"), 1, reason)
    site.launcher.stop(JobId("j"), 1, "MemoryLimit", "within 50\n")
    site.until_over("j")
    ending = site.ending("j")
    assert (ending.signal, ending.reason) == (signal.SIGKILL, (*first, "MemoryLimit")[0])


def test_a_job_that_leaves_in_time_is_not_killed(site: Site) -> None:
    site.submit("j", "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.02; done", output=QUIET)
    site.until(lambda: site.output("j") == "ready\n").cancel("j").until_over("j")
    assert site.output("j") == "ready\nbye\n"
    assert (site.ending("j").how, site.ending("j").reason) == ("exited", "cancelled")
    assert site.outcomes("j") == [FAILED]


def test_the_end_of_its_time_is_the_end_with_a_warning_before(site: Site) -> None:
    script = "trap 'echo warned' USR1; echo ready; while :; do sleep 0.02; done"
    stop = Stop(warn_signal=int(signal.SIGUSR1), warn_ms=200, grace_ms=300)
    site.submit("j", script, stop=stop, time_ms=500, output=QUIET).until_over("j")
    ending = site.ending("j")
    assert site.output("j") == "ready\nwarned\n"
    assert (ending.how, ending.signal, ending.reason) == ("signalled", signal.SIGTERM, "time-limit")
    assert 500 <= ending.wall_ms < 780
    assert site.outcomes("j") == [FAILED]


def test_a_stopped_process_is_ended_too(site: Site) -> None:
    site.submit("j", "kill -STOP $$").until_running("j").cancel("j").until_over("j")
    assert site.ending("j").signal == signal.SIGTERM


def test_signals_reach_the_job(site: Site) -> None:
    site.submit("j", "trap 'echo hup; exit 5' HUP; echo ready; while :; do sleep 0.02; done", output=QUIET)
    site.until(lambda: site.output("j") == "ready\n")
    assert site.launcher.signal(JobId("j"), signal.SIGHUP)
    site.until_over("j")
    assert (site.output("j"), site.ending("j").status) == ("ready\nhup\n", 5)


def test_what_a_job_leaves_behind_is_ended_before_it_is_over(site: Site) -> None:
    nap = f"sleep 300.{os.getpid()}"  # nobody else's on this machine
    script = (
        f"{nap} & setsid {nap} & (setsid sh -c 'trap \"\" TERM; {nap}; {nap}' &) ; sleep 0.1;"
        f" env -i setsid -f {nap}; exit 0"
    )
    site.submit("j", script).until_running("j")
    begun = site.at("j").begun()
    assert begun is not None
    wait_for(lambda: len(site.processes("j")) >= 5)
    left = site.processes("j")
    site.until_over("j")
    assert [pid for pid in left if is_alive(pid)] == []
    assert site.outcomes("j") == [OK], "its own work was done"
    asleep = subprocess.run(["pgrep", "-f", nap], capture_output=True, text=True, check=False)
    assert asleep.stdout == ""


# --- the supervisor itself -------------------------------------------------------------------------------


def test_it_is_small(site: Site) -> None:
    site.submit("j", "sleep 60").until_running("j")
    pid = site.at("j").holder()
    assert pid is not None
    assert private_kib(pid) <= 3 * 1024


def test_when_it_is_killed_its_job_goes_with_it_and_comes_back(site: Site) -> None:
    site.submit("j", "setsid sleep 300 & trap '' TERM; sleep 300; sleep 300").until_running("j")
    wait_for(lambda: len(site.processes("j")) == 3)
    pid, left = site.at("j").holder(), site.processes("j")
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    site.until(lambda: site.starts("j") == [1, 2])
    assert [number for number in left if is_alive(number)] == []
    assert site.outcomes("j") == [LOST]
    site.cancel("j").until_over("j")


def test_an_attempt_runs_once_however_many_supervisors_come(tmp_path: Path) -> None:
    folder = Folder(tmp_path, GrantId(JobId("j"), 1, 0))
    payload = a_payload(f"echo x >> {tmp_path}/ran; sleep 0.2")
    folder.prepare(spec_of(payload, {"PATH": os.environ["PATH"]}, tmp_path / "out", None))
    both = [subprocess.Popen([supervisor(), str(folder.path)]) for _ in range(5)]
    codes = sorted(process.wait(10) for process in both)
    assert codes[0] == 0
    assert set(codes[1:]) <= {3, 4}
    assert subprocess.run([supervisor(), str(folder.path)], check=False).returncode == 4
    assert (tmp_path / "ran").read_text() == "x\n"


def test_an_attempt_made_void_never_runs(tmp_path: Path) -> None:
    folder = Folder(tmp_path, GrantId(JobId("j"), 1, 0))
    folder.prepare(spec_of(a_payload("true"), {}, tmp_path / "out", None))
    assert folder.make_void()
    assert subprocess.run([supervisor(), str(folder.path)], check=False).returncode == 4
    assert folder.begun() is None


GATE: Final = """
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int access(const char *path, int mode) {
    if (!strcmp(path, "void")) {
        close(open(getenv("REACHED"), O_WRONLY | O_CREAT, 0600));
        while (faccessat(AT_FDCWD, getenv("OPEN"), F_OK, 0) < 0) usleep(1000);
    }
    return faccessat(AT_FDCWD, path, mode, 0);
}
"""
"""Holds up whoever looks whether its attempt was made void, until a file is there."""


def test_a_supervisor_that_comes_while_its_folder_is_taken_away_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the lock, and the records it would have found go while it looks; the folder is still there."""
    folder = Folder(tmp_path / "state", GrantId(JobId("j"), 1, 0))
    folder.path.parent.mkdir()
    folder.prepare(spec_of(a_payload("true"), {}, tmp_path / "out", None))
    assert folder.make_void()
    reached, way = tmp_path / "reached", tmp_path / "open"
    gate = str(tmp_path / "gate.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", gate, "-xc", "-"], input=GATE, text=True, check=True)
    env = {"LD_PRELOAD": gate, "REACHED": str(reached), "OPEN": str(way)}
    late = subprocess.Popen([supervisor(), folder.at], env=env)
    wait_for(reached.exists)
    rmdir = os.rmdir

    def meanwhile(*where: Any, **how: Any) -> None:
        way.touch()
        late.wait(10)
        rmdir(*where, **how)

    monkeypatch.setattr(os, "rmdir", meanwhile)
    folder.drop()
    assert late.wait(10) == 4
    assert list(folder.path.parent.iterdir()) == []


def test_what_nobody_finished_taking_away_is_gone_after_a_restart(tmp_path: Path) -> None:
    with Site(tmp_path) as site:
        (site.places.state / "j.1.0.gone").mkdir()
        (site.places.state / "j.1.0.gone" / "lock").touch()
        site.crash()
        assert list(site.places.state.glob("*.gone")) == []


@pytest.mark.parametrize("job", ["plain", "../../etc", "a/b:c", ".", "名字", "x" * 500, "%2e", ""])
def test_any_job_id_becomes_one_folder_of_its_own(job: str) -> None:
    name = quoted(job + "!")
    assert "/" not in name
    assert name not in {".", ".."}
    assert len(name.encode()) <= 255


def test_without_a_compiler_it_is_said_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(NoSupervisorError, match="apt-get install gcc"):
        find_supervisor(tmp_path, compiler="no-such-compiler")
    assert find_supervisor(tmp_path, ready_made=supervisor()) == supervisor()


def test_a_service_leaves_alone_what_another_of_this_machine_runs_by_the_same_name(
    site: Site, tmp_path: Path
) -> None:
    """Job ids begin at 1 in every service: what lives of "1" over there is no leftover of "1" here."""
    with Site(tmp_path / "other") as other:
        other.submit("1", "setsid sleep 60 & sleep 60").until_running("1")
        wait_for(lambda: len(other.processes("1")) == 3)
        site.submit("1", "exit 0").until_over("1")
        assert len(other.processes("1")) == 3
        assert site.processes("1") == []


def test_the_program_is_on_the_disk_before_its_name_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a power cut leaves the name with nothing, or half, behind it."""
    settled: list[str] = []

    def fsync(handle: int) -> None:
        settled.append(str(Path(f"/proc/self/fd/{handle}").readlink()))

    monkeypatch.setattr(os, "fsync", fsync)
    (tmp_path / "made").write_bytes(b"program")
    put(tmp_path / "made", tmp_path / "at")
    assert settled == [str(tmp_path / "made"), str(tmp_path)]
    assert (tmp_path / "at").read_bytes() == b"program"
