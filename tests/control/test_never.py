"""What can't start on what is there, told from what only has to wait: the numbers, and the words for them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.control.never import Nevers, find_never
from aliquot.core.jobs import Elastic, Link, Request
from aliquot.core.memo import Memo
from aliquot.core.planner import explain_wait
from aliquot.core.queues import CARDS, Queue, Quota
from aliquot.core.settings import Settings
from aliquot.core.steps import Gate, Never
from aliquot.core.wishes import Level, Wish
from aliquot.interfaces.cli.gates import never_line
from tests.support.build import H100, L40S, a_node, a_request
from tests.support.planning import PLAIN, carried_out, settings
from tests.support.worlds import WorldBuilder

FULL_MIB = H100.usable_mib
UNTIL = ": it waits until that changes."


def a_site() -> WorldBuilder:
    """Eight H100 with many cores, and two L40S with few."""
    return WorldBuilder().node("n", 8).node("m", 2, model=L40S, cpu=8_000)


def of(site: WorldBuilder, name: str = "job", how: Settings = PLAIN) -> Never | None:
    """Why `name` can't start."""
    return find_never(site.job(name).job, site.frozen, how, Memo(), site.at)


@pytest.mark.parametrize(
    ("request_", "told", "line"),
    [
        pytest.param(
            a_request(9), Never("cards", 9, 8),
            "9 cards of one node, and none has more than 8 that would do",
            id="more cards than any node has",
        ),
        pytest.param(
            a_request(4, models=("L40S",)), Never("cards", 4, 2),
            "4 cards of one node, and none has more than 2 that would do",
            id="more cards of a model than any node has",
        ),
        pytest.param(
            a_request(1, models=("B200-180GB",)),
            Never("model", wanted=("B200-180GB",), have=(H100.name, L40S.name)),
            f"B200-180GB, and no card here is one that would do (there are: {H100.name}, {L40S.name})",
            id="a model that is not here",
        ),
        pytest.param(
            a_request(1, memory=900 * 1024), Never("memory", 900 * 1024, FULL_MIB),
            f"900 GiB of a card, and none that would do has more than {FULL_MIB} MiB",
            id="a slice larger than any card",
        ),
        pytest.param(
            a_request(1, cpu=100_000), Never("cpu", 100_000, 64_000),
            "100 cores of one node, and none has more than 64",
            id="more cores than any node has",
        ),
        pytest.param(
            a_request(1, host=2**20), Never("host", 2**20, 512_000),
            "1024 GiB of a node's own memory, and none has more than 500 GiB",
            id="more memory than any node has",
        ),
        pytest.param(
            a_request(1, cpu=30_000, models=("L40S",)), Never("together"),
            "what is there in parts, and no node has all of it",
            id="the cores of one node and the cards of another",
        ),
        pytest.param(
            a_request(2, link=Link.REQUIRED), Never("links", 2),
            "2 cards linked by NVLink, and no node has so many that are",
            id="links that nothing has",
        ),
    ],
)  # fmt: skip  # a table reads by rows
def test_what_is_asked_for_and_is_not_there(request_: Request, told: Never, line: str) -> None:
    site = a_site().submit("job", request_)
    assert of(site) == told
    assert never_line(told) == f"It asks for {line}{UNTIL}"


@pytest.mark.parametrize(
    ("members", "more", "told"),
    [
        pytest.param([a_request(1)] * 11, {}, Never("all cards", 11, 10), id="a gang wider than the site"),
        pytest.param([a_request(1)] * 11, {"minimum": 8}, None, id="it may start with fewer"),
        pytest.param([a_request(9)] * 2, {"minimum": 1}, Never("cards", 9, 8), id="no member of it fits"),
        pytest.param([a_request(9), a_request(1)], {"minimum": 1}, None, id="one fits, and one will do"),
        pytest.param(
            [a_request(16)], {"elastic": Elastic((4, 16), (1000, 3000))}, None, id="narrower it would fit"
        ),
        pytest.param(
            [a_request(16)], {"elastic": Elastic((12, 16), (1000, 1200))}, Never("cards", 12, 8),
            id="its narrowest is too wide",
        ),
    ],
)  # fmt: skip  # a table reads by rows
def test_a_job_is_judged_at_its_least(
    members: list[Request], more: dict[str, Any], told: Never | None
) -> None:
    assert of(a_site().submit("job", members, **more)) == told


