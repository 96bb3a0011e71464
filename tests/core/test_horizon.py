"""The first moment at which a job could start: the compiled look at all rows against row after row."""

from __future__ import annotations

from random import Random

import pytest
from msgspec.structs import replace

from aliquot.core.grants import Seat
from aliquot.core.horizon import Ahead, Horizon
from aliquot.core.ids import JobId
from aliquot.core.jobs import Link, Request
from aliquot.core.memo import Memo
from aliquot.core.records import JobRecord
from aliquot.core.settings import Settings
from aliquot.core.siting import Desk
from tests.support.build import L40S, T4, a_request
from tests.support.planning import carried_out, settings
from tests.support.worlds import WorldBuilder

MINUTE = 60_000
HOW = settings()
RUNNING = (
    a_request(1, compute=200, cpu=500, host=500),
    a_request(1, memory=4_000, cpu=500),
    a_request(1, cpu=1_000, host=2_000),
    a_request(2, cpu=2_000),
    a_request(4),
    a_request(0, cpu=3_000, host=4_000),
)
ASKED: tuple[tuple[Request, ...], ...] = (
    (a_request(1),),
    (a_request(1, compute=700),),
    (a_request(2, compute=500, memory=3_000),),
    (a_request(4, cpu=8_000),),
    (a_request(8, link=Link.REQUIRED),),
    (a_request(1, models=("T4",), cpu=7_000),),
    (a_request(0, cpu=6_000, host=20_000),),
    (a_request(2),) * 5,
    (a_request(3), a_request(1, compute=300), a_request(3)),
)


def busy_site(chance: Random) -> WorldBuilder:
    """Some nodes of three kinds, full to the brim; some jobs have outrun their estimates, some have none."""
    site = WorldBuilder().nodes(2, 8, cpu=32_000, host=64_000)
    for number in range(3):
        site.node(f"l{number}", 4, model=L40S, cpu=16_000, host=64_000)
        site.node(f"t{number}", 2, model=T4, cpu=8_000, host=32_000)
    for number in range(60):
        estimate = chance.choice([None, 5, 5, 20, 20, 60, 600])
        site.later(chance.randrange(MINUTE)).submit(
            f"j{number}",
            chance.choice(RUNNING),
            estimate_ms=None if estimate is None else estimate * MINUTE + chance.randrange(1_000),
        )
        if number % 6 == 5:
            carried_out(site, HOW)
    for name in site.holding[::7]:
        site.started(name).stopping(name)
    if chance.random() < 0.5:
        site.faulty("l0", "l0-c1")
    return site


def looked_ahead(site: WorldBuilder, how: Settings, kept: list[Seat]) -> list[Ahead | None]:
    """For each of ASKED, where `kept` seats are somebody's for 7 minutes and a slice has just started."""
    desk = Desk(site.frozen, how, Memo())
    horizon = Horizon(desk, site.at)
    horizon.shut(kept, (), site.at + 7 * MINUTE)
    started = desk.seat(a_request(1, compute=100))
    if started is not None:
        horizon.add(record_of((a_request(1, compute=100),), 3 * MINUTE), [started.seat])
    return [horizon.earliest(record_of(members, MINUTE), members) for members in ASKED]


def record_of(members: tuple[Request, ...], estimate_ms: int) -> JobRecord:
    """A job that waits."""
    site = WorldBuilder().submit("asks", members, estimate_ms=estimate_ms)
    return site.world.jobs[JobId("asks")]


@pytest.mark.parametrize("seed", range(6))
def test_both_halves_find_the_same_moment_and_the_same_seats(seed: int) -> None:
    chance = Random(seed)
    site = busy_site(chance)
    seats = [grant.seat for name in site.holding for grant in site.world.grants[JobId(name)]]
    kept = [seat for seat in seats[: seed * 2] if seat is not None]
    plain = looked_ahead(site, HOW, kept)
    assert plain == looked_ahead(site, replace(HOW, engine="numba"), kept)
    assert any(ahead is not None and ahead.at > site.at for ahead in plain)
