"""What every journal does. A new one is added to JOURNALS and gets the whole suite."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from random import Random
from typing import Final

import pytest

from aliquot.core.events import Event, JobCancelled
from aliquot.core.ids import JobId
from aliquot.core.world import World
from aliquot.engines.local.journal import SqliteJournal
from aliquot.engines.sim.journal import MemoryJournal
from aliquot.ports import Journal
from tests.support.histories import MIX, History
from tests.support.same import same_world

# Each made in an empty folder of its own.
JOURNALS: Final[dict[str, Callable[[Path], Journal]]] = {
    "memory": lambda folder: MemoryJournal(),
    "sqlite": lambda folder: SqliteJournal(folder / "journal.db", durable=False),
}


@pytest.fixture(params=JOURNALS.values(), ids=JOURNALS.keys())
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Journal]:
    made: Journal = request.param(tmp_path)
    with closing(made) if isinstance(made, SqliteJournal) else nullcontext():
        yield made


def some_events(count: int, first: int = 0) -> list[Event]:
    return [JobCancelled(at, JobId(f"j{at}")) for at in range(first, first + count)]


def test_a_new_journal_is_empty(journal: Journal) -> None:
    assert list(journal.replay()) == []


def test_events_come_back_in_order_over_all_appends(journal: Journal) -> None:
    for first in (0, 3, 6):
        journal.append(some_events(3, first))
    assert list(journal.replay()) == some_events(9)


def test_to_append_nothing_is_nothing(journal: Journal) -> None:
    journal.append([])
    journal.append(())
    assert list(journal.replay()) == []


def test_replaying_does_not_use_the_record_up(journal: Journal) -> None:
    journal.append(some_events(2))
    assert list(journal.replay()) == list(journal.replay()) == some_events(2)


def test_a_replay_under_way_ends_where_the_record_ended_when_it_began(journal: Journal) -> None:
    journal.append(some_events(2))
    replay = journal.replay()
    seen = [next(replay)]
    journal.append(some_events(2, first=2))
    assert [*seen, *replay] == some_events(2)
    assert list(journal.replay()) == some_events(4)


def test_the_caller_keeps_its_list(journal: Journal) -> None:
    events = some_events(2)
    journal.append(events)
    events.clear()
    assert list(journal.replay()) == some_events(2)


def test_equal_events_are_all_kept(journal: Journal) -> None:
    journal.append(some_events(1) * 3)
    assert len(list(journal.replay())) == 3


@pytest.mark.parametrize("seed", range(3))
def test_a_world_rebuilt_from_it_is_the_running_one(journal: Journal, seed: int) -> None:
    history = History(Random(seed)).run(80)
    for event in history.events:
        journal.append([event])
    rebuilt = World(window=MIX.mix_window)
    rebuilt.apply_all(journal.replay())
    assert same_world(rebuilt.freeze(), history.world.freeze())
    assert rebuilt.outstanding() == history.world.outstanding()
