"""Where a service keeps what does not outlive the boot: its own, in memory, and the same for a whole boot."""

from __future__ import annotations

from pathlib import Path

import pytest

from aliquot.engines.local.places import NOTE, find_runtime, leave_runtime, make_runtime, site_name
from tests.support.local import is_root


@pytest.fixture
def state(tmp_path: Path) -> Path:
    folder = tmp_path / "state"
    folder.mkdir()
    return folder


def test_it_is_the_same_for_a_whole_boot(state: Path, tmp_path: Path) -> None:
    first, other = tmp_path / "first", tmp_path / "other"
    assert make_runtime(first, state) == first
    assert make_runtime(other, state) == first, "jobs of the last service are there"
    (state / NOTE).write_text(f"another boot\n{first}")
    assert make_runtime(other, state) == other


def test_a_folder_that_others_may_write_in_is_not_taken(state: Path, tmp_path: Path) -> None:
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    link = tmp_path / "link"
    link.symlink_to(state)
    assert make_runtime(open_to_all, state) == state
    (state / NOTE).unlink()
    assert make_runtime(link, state) == state


@pytest.mark.parametrize("note", ["", "garbage", "one\ntwo\nthree"])
def test_a_note_that_cannot_be_read_is_written_anew(state: Path, tmp_path: Path, note: str) -> None:
    (state / NOTE).write_text(note)
    assert make_runtime(tmp_path / "first", state) == tmp_path / "first"


def test_two_services_have_two_places(state: Path, tmp_path: Path) -> None:
    assert site_name(state) != site_name(tmp_path)
    if is_root():
        assert find_runtime(state) != find_runtime(tmp_path)
    else:
        assert find_runtime(state) == state


def test_it_is_taken_away_unless_a_job_is_left(state: Path, tmp_path: Path) -> None:
    runtime = tmp_path / site_name(state)
    attempts = runtime / "attempts"
    (attempts / "7.1.0").mkdir(parents=True)
    leave_runtime(runtime, state, attempts)
    assert attempts.is_dir()
    (attempts / "7.1.0").rmdir()
    leave_runtime(runtime, state, attempts)
    assert not runtime.exists()