def in_racks(sizes: tuple[int, ...], wish: Wish, members: int) -> WorldBuilder:
    """Racks of so many nodes of eight cards, one card of each in use; a gang of members of eight waits."""
    site = WorldBuilder()
    for rack, size in enumerate(sizes):
        for at in range(size):
            site.node(a_node(f"r{rack}-{at}", rack=f"r{rack}")).submit(f"on{rack}-{at}")
    carried_out(site, settings("spread"))
    assert site.waiting == []
    return site.submit("job", [a_request(8)] * members, wish=wish)


@pytest.mark.parametrize(
    ("sizes", "wish", "members", "line"),
    [
        pytest.param(
            (2, 2), Wish(required=Level.RACK), 3,
            "It needs 3 members inside one rack: the best of 2 racks has room for 0, and for 2 with nothing",
            id="no rack is large enough",
        ),
        pytest.param(
            (3, 3), Wish(balanced=Level.RACK, slice=2), 6,
            "It needs 3 slices of 2 members, each inside one rack: all 2 racks have room for 0, and for 2",
            id="the racks hold too few slices",
        ),
        pytest.param((3, 1), Wish(required=Level.RACK), 3, None, id="one rack is, when others have ended"),
        pytest.param((2, 2), Wish(preferred=Level.RACK), 3, None, id="it is only preferred"),
    ],
)  # fmt: skip  # a table reads by rows
def test_a_wish_that_no_domain_can_keep_is_told_though_others_run(
    sizes: tuple[int, ...], wish: Wish, members: int, line: str | None
) -> None:
    told = of(in_racks(sizes, wish, members))
    assert (told is None) is (line is None)
    if told is not None and line is not None:
        assert never_line(told).startswith(line)


def test_who_only_waits_for_others_is_told_nothing() -> None:
    site = a_site().submit("first", a_request(8))
    carried_out(site)
    site.submit("job", a_request(8))
    assert of(site) is None


def test_a_site_without_nodes_yet_says_nothing() -> None:
    assert of(WorldBuilder().submit("job", a_request(9))) is None


def test_a_quota_that_can_never_hold_it_is_told_with_its_most() -> None:
    how = settings(queues=(Queue("small", quotas=(Quota(CARDS, 2000, 0),)), Queue("large")))
    site = a_site().submit("job", a_request(3), queue="small").submit("fits", a_request(2), queue="small")
    told = of(site, "job", how)
    assert told is not None
    assert (told.lacks, told.need, told.most) == ("quota", 3000, 2000)
    assert "queue small can never give it more than 2" in never_line(told)
    assert of(site, "fits", how) is None
    assert of(site.submit("lent", a_request(3), queue="large"), "lent", how) is None


def test_answers_are_kept_until_nodes_or_settings_change() -> None:
    site, nevers = a_site().submit("job", a_request(9)), Nevers()
    job = site.job("job").job
    assert not nevers.is_known(job, site.frozen, PLAIN)
    assert nevers.find(job, site.frozen, PLAIN, Memo(), site.at) == Never("cards", 9, 8)
    site.submit("alike", a_request(9))
    assert nevers.is_known(site.job("alike").job, site.frozen, PLAIN)
    assert not nevers.is_known(job, site.frozen, settings("spread"))
    site.node("wide", 16)
    assert not nevers.is_known(job, site.frozen, PLAIN)
    assert nevers.find(job, site.frozen, PLAIN, Memo(), site.at) is None


@given(
    cards=st.integers(1, 20),
    cpu=st.integers(0, 100_000),
    memory=st.none() | st.integers(1, 2**20),
    models=st.sampled_from([(), ("L40S",), (H100.name,), ("B200-180GB",)]),
)
def test_on_an_idle_site_it_is_told_of_exactly_those_that_the_planner_never_starts(
    cards: int, cpu: int, memory: int | None, models: tuple[str, ...]
) -> None:
    site = a_site().submit("job", a_request(cards, cpu=cpu, memory=memory, models=models))
    told = of(site)
    wait = explain_wait(site.frozen, PLAIN, site.job("job").job.id, Memo())
    assert (told is not None) == (wait.gate is Gate.NEVER)
    assert told is None or never_line(told).endswith(UNTIL)
