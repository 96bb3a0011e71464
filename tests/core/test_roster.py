"""The roster, followed through a history, against the worlds that it was shown."""

from __future__ import annotations

from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from aliquot.core.grants import Grant
from aliquot.core.records import Frozen, JobRecord
from aliquot.core.roster import UNSEEN, Roster
from tests.support.histories import History

One = tuple[JobRecord, Grant]


def read(roster: Roster, world: Frozen) -> list[list[One]]:
    """By row what each number there stands for."""
    found: list[list[One]] = [[] for _ in range(world.rows)]
    place, numbers = roster.on(list(range(world.rows)))
    for row, at in zip(place.tolist(), numbers.tolist(), strict=True):
        one = roster.grant(at)
        assert one is not None
        found[row].append((holding(one[0]), one[1]))
    return found


def said(world: Frozen) -> list[list[One]]:
    """The same, from the world."""
    return [
        [(holding(world.jobs[held.job]), world.grants[held.job][held.member]) for held in held_there]
        for held_there in (world.residents.get(row, ()) for row in range(world.rows))
    ]


def holding(record: JobRecord) -> JobRecord:
    """What of a record changes only together with its grants; the rest may be as it was before."""
    return replace(
        record, idle_ms=None, warned_ms=None, cancelled=False, at_once=False, waits_for=(), doomed=None
    )


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(random=st.randoms(use_true_random=False), steps=st.integers(20, 80))
def test_it_says_what_the_world_says_and_names_all_that_changed(random: Random, steps: int) -> None:
    """Also to who looks now and then only, and is shown an earlier world in between."""
    roster, history = Roster(), History(random)
    worlds: list[Frozen] = []
    seen, known, rows = UNSEEN, dict[int, object](), dict[int, object]()
    for _ in range(steps):
        history.step()
        worlds.append(history.world.freeze())
        if random.random() < 0.2:
            roster.follow(random.choice(worlds))
        world = worlds[-1]
        roster.follow(world)
        assert read(roster, world) == said(world)
        if random.random() < 0.5:
            continue
        known.update((at, roster.grant(at)) for at in roster.grants_since(seen))
        rows.update((row, roster.each_on(row)) for row in roster.rows_since(seen))
        seen = roster.reading
        assert [roster.grant(at) for at in range(len(roster.held))] == [
            known[at] for at in range(len(roster.held))
        ]
        assert [roster.each_on(row) for row in range(world.rows)] == [rows[row] for row in range(world.rows)]


def test_a_world_that_is_shown_again_is_not_read_again() -> None:
    roster, history = Roster(), History(Random(3))
    for _ in range(60):
        history.step()
    world = history.world.freeze()
    roster.follow(world)
    seen = roster.reading
    roster.follow(world)
    assert (roster.reading, roster.rows_since(seen), roster.grants_since(seen)) == (seen, [], [])
    assert roster.grants_since(UNSEEN)
