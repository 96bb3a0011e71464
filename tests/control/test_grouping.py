"""A turn's appends become one, and whoever waits does not wait for the loop to think."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from aliquot.control.grouping import Group
from aliquot.core.errors import AliquotError
from aliquot.core.events import Event, JobCancelled
from aliquot.core.ids import JobId
from aliquot.core.world import World
from tests.support.local import wait_for

FIRST, SECOND = (JobCancelled(at, JobId(str(at))) for at in range(2))


class Record:
    """Keeps batches; may refuse."""

    def __init__(self) -> None:
        self.batches: list[list[Event]] = []
        self.is_full = False

    def append(self, events: Sequence[Event]) -> None:
        if self.is_full:
            raise AliquotError("full")
        self.batches.append(list(events))

    def replay(self) -> Iterator[Event]:
        return iter([event for batch in self.batches for event in batch])


class Watcher:
    """Notes what it is shown."""

    def __init__(self) -> None:
        self.seen: list[Event] = []

    def see(self, events: Sequence[Event], world: World) -> None:
        self.seen += events


@pytest.fixture
def parts() -> Iterator[tuple[Group, Record, Watcher]]:
    record, watcher = Record(), Watcher()
    group = Group(record, (watcher,))
    yield group, record, watcher
    group.close()


Parts = tuple[Group, Record, Watcher]


def test_all_appends_before_a_flush_are_one(parts: Parts) -> None:
    group, record, watcher = parts
    group.append([FIRST])
    group.append([SECOND])
    assert (record.batches, watcher.seen) == ([], [])
    group.see([FIRST, SECOND], World())
    group.flush()
    group.flush()
    assert (record.batches, watcher.seen) == ([[FIRST, SECOND]], [FIRST, SECOND])


def test_what_is_folded_is_flushed_soon_though_the_loop_thinks_long(parts: Parts) -> None:
    group, record, watcher = parts
    group.append([FIRST])
    group.see([FIRST], World())
    wait_for(lambda: watcher.seen == [FIRST], "the flush")
    group.append([SECOND])
    group.see([SECOND], World())
    group.flush()
    assert record.batches == [[FIRST], [SECOND]]


def test_what_is_refused_stays_held_until_it_is_given_up(parts: Parts) -> None:
    group, record, watcher = parts
    record.is_full = True
    group.append([FIRST])
    group.see([FIRST], World())
    with pytest.raises(AliquotError):
        group.flush()
    assert group.is_holding
    group.forget()
    record.is_full = False
    group.flush()
    assert (record.batches, watcher.seen, group.is_holding) == ([], [], False)


def test_an_eager_group_records_before_anything_is_folded(parts: Parts) -> None:
    group, record, watcher = parts
    group.is_eager = True
    group.append([FIRST])
    assert (record.batches, watcher.seen) == ([[FIRST]], [])
    group.see([FIRST], World())
    assert watcher.seen == [FIRST]
