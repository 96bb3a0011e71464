"""Broken journal files: torn anywhere, changed, cut off. What lies before is kept, nothing is erased."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from aliquot.core.events import Event, JobCancelled
from aliquot.core.ids import JobId
from aliquot.engines.local.errors import JournalDamagedError
from aliquot.engines.local.journal import SqliteJournal

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
    body = bytearray(path.read_bytes())
    at = body.index(mark) // 4096 * 4096
    body[at : at + 4096] = bytes(4096)
    path.write_bytes(body)
