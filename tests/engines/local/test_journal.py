"""The journal on a real disk: what it promises, and what it says when it cannot keep it."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from threading import Barrier, Thread

import msgspec
import pytest

from aliquot.control.snapshots import SnapshotKeeper
from aliquot.core.events import Event, JobCancelled, JobSubmitted, StartRefused
from aliquot.core.ids import JobId
from aliquot.core.jobs import Array
from aliquot.core.world import World
from aliquot.engines.local import schema
from aliquot.engines.local.errors import (
    JournalDamagedError,
    JournalError,
    JournalFullError,
    JournalLockedError,
    JournalReadOnlyError,
    JournalVersionError,
)
from aliquot.engines.local.holding import Holding
from aliquot.engines.local.journal import DOCUMENTS_KEPT, SqliteJournal
from tests.support.build import a_job
from tests.support.histories import MIX, History
from tests.support.local import is_root
from tests.support.same import same_world
from tests.support.worlds import WorldBuilder


def some_events(count: int, first: int = 0) -> list[Event]:
    return [JobCancelled(at, JobId(f"j{at}")) for at in range(first, first + count)]


def test_what_was_appended_is_there_after_opening_again(tmp_path: Path) -> None:
    with SqliteJournal(tmp_path / "new" / "journal.db") as journal:
        journal.append(some_events(3))
        journal.append(some_events(2, first=3))
    with SqliteJournal(tmp_path / "new" / "journal.db") as journal:
        assert list(journal.replay()) == some_events(5)
        assert journal.notes == []


def test_every_commit_is_flushed(tmp_path: Path) -> None:
    with SqliteJournal(tmp_path / "journal.db") as journal:
        (level,) = journal._db.execute("PRAGMA synchronous").fetchone()
        (mode,) = journal._db.execute("PRAGMA journal_mode").fetchone()
    assert (level, mode) == (2, "wal")  # 2 is FULL


def test_threads_share_commits_and_none_is_lost(tmp_path: Path) -> None:
    threads, each = 16, 20
    with SqliteJournal(tmp_path / "journal.db") as journal:
        start = Barrier(threads)

        def write(first: int) -> None:
            start.wait()
            for at in range(first, first + each):
                journal.append(some_events(2, first=2 * at))

        writers = [Thread(target=write, args=(number * each,)) for number in range(threads)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        found = [event.at for event in journal.replay()]
    assert sorted(found) == list(range(2 * threads * each))
    assert all(found[at + 1] == found[at] + 1 for at in range(0, len(found), 2)), "an append stays whole"


def test_a_second_service_is_told_whose_journal_it_is(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    code = "import os,sys,time\nfrom pathlib import Path\nfrom aliquot.engines.local.holding import Holding\n"
    code += "held = Holding(Path(sys.argv[1])); print(os.getpid(), flush=True); time.sleep(60)"
    with subprocess.Popen(
        [sys.executable, "-c", code, f"{path}.lock"],
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
    ) as other:
        assert other.stdout is not None
        pid = int(other.stdout.readline())
        with pytest.raises(JournalLockedError, match=f"in use by process {pid}") as caught:
            SqliteJournal(path)
        assert caught.value.pid == pid
        other.kill()
    SqliteJournal(path).close()


def test_a_journal_that_was_closed_takes_nothing(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "journal.db")
    journal.close()
    journal.close()
    with pytest.raises(JournalError, match="closed"):
        journal.append(some_events(1))


# --- payloads, snapshots, compaction ---------------------------------------------------------------------


def test_a_payload_is_on_record_with_its_submission_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with SqliteJournal(path) as journal:
        for name in ("kept", "given-up"):
            journal.attach(JobId(name), name.encode())
        journal.append([JobSubmitted(0, a_job("kept"))])
        assert journal.payload(JobId("given-up")) == b"given-up"
    with SqliteJournal(path) as journal:
        assert journal.payload(JobId("kept")) == b"kept"
        assert journal.payload(JobId("given-up")) is None
        journal.forget([JobId("kept")])
        assert journal.payload(JobId("kept")) is None


@pytest.mark.parametrize("seed", range(4))
def test_a_restart_from_snapshots_gives_the_running_world(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    history = History(random)
    path = tmp_path / "journal.db"
    done = 0
    for _ in range(8):
        history.run(random.randrange(30))
        with SqliteJournal(path, durable=False) as journal:
            journal.append(history.events[done:])
            done = len(history.events)
            if random.random() < 0.7:
                journal.save(history.world)
            if random.random() < 0.5:
                journal.compact()
            journal.append([])
        with SqliteJournal(path, durable=False) as journal:
            resumed = journal.resume(window=MIX.mix_window)
        assert same_world(resumed.freeze(), history.world.freeze())
        assert resumed.outstanding() == history.world.outstanding()


def test_a_keeper_saves_now_and_then_and_compaction_drops_what_is_behind(tmp_path: Path) -> None:
    world = World()
    with SqliteJournal(tmp_path / "journal.db", durable=False) as journal:
        keeper = SnapshotKeeper(journal, every=10)
        for first in range(0, 50, 2):
            events = [JobSubmitted(at, a_job(f"j{at}", seq=at)) for at in (first, first + 1)]
            journal.append(events)
            world.apply_all(events)
            keeper.see(events, world)
        assert len(list(journal.replay())) == 50
        journal.compact()
        assert [event.at for event in journal.replay()] == list(range(40, 50)), "two snapshots are kept"
        assert same_world(journal.resume().freeze(), world.freeze())


def test_a_snapshot_that_is_broken_gives_way_to_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    world = World()
    with SqliteJournal(path, durable=False) as journal:
        for at in range(3):
            events = [JobSubmitted(at, a_job(f"j{at}", seq=at))]
            journal.append(events)
            world.apply_all(events)
            journal.save(world)
    change(path, "UPDATE snapshots SET body = x'00' WHERE seq = 3")
    with SqliteJournal(path, durable=False) as journal:
        assert same_world(journal.resume().freeze(), world.freeze())


def test_without_any_readable_snapshot_compacted_events_are_missed_aloud(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with SqliteJournal(path, durable=False) as journal:
        for at in range(2):
            journal.append(some_events(1, first=at))
            journal.save(World())
        journal.append(some_events(1, first=2))
        journal.compact()
    change(path, "UPDATE snapshots SET body = x'00'")
    with pytest.raises(JournalDamagedError), SqliteJournal(path, durable=False) as journal:
        journal.resume()


# --- versions --------------------------------------------------------------------------------------------


def test_a_journal_of_version_1_is_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE events (seq INTEGER PRIMARY KEY, body BLOB NOT NULL)")
    rows = [(at + 1, msgspec.json.encode(event)) for at, event in enumerate(some_events(5))]
    db.executemany("INSERT INTO events VALUES (?, ?)", rows)
    db.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
    db.execute("PRAGMA user_version = 1")
    db.commit()
    db.close()
    with SqliteJournal(path) as journal:
        journal.append(some_events(1, first=5))
        assert list(journal.replay()) == some_events(6)


@pytest.mark.parametrize(
    ("statement", "complaint"),
    [
        pytest.param("PRAGMA user_version = 99", "newer Aliquot", id="of a version to come"),
        pytest.param("PRAGMA application_id = 7", "not a journal", id="someone else's database"),
    ],
)
def test_a_file_that_is_not_for_us_is_left_alone(tmp_path: Path, statement: str, complaint: str) -> None:
    path = tmp_path / "journal.db"
    SqliteJournal(path).close()
    change(path, statement)
    before = path.read_bytes()
    with pytest.raises(JournalVersionError, match=complaint):
        SqliteJournal(path)
    assert path.read_bytes() == before


# --- disks -----------------------------------------------------------------------------------------------


def test_a_full_disk_refuses_an_append_whole_and_takes_it_once_there_is_room(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        ballast = disk / "ballast"
        with SqliteJournal(disk / "journal.db") as journal:
            journal.append(some_events(10))
            ballast.write_bytes(b"x" * 700_000)
            kept, is_full = 10, False
            while not is_full:
                try:
                    journal.append(some_events(500, first=kept))
                    kept += 500
                except JournalFullError:
                    is_full = True
            assert list(journal.replay()) == some_events(kept)
            ballast.unlink()
            journal.append(some_events(500, first=kept))
            assert list(journal.replay()) == some_events(kept + 500)
        with SqliteJournal(disk / "journal.db") as journal:
            assert len(list(journal.replay())) == kept + 500
            assert journal.notes == []


def test_a_disk_that_may_only_be_read_is_named(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        SqliteJournal(disk / "journal.db").close()
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        with pytest.raises(JournalReadOnlyError, match="Read-only"):
            SqliteJournal(disk / "journal.db")
        with pytest.raises(JournalReadOnlyError, match="cannot be made"):
            SqliteJournal(disk / "new" / "journal.db")


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A disk of 1 MiB; skips where it may not be mounted."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if not is_root() or subprocess.run(command, check=False).returncode:
        pytest.skip("a small disk cannot be mounted here; run as root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def change(path: Path, statement: str) -> None:
    """What a bad disk or another program may do to the file."""
    db = sqlite3.connect(path)
    db.execute(statement)
    db.commit()
    db.close()


HOUR = 3_600_000


def test_past_usage_fades_by_the_half_life_that_the_service_has(tmp_path: Path) -> None:
    site = WorldBuilder().node("n", 2).submit("j", queue="a").placed().started("j").later(HOUR).ended("j")
    folded = World(half_life_ms=HOUR)
    folded.apply_all(site.events)
    with SqliteJournal(tmp_path / "journal.db") as journal:
        journal.append(site.events[:3])
        early = World(half_life_ms=HOUR)
        early.apply_all(site.events[:3])
        journal.save(early)  # the rest is folded behind a snapshot, as after a restart
        journal.append(site.events[3:])
        assert journal.resume(half_life_ms=HOUR).accounts.past == folded.accounts.past != {}


def test_the_newest_documents_that_are_whole_are_what_a_service_goes_by(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with SqliteJournal(path) as journal:
        assert journal.documents() is None
        for at in range(9):
            journal.keep_documents(b"%d" % at)
        assert journal.documents() == b"8"
    with sqlite3.connect(path) as db:
        db.execute("UPDATE documents SET body = ? WHERE seq = (SELECT max(seq) FROM documents)", (b"x",))
        (kept,) = db.execute("SELECT count(*) FROM documents").fetchone()
    db.close()
    with SqliteJournal(path) as journal:
        assert (journal.documents(), kept) == (b"7", DOCUMENTS_KEPT)


def make_version_4(path: Path) -> None:
    """Take from the file what version 5 brought: checksums beside the events, and what was learnt."""
    with sqlite3.connect(path) as db:
        db.execute("ALTER TABLE payloads DROP COLUMN crc")
        db.execute("ALTER TABLE endings DROP COLUMN crc")
        db.execute("DROP TABLE learnt")
        db.execute("DROP TABLE guesses")
        db.execute("PRAGMA user_version = 4")
    db.close()


def test_a_journal_of_version_4_keeps_what_lies_beside_its_events(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with SqliteJournal(path) as journal:
        journal.attach(JobId("1"), b"what it runs")
        journal.append([JobSubmitted(0, a_job("1"))])
        journal.attach_ending(JobId("1"), 2, b"how it ended")
        journal.append([StartRefused(1, JobId("1"), 2, "no")])
    make_version_4(path)
    with SqliteJournal(path) as journal:
        assert journal.payload(JobId("1")) == b"what it runs"
        assert journal.endings(JobId("1")) == {2: b"how it ended"}
        assert journal.notes == []


def test_a_journal_of_version_2_takes_documents_after_its_migration(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with SqliteJournal(path) as journal:
        journal.append(some_events(2))
    make_version_4(path)
    with sqlite3.connect(path) as db:
        db.execute("DROP TABLE documents")
        db.execute("PRAGMA user_version = 2")
    db.close()
    with SqliteJournal(path) as journal:
        journal.keep_documents(b"new")
        assert (journal.documents(), list(journal.replay())) == (b"new", some_events(2))


def test_a_journal_of_version_3_keeps_its_payloads_in_a_table_whose_look_ups_read_no_bodies(
    tmp_path: Path,
) -> None:
    path = tmp_path / "journal.db"
    with SqliteJournal(path) as journal:
        journal.attach(JobId("1"), b"large" * 1000)
        journal.append([JobSubmitted(0, a_job("1"))])
    make_version_4(path)
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE older (job TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID")
        db.execute("INSERT INTO older SELECT * FROM payloads")
        db.execute("DROP TABLE payloads")
        db.execute("ALTER TABLE older RENAME TO payloads")
        db.execute("PRAGMA user_version = 3")
    db.close()
    with SqliteJournal(path) as journal:
        assert journal.payload(JobId("1")) == b"large" * 1000
        assert list(journal.replay()) == [JobSubmitted(0, a_job("1"))]
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT count(rowid) FROM payloads").fetchone() == (1,)
    db.close()


def test_jobs_of_an_array_share_what_lies_beside_them(tmp_path: Path) -> None:
    jobs = [a_job(f"1_{at}", at=at, array=Array("1", 3)) for at in range(3)]
    with SqliteJournal(tmp_path / "journal.db") as journal:
        journal.attach(JobId("1"), b"all")
        journal.append([JobSubmitted(at, job) for at, job in enumerate(jobs)])
    with SqliteJournal(tmp_path / "journal.db") as journal:
        assert journal.payload(JobId("1")) == b"all"
        journal.forget([JobId("1_0"), JobId("1")])
        assert journal.payload(JobId("1")) is None


def test_a_lock_that_a_killed_service_has_left_to_a_child_is_waited_for(tmp_path: Path) -> None:
    code = (
        "import os, sys, time; from pathlib import Path;"
        "from aliquot.engines.local.holding import Holding;"
        "held = Holding(Path(sys.argv[1]));"
        "pid = os.fork();"
        "time.sleep(0.3) if pid == 0 else None;"
        "os._exit(0)"
    )
    path = tmp_path / "journal.db.lock"
    subprocess.run([sys.executable, "-c", code, path], check=True)
    Holding(path).release()
    with SqliteJournal(tmp_path / "journal.db"), pytest.raises(JournalLockedError):
        SqliteJournal(tmp_path / "journal.db")
