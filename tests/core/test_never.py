"""What no machines could ever hold: the same to who submits it, who asks why it waits, and the scorecard."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from aliquot.core.inventory import Node
from aliquot.core.jobs import Elastic, Job, Link, Request, gang_of
from aliquot.core.memo import Memo
from aliquot.core.never import find_never
from aliquot.core.planner import explain_wait
from aliquot.core.report.fitting import Fitting
from aliquot.core.settings import Settings
from aliquot.core.siting import Desk
from aliquot.core.steps import Gate
from aliquot.core.topology.wiring import pcie
from aliquot.core.wishes import Level, Wish
from tests.support.build import L40S, a_job, a_node, a_request
from tests.support.planning import nodes_of, planned, settings
from tests.support.worlds import WorldBuilder

IN_A_RACK = Wish(required=Level.RACK)
TWO = [(name, [a_request(8)] * 2, None, IN_A_RACK) for name in ("a", "b")]
MEMBERS, GROUPS = gang_of(TWO)
WIDE = [a_node("n", 8, rack="r"), a_node("m", 8, rack="r"), a_node("l", 8, rack="s")]
PLAIN = settings("best-fit")
SPLITS = settings("best-fit", scatter=True)
WHOLE = settings("best-fit", shared=False)


def verdicts(nodes: list[Node], job: Job, how: Settings) -> tuple[bool, bool, bool]:
    """Whether it never fits: by the rule itself, by the gate of the waiting job, by what counts as demand."""
    site, fitting = WorldBuilder(), Fitting(how)
    for node in nodes:
        site.node(node)
        fitting.join(node)
    site.submit("job", job.members, **{name: getattr(job, name) for name in _ASKED})
    desk = Desk(site.frozen, how, Memo())
    gate = explain_wait(site.frozen, how, site.job("job").job.id, Memo(), site.at).gate
    return find_never(desk, job) is not None, gate is Gate.NEVER, not fitting.can_hold(job)


_ASKED = ("minimum", "elastic", "scatter", "groups", "wish")


@pytest.mark.parametrize(
    ("members", "how", "more", "never"),
    [
        pytest.param([a_request(8)], PLAIN, {}, False, id="a whole node"),
        pytest.param([a_request(9)], PLAIN, {}, True, id="more cards than any node has"),
        pytest.param([a_request(2, link=Link.REQUIRED)], PLAIN, {}, True, id="links that nothing has"),
        pytest.param([a_request(3, link=Link.ANY)], PLAIN, {}, False, id="any links"),
        pytest.param([a_request(1, memory=10**6)], PLAIN, {}, True, id="a slice larger than any card"),
        pytest.param(
            [a_request(1, memory=50_000, models=("L40S",))], PLAIN, {}, True, id="larger than any such card"
        ),
        pytest.param([a_request(8)] * 3, PLAIN, {"wish": IN_A_RACK}, True, id="no rack has three nodes"),
        pytest.param([a_request(8)] * 2, PLAIN, {"wish": IN_A_RACK}, False, id="one has two"),
        pytest.param(MEMBERS, PLAIN, {"groups": GROUPS}, True, id="two groups that need a rack of two each"),
        pytest.param([a_request(9)] * 2 + [a_request(1)], PLAIN, {"minimum": 1}, False, id="one will do"),
        pytest.param(
            [a_request(16)], PLAIN, {"elastic": Elastic((4, 16), (1000, 3000))}, False, id="narrower it fits"
        ),
        pytest.param(
            [a_request(16)], PLAIN, {"elastic": Elastic((12, 16), (1000, 1200))}, True, id="not even then"
        ),
        pytest.param([a_request(16)], PLAIN, {"scatter": True}, True, id="nobody splits it"),
        pytest.param([a_request(16)], SPLITS, {"scatter": True}, False, id="in parts of eight it fits"),
        pytest.param([a_request(27)], SPLITS, {"scatter": True}, True, id="all nodes together have too few"),
        pytest.param([a_request(13)], SPLITS, {"scatter": True}, False, id="in parts of one"),
        pytest.param([a_request(9, compute=100)], PLAIN, {}, True, id="slices on distinct cards"),
        pytest.param(
            [replace(a_request(9, compute=100), distinct=False)],
            PLAIN,
            {},
            False,
            id="slices on one card",
        ),
        pytest.param([a_request(25, compute=100)], WHOLE, {}, True, id="slices that are whole cards"),
    ],
)
def test_all_who_ask_are_told_the_same(
    members: list[Request], how: Settings, more: dict[str, Any], never: bool
) -> None:
    nodes = [*WIDE, a_node("wired", 2, model=L40S, wiring=pcie(2, 2, 2))]
    assert verdicts(nodes, a_job("job", members, **more), how) == (never, never, never)


def test_a_machine_that_comes_can_hold_it_and_one_that_is_lost_counts_still() -> None:
    fitting, job = Fitting(None), a_job("job", [a_request(8)] * 2, wish=IN_A_RACK)
    assert not fitting.can_hold(job), "there are no machines at all"
    fitting.join(a_node("n", 8, rack="r"))
    assert not fitting.can_hold(job)
    fitting.join(a_node("m", 8, rack="s"))
    assert not fitting.can_hold(job), "the second is in another rack"
    fitting.join(a_node("m", 8, rack="r"))
    assert fitting.can_hold(job), "it was moved there"


NODES = st.lists(st.tuples(st.integers(1, 4), st.sampled_from("rs")), min_size=1, max_size=4)
JOBS = st.tuples(
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
    st.sampled_from([None, IN_A_RACK, Wish(required=Level.NODE)]),
    st.booleans(),
)


@given(NODES, JOBS)
def test_what_starts_on_an_empty_site_is_never_called_impossible(
    nodes: list[tuple[int, str]], asked: tuple[list[int], Wish | None, bool]
) -> None:
    cards, wish, partly = asked
    members = [a_request(each) for each in cards]
    site = WorldBuilder()
    for at, (each, rack) in enumerate(nodes):
        site.node(a_node(f"n{at}", each, rack=rack))
    job = a_job("job", members, wish=wish, minimum=1 if partly else None)
    site.submit("job", members, wish=wish, minimum=job.minimum)
    never = find_never(Desk(site.frozen, PLAIN, Memo()), job)
    assert never is None or not nodes_of(planned(site, PLAIN))
