"""What is remembered of expected ends, against what the world says."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from aliquot.core.ends import EndsMemo, stays_on
from aliquot.core.events import CardsFaulty, Event, Evicting, JobSubmitted, Started
from aliquot.core.lengths import length_by
from aliquot.core.movables import MovablesMemo
from aliquot.core.records import Frozen
from aliquot.core.settings import Settings
from aliquot.core.steps import Cause
from tests.support.build import a_request
from tests.support.histories import MIX, History
from tests.support.planning import carried_out
from tests.support.planning import settings as rules
from tests.support.worlds import WorldBuilder

HOUR = 3_600_000
Rows = list[list[tuple[int, int, int, tuple[int, ...], int, int]]]


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(random=st.randoms(use_true_random=False), steps=st.integers(20, 80))
def test_who_may_be_moved_is_what_a_new_memo_reads(random: Random, steps: int) -> None:
    memo, history = MovablesMemo(), Restless(random)
    for _ in range(steps):
        history.step()
        world = history.world.freeze()
        for row in range(world.rows):
            assert memo.on(world, row) == MovablesMemo().on(world, row)


class Restless(History):
    """Every other job may be moved."""

    def record(self, *events: Event) -> None:
        """Jobs get what the plain histories do not have."""
        super().record(*(self._restless(event) for event in events))

    def _restless(self, event: Event) -> Event:
        if not isinstance(event, JobSubmitted):
            return event
        return JobSubmitted(event.at, replace(event.job, movable=self.random.random() < 0.5))


def test_some_of_these_may_be_moved() -> None:
    history, found = Restless(Random(3)), 0
    for _ in range(200):
        history.step()
        world = history.world.freeze()
        found += sum(len(MovablesMemo().on(world, row)) for row in range(world.rows))
    assert found > 0


def remembered(memo: EndsMemo, world: Frozen, how: Settings) -> Rows:
    """By row what the columns hold."""
    stays = memo.of(world, how)
    found: Rows = []
    for row in range(world.rows):
        used = range(int(stays.used[row]))
        found.append(
            [
                (
                    int(stays.end[row, at]),
                    int(stays.since[row, at]),
                    int(stays.mask[row, at]),
                    tuple(stays.vector[row, at].tolist()),
                    int(stays.cpu[row, at]),
                    int(stays.host[row, at]),
                )
                for at in used
            ]
        )
    return found


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(random=st.randoms(use_true_random=False), steps=st.integers(20, 80))
def test_what_is_remembered_is_what_a_new_memo_reads(random: Random, steps: int) -> None:
    """Over losses, returns, swapped boards, moves, shares of cards and stops."""
    memo, history = EndsMemo(), History(random)
    for _ in range(steps):
        history.step()
        world = history.world.freeze()
        assert remembered(memo, world, MIX) == remembered(EndsMemo(), world, MIX)


def two_on_a_card() -> WorldBuilder:
    """A card shared by two jobs, of an hour and of unknown length."""
    site = WorldBuilder().nodes(1, 1)
    part = a_request(1, compute=400)
    site.submit("short", part, estimate_ms=HOUR).submit("unknown", part)
    carried_out(site, rules())
    return site


def test_the_first_to_end_stands_first_and_the_unknown_last() -> None:
    world = two_on_a_card().frozen
    ends = [stay.end for stay in stays_on(world, 0, length_by(rules()))]
    assert ends[0] == HOUR < ends[1]


@pytest.mark.parametrize("what", ["evicted", "faulty"])
def test_a_change_of_a_grant_or_a_node_is_noticed(what: str) -> None:
    site, memo = two_on_a_card(), EndsMemo()
    before = remembered(memo, site.frozen, rules())
    if what == "evicted":
        site.world.apply(Started(1, site.grant("short").id.job, 1))
        site.world.apply(Evicting(2, site.grant("short").id.job, 1, Cause.PRIORITY, None, 500))
    else:
        node = site.frozen.nodes[site.frozen.node_at[0]].node
        site.world.apply(CardsFaulty(2, node.id, (node.cards[0].uuid,)))
    after = remembered(memo, site.frozen, rules())
    assert after == remembered(EndsMemo(), site.frozen, rules())
    assert (after != before) == (what == "evicted"), "a faulty card is still held until its jobs end"


def test_other_estimates_are_read_anew() -> None:
    site, memo = two_on_a_card(), EndsMemo()
    remembered(memo, site.frozen, rules())
    assert np.array_equal(memo.of(site.frozen, rules()).used[:1], [2])


def test_the_list_of_residents_is_another_as_soon_as_a_grant_changes() -> None:
    site = two_on_a_card()
    before = site.frozen.residents[0]
    assert site.started("short").frozen.residents[0] == before
    after = site.frozen.residents[0]
    assert after is not before
    assert [one is other for one, other in zip(before, after, strict=True)] == [False, True]
