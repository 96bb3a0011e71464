"""Broken journal files: torn anywhere, changed, cut off. What lies before is kept, nothing is erased."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from aliquot.core.events import Event, JobCancelled, JobSubmitted, StartRefused
from aliquot.core.ids import JobId
from aliquot.engines.local.errors import JournalDamagedError
from aliquot.engines.local.journal import SqliteJournal
from tests.support.build import a_job
from tests.support.same import same_world

FRAME_HEAD = 24  # before each page in a write-ahead log


def some_events(count: int) -> list[Event]:
    return [JobCancelled(at, JobId(f"j{at}")) for at in range(count)]


def torn(tmp_path: Path) -> tuple[Path, bytes, int]:
    """A journal of 4 appends still in the log: the file, the log, and where the last append begins in it."""
    path = tmp_path / "journal.db"
    with SqliteJournal(path) as journal:
        for event in some_events(3):
            journal.append([event])
        before = path.with_name("journal.db-wal").stat().st_size
        journal.append(some_events(4)[3:])
        log = path.with_name("journal.db-wal").read_bytes()
        shutil.copy(path, tmp_path / "copy.db")
    return tmp_path / "copy.db", log, before


def check_torn_at(path: Path, log: bytes, cut: int) -> None:
    """A log cut at `cut` gives the first three events, and the journal works on."""
    fresh = path.with_name(f"cut-{cut}.db")
    shutil.copy(path, fresh)
    fresh.with_name(fresh.name + "-wal").write_bytes(log[:cut])
    with SqliteJournal(fresh, durable=False) as journal:
        assert list(journal.replay()) == some_events(3), f"cut at byte {cut}"
        assert journal.notes == []
        journal.append(some_events(4)[3:])
        assert list(journal.replay()) == some_events(4)
    for file in fresh.parent.glob(f"{fresh.name}*"):
        file.unlink()


def test_a_write_torn_in_the_middle_leaves_everything_before_it(tmp_path: Path) -> None:
    path, log, last = torn(tmp_path)
    heads = range(last, last + FRAME_HEAD + 1)
    for cut in sorted({*heads, *range(last, len(log), 97), len(log) - 1}):
        check_torn_at(path, log, cut)


@pytest.mark.slow
def test_a_write_torn_at_any_byte_leaves_everything_before_it(tmp_path: Path) -> None:
    path, log, last = torn(tmp_path)
    for cut in range(last, len(log)):
        check_torn_at(path, log, cut)


def test_a_broken_tail_is_put_aside_and_named(tmp_path: Path) -> None:
    path = filled(tmp_path, 5)
    change(path, "UPDATE batches SET body = x'5b5d' WHERE seq = 5")
    with SqliteJournal(path) as journal:
        assert list(journal.replay()) == some_events(4)
        (note,) = journal.notes
        assert "batch 5 (its checksum is wrong)" in note
        assert "kept 4 batches" in note
        journal.append(some_events(5)[4:])
    aside = tmp_path / "journal.db.damaged-1"
    assert str(aside) in note
    assert sqlite3.connect(aside).execute("SELECT count(*) FROM batches").fetchone() == (5,)
    with SqliteJournal(path) as journal:
        assert list(journal.replay()) == some_events(5)
        assert journal.notes == []


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        pytest.param("UPDATE batches SET body = x'00' WHERE seq = 3", "its checksum is wrong", id="changed"),
        pytest.param("DELETE FROM batches WHERE seq = 3", "missing; the next one is 4", id="missing"),
    ],
)
def test_damage_with_whole_batches_behind_it_needs_a_persons_word(
    tmp_path: Path, statement: str, why: str
) -> None:
    path = filled(tmp_path, 6)
    change(path, statement)
    before = path.read_bytes()
    with pytest.raises(JournalDamagedError, match=f"batch 3 is broken \\({why}\\) and 3 whole batches"):
        SqliteJournal(path)
    assert path.read_bytes() == before
    with SqliteJournal(path, accept_loss=True) as journal:
        assert list(journal.replay()) == some_events(2)
        assert len(journal.notes) == 1


def test_a_file_cut_off_at_any_page_keeps_what_is_readable(tmp_path: Path) -> None:
    events = [JobCancelled(at, JobId("x" * 900 + str(at))) for at in range(60)]
    path = filled(tmp_path, 0, events)
    size, least = path.stat().st_size, 0
    for cut in range(4096 * 4, size, 4096 * 3):
        fresh = tmp_path / f"cut-{cut}.db"
        fresh.write_bytes(path.read_bytes()[:cut])
        with SqliteJournal(fresh, accept_loss=True, durable=False) as journal:
            found = list(journal.replay())
            assert found == events[: len(found)]
            assert len(found) >= least, "the longer the file, the more is kept"
            least = len(found)
            assert journal.notes
            journal.append(some_events(1))
    assert least > 40


def test_what_is_no_database_at_all_is_never_taken_for_an_empty_one(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    path.write_bytes(b"a letter to the editor " * 400)
    with pytest.raises(JournalDamagedError, match="no readable database"):
        SqliteJournal(path)
    with SqliteJournal(path, accept_loss=True) as journal:
        assert list(journal.replay()) == []
    assert (tmp_path / "journal.db.damaged-1").read_bytes().startswith(b"a letter")


def filled(tmp_path: Path, count: int, events: Sequence[Event] = ()) -> Path:
    """A closed journal, one append per event."""
    path = tmp_path / "journal.db"
    with SqliteJournal(path, durable=False) as journal:
        for event in events or some_events(count):
            journal.append([event])
    return path


def change(path: Path, statement: str) -> None:
    db = sqlite3.connect(path)
    db.execute(statement)
    db.commit()
    db.close()


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        pytest.param("UPDATE batches SET body = x'5b' WHERE seq = 2", "its checksum is wrong", id="changed"),
        pytest.param("DELETE FROM batches WHERE seq = 2", "missing", id="missing"),
    ],
)
def test_damage_that_a_snapshot_stands_for_costs_history_only(
    tmp_path: Path, statement: str, why: str
) -> None:
    path = filled(tmp_path, 5)
    with SqliteJournal(path) as journal:
        journal.save(journal.resume())
    change(path, statement)
    with SqliteJournal(path) as journal:
        journal.resume()
        assert list(journal.replay()) == some_events(5)[2:]
        (note,) = journal.notes
        assert f"batch 2 is broken ({why}), and a snapshot stands for it" in note


def test_an_unreadable_page_before_the_snapshot_costs_the_batches_on_it_only(tmp_path: Path) -> None:
    events = [JobCancelled(at, JobId("x" * 900 + f"-{at:03}.")) for at in range(60)]
    path = filled(tmp_path, 0, events[:50])
    with SqliteJournal(path) as journal:
        journal.save(journal.resume())
        for event in events[50:]:
            journal.append([event])
    make_unreadable(path, b"x-020.")
    change(path, "UPDATE batches SET body = x'00' WHERE seq = 60")
    with SqliteJournal(path) as journal:
        found = [event.at for event in journal.replay()]
        assert found[-1] == 58, "only the last was broken"
        assert found == list(range(found[0], 59))
        assert 20 < found[0] < 30, "those behind the page are kept"
        assert any("put the file aside" in note for note in journal.notes)
        journal.resume()


def make_unreadable(path: Path, mark: bytes) -> None:
    """Zeroes over the page of the file that holds `mark`."""
    erase(path, path.read_bytes().index(mark) // 4096 * 4096)


def erase(path: Path, at: int) -> None:
    """Zeroes over one page, in the file that is there."""
    with path.open("r+b") as file:
        file.seek(at)
        file.write(bytes(4096))


# --- what lies beside the events -----------------------------------------------------------------------


def with_beside(tmp_path: Path, jobs: int = 40) -> Path:
    """A closed journal with a payload and an ending for each job, documents and two snapshots."""
    path = tmp_path / "journal.db"
    with SqliteJournal(path, durable=False) as journal:
        for at in range(jobs):
            name = JobId(f"{at:03}")
            journal.attach(name, f"payload-{name}.".encode() + b"p" * 900)
            journal.append([JobSubmitted(at, a_job(name, seq=at))])
            journal.attach_ending(name, 1, f"ending-{name}.".encode() + b"e" * 900)
            journal.append([StartRefused(at, name, 1, "no room")])
            if at in {10, 30}:
                journal.save(journal.resume())
        for age in (b"old", b"new"):
            journal.keep_documents(b"documents-" + age + b"d" * 4500 + b"amid-" + age + b"d" * 4500)
    return path


def readable(journal: SqliteJournal, jobs: int = 40) -> tuple[list[str], list[str]]:
    """Jobs whose payload, and whose ending, is still what it was."""
    names = [JobId(f"{at:03}") for at in range(jobs)]
    payloads = [
        name for name in names if (journal.payload(name) or b"").startswith(b"payload-" + name.encode())
    ]
    endings = [
        name for name in names if (journal.ending(name, 1) or b"").startswith(b"ending-" + name.encode())
    ]
    return payloads, endings


@pytest.mark.parametrize(
    ("mark", "payloads", "endings"),
    [
        pytest.param(b"payload-020.", range(1, 9), (0,), id="a page of what jobs run"),
        pytest.param(b"ending-020.", (0,), range(1, 9), id="a page of how they ended"),
        pytest.param(b"amid-new", (0,), (0,), id="the newest documents"),
        pytest.param(b"amid-old", (0,), (0,), id="older documents"),
    ],
)
def test_a_page_beside_the_events_that_cannot_be_read_costs_what_was_on_it_only(
    tmp_path: Path, mark: bytes, payloads: Sequence[int], endings: Sequence[int]
) -> None:
    path = with_beside(tmp_path)
    before = list(events_of(path))
    make_unreadable(path, mark)
    with SqliteJournal(path) as journal:
        world = journal.resume()
        assert list(journal.replay()) == before, "every event is kept"
        assert len(world.jobs) == 40
        kept = readable(journal)
        assert 40 - len(kept[0]) in payloads
        assert 40 - len(kept[1]) in endings
        age = b"old" if mark == b"amid-new" else b"new"
        assert (journal.documents() or b"").startswith(b"documents-" + age)
        (note,) = journal.notes
        assert "cannot be read" in note
        assert str(tmp_path / "journal.db.damaged-1") in note
        journal.attach(JobId("new"), b"what it runs")
        journal.append([JobSubmitted(0, a_job("new", seq=100))])
        journal.forget([JobId("020")])
        journal.save(world)
    with SqliteJournal(path) as journal:
        assert journal.notes == [], "it was put in order"
        assert journal.payload(JobId("new")) == b"what it runs"


@pytest.mark.parametrize("table", ["payloads", "endings"])
def test_a_byte_that_turned_beside_the_events_is_noticed_and_named(tmp_path: Path, table: str) -> None:
    path = with_beside(tmp_path)
    change(path, f"UPDATE {table} SET body = CAST(replace(body, '-020.', '-021.') AS BLOB) WHERE job = '020'")
    with SqliteJournal(path) as journal:
        kept = dict(zip(("payloads", "endings"), readable(journal), strict=True))
        assert len(kept.pop(table)) == 39, "never another body than was recorded"
        assert [len(names) for names in kept.values()] == [40]
        journal.resume()
        (note,) = journal.notes
        assert "job 020" in note
        assert "its checksum is wrong" in note


@pytest.mark.parametrize("table", ["payloads", "endings"])
def test_two_bodies_beside_the_events_that_changed_places_are_noticed(tmp_path: Path, table: str) -> None:
    path = with_beside(tmp_path)
    other = f"(SELECT body FROM {table} WHERE job = '021'), crc = (SELECT crc FROM {table} WHERE job = '021')"
    change(path, f"UPDATE {table} SET body = {other} WHERE job = '020'")
    with SqliteJournal(path) as journal:
        beside = [journal.payload(JobId("020")), journal.ending(JobId("020"), 1)]
        assert beside.count(None) == 1


def test_a_byte_of_an_event_that_turns_under_a_running_service_is_not_folded(tmp_path: Path) -> None:
    path = filled(tmp_path, 5)
    with SqliteJournal(path, durable=False) as journal:
        change(path, "UPDATE batches SET body = CAST(replace(body, 'j3', 'j4') AS BLOB) WHERE seq = 4")
        with pytest.raises(JournalDamagedError, match="a checksum is wrong"):
            list(journal.replay())


def test_an_unreadable_index_of_what_jobs_run_costs_nothing(tmp_path: Path) -> None:
    path = with_beside(tmp_path)
    with contextlib.closing(sqlite3.connect(path)) as db:
        query = "SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_payloads_1'"
        (root,) = db.execute(query).fetchone()
    erase(path, (root - 1) * 4096)
    with SqliteJournal(path) as journal:
        assert [len(kept) for kept in readable(journal)] == [40, 40]


@pytest.mark.parametrize("is_compacted", [False, True])
def test_a_newest_snapshot_that_cannot_be_read_gives_way_to_the_one_before(
    tmp_path: Path, is_compacted: bool
) -> None:
    path = with_beside(tmp_path)
    with SqliteJournal(path, durable=False) as journal:
        if is_compacted:
            journal.compact()
        before = journal.resume()
    with contextlib.closing(sqlite3.connect(path)) as db:
        ((newest,),) = db.execute("SELECT body FROM snapshots ORDER BY seq DESC LIMIT 1").fetchall()
    make_unreadable(path, bytes(newest)[8000:8100])
    with SqliteJournal(path) as journal:
        assert same_world(journal.resume().freeze(), before.freeze())
        journal.save(before)


def test_a_disk_that_goes_bad_under_a_running_service_takes_nothing_but_what_is_asked_for(
    tmp_path: Path,
) -> None:
    path, said = tmp_path / "journal.db", list[str]()
    with SqliteJournal(path, durable=False) as journal:
        for at in range(3_000):  # more than SQLite keeps at hand
            journal.attach(JobId(f"{at:03}"), f"payload-{at:03}.".encode() + b"p" * 2_000)
        journal.append([JobSubmitted(0, a_job(f"{at:03}", seq=at)) for at in range(3_000)])
    with SqliteJournal(path) as journal:
        journal.say = said.append
        make_unreadable(path, b"payload-020.")
        assert journal.payload(JobId("020")) is None
        assert journal.payload(JobId("500")) is not None
        assert len(said) == 1
        assert "a restart puts the file in order" in said[0]


def events_of(path: Path) -> Sequence[Event]:
    with SqliteJournal(path, durable=False) as journal:
        return list(journal.replay())


def test_an_unreadable_page_before_the_snapshot_does_not_keep_old_batches_for_ever(tmp_path: Path) -> None:
    events = [JobCancelled(at, JobId("x" * 900 + f"-{at:03}.")) for at in range(50)]
    path = filled(tmp_path, 0, events)
    with SqliteJournal(path) as journal:
        journal.save(journal.resume())
    make_unreadable(path, b"x-020.")
    with SqliteJournal(path) as journal:
        (note,) = journal.notes
        assert "pages of batches cannot be read" in note
        found = [event.at for event in journal.replay()]
        assert found == list(range(found[0], 50))
        assert 20 < found[0] < 30
        journal.save(journal.resume())
        journal.append(events[:1])
        journal.save(journal.resume())
        journal.compact()
        assert list(journal.replay()) == events[:1], "behind the older snapshot"
