"""What runs and is no attempt on record is found and ended; what is on record, or about to be, never is."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from aliquot.core.ids import GrantId, JobId
from aliquot.engines.local.folders import Folder
from aliquot.engines.local.leftovers import find_leftovers, find_supervisors
from aliquot.engines.local.orders import MARK, mark_of, spec_of
from aliquot.engines.local.strays import DEAF, Strays
from tests.support.local import Site, a_payload, supervisor, wait_for

NAP = "sleep 60"
SAID = "ghost attempt 1: runs, but is not on record; it is ended"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    made = tmp_path / "attempts"
    made.mkdir()
    return made


def haunt(state: Path, script: str = NAP, name: str = "ghost") -> Folder:
    """An attempt that nobody has on record: its supervisor, and so what it runs, lives."""
    folder = Folder(state, GrantId(JobId(name), 1, 0))
    env = {"PATH": os.environ["PATH"], MARK: mark_of(folder)}
    folder.prepare(spec_of(a_payload(script), env, state.parent / "out", None))
    subprocess.run(["setsid", "--fork", supervisor(), folder.at], check=True)
    wait_for(folder.is_running, "the command to run")
    return folder


def strays_of(state: Path) -> Strays:
    """A service that has begun."""
    strays = Strays(state, lambda held: None)
    assert strays.look((), (), 0) == []
    return strays


def look(strays: Strays, *known: Folder, starting: frozenset[JobId] = frozenset()) -> list[str]:
    return strays.look({folder.at for folder in known}, starting, 0)


def test_a_stray_is_ended_by_the_second_look_and_its_folder_is_taken_away(state: Path) -> None:
    strays, folder = strays_of(state), haunt(state)
    assert look(strays) == []
    assert look(strays) == [SAID]
    wait_for(lambda: folder.holder() is None, "its supervisor to go")
    assert find_leftovers(mark_of(folder), None, None) == []
    assert look(strays) == []
    assert not folder.exists()


def test_what_is_known_or_starts_is_never_harmed(state: Path) -> None:
    strays = strays_of(state)
    known, starting = haunt(state, name="known"), haunt(state, name="starts")
    for _ in range(DEAF + 1):
        assert look(strays, known, starting=frozenset({JobId("starts")})) == []
    assert [folder.held.job for folder in find_supervisors(state)] == ["known", "starts"]
    for folder in (known, starting):
        folder.command("kill over")


def test_what_was_unknown_for_a_moment_only_is_left_alone(state: Path) -> None:
    strays, folder = strays_of(state), haunt(state)
    for _ in range(3):
        assert look(strays) == []
        assert look(strays, folder) == []
    assert folder.holder() is not None
    folder.command("kill over")


def test_what_another_service_runs_is_not_seen(state: Path, tmp_path: Path) -> None:
    others = tmp_path / "others"
    others.mkdir()
    strays, folder = strays_of(state), haunt(others)
    for _ in range(3):
        assert look(strays) == []
    assert folder.holder() is not None
    folder.command("kill over")


def test_what_a_killed_supervisor_left_behind_is_ended_too(state: Path) -> None:
    strays, folder = strays_of(state), haunt(state, f"setsid {NAP} & wait")
    pid = folder.holder()
    assert pid is not None
    wait_for(lambda: len(find_leftovers(mark_of(folder), None, None)) == 2, "the command and what it began")
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: len(find_leftovers(mark_of(folder), None, None)) == 1, "its supervisor to go")
    assert look(strays) + look(strays) == [SAID]
    wait_for(lambda: not find_leftovers(mark_of(folder), None, None), "what was left to go")
    assert look(strays) == []
    assert not folder.exists()


def test_a_supervisor_that_hears_nothing_is_killed_in_the_end(state: Path) -> None:
    strays, folder = strays_of(state), haunt(state)
    pid = folder.holder()
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    for _ in range(DEAF):
        look(strays)
    wait_for(lambda: folder.holder() is None, "its supervisor to go")
    wait_for(lambda: look(strays) == [] and not folder.exists(), "all of it to go")
    assert find_leftovers(mark_of(folder), None, None) == []


def test_a_service_looks_now_and_then_and_harms_none_of_its_own(tmp_path: Path) -> None:
    with Site(tmp_path, durable=False) as site:
        site.submit("j", NAP).until_running("j")
        site.launcher.strays.every_ms = 20
        site.crash()
        site.launcher.strays.every_ms = 20
        folder = haunt(site.places.state)
        site.until(lambda: folder.holder() is None, "the stray to go")
        assert SAID in site.said
        for number in range(20):
            site.submit(f"short{number}", "true").until_over(f"short{number}")
        site.turn(100)
        assert {outcome.value for outcome in site.outcomes("short7") if outcome} == {"succeeded"}
        assert set(site.said) == {SAID}
        assert site.phase("j") is not None
        site.cancel("j").until_over("j")
