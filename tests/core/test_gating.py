"""The finer gates: what exactly is missing where a job finds no room, with numbers one can check."""

from __future__ import annotations

import pytest

from aliquot.core.jobs import Link
from aliquot.core.planner import Memo, explain_wait
from aliquot.core.queues import CARDS, Queue, Quota
from aliquot.core.settings import Order
from aliquot.core.steps import Gate, Lack, Short, Wait
from aliquot.interfaces.cli.gates import gate_lines
from tests.support.build import L40S, a_node, a_request
from tests.support.planning import carried_out, settings, why
from tests.support.worlds import WorldBuilder


def busy(*whole: int, cards: int = 8) -> WorldBuilder:
    """A site of nodes, of each of which `whole` cards are taken."""
    site = WorldBuilder()
    for at, taken in enumerate(whole):
        site.node(f"n{at}", cards)
        if taken:
            site.submit(f"runs{at}", a_request(taken))
            carried_out(site, settings())
            carried_out(site, settings())
    assert site.waiting == []
    return site


def test_six_cards_are_free_but_three_on_each_node() -> None:
    site = busy(5, 5).submit("asks", a_request(6))
    wait = why(site, "asks")
    assert (wait.gate, wait.short) == (Gate.FRAGMENTATION, Short("cards", 6, 6, 3))
    assert list(gate_lines(wait)) == [
        "It asks for 6 whole cards; 6 whole cards are free in all, at most 3 whole cards on one node."
    ]


def test_five_free_of_six_asked_is_a_full_site_and_no_scatter() -> None:
    wait = why(busy(5, 6).submit("asks", a_request(6)), "asks")
    assert (wait.gate, wait.short) == (Gate.FIT, None)


def test_free_cards_of_another_model_do_not_count() -> None:
    site = busy(5, 5).node(a_node("l40s", 8, model=L40S)).submit("runs", a_request(4, models=("L40S",)))
    carried_out(site, settings())
    site.submit("asks", a_request(6, models=("H100",)))
    assert why(site, "asks").short == Short("cards", 6, 6, 3)
    site.submit("any", a_request(6))
    assert why(site, "any").short == Short("cards", 6, 10, 4)


def test_half_a_card_is_free_in_quarters() -> None:
    site = WorldBuilder().node("n", 2)
    for name in ("a", "b"):
        site.submit(name, a_request(1, compute=750, memory=1024))
    carried_out(site, settings())
    wait = why(site.submit("asks", a_request(1, compute=500, memory=1024)), "asks")
    assert (wait.gate, wait.short) == (Gate.FRAGMENTATION, Short("compute", 500, 500, 250))
    assert "It asks for 50 % of a card; 50 % of a card are free in all, at most 25 %" in next(
        iter(gate_lines(wait))
    )


def test_three_members_of_four_would_find_room() -> None:
    site = busy(4, 0).submit("gang", [a_request(4)] * 4)
    wait = why(site, "gang")
    assert (wait.gate, wait.short) == (Gate.GANG, Short("members", 4, 3))
    assert list(gate_lines(wait)) == ["It needs 4 members at once; 3 would find room now."]


def test_a_node_without_cards_free_at_all_has_nothing_scattered() -> None:
    assert why(busy(8, 8).submit("asks"), "asks").gate is Gate.FIT


def test_unknown_links_are_not_called_wrong_links() -> None:
    """Nothing is known of the wiring, so nothing is said of it: the cards themselves are what is short."""
    site = busy(6, 6).submit("asks", a_request(4, link=Link.REQUIRED))
    assert why(site, "asks").gate in {Gate.FRAGMENTATION, Gate.NEVER}


@pytest.mark.parametrize(
    ("queue", "asks", "gate"),
    [
        pytest.param(Queue("a", quotas=(Quota(CARDS, 2_000),)), 3, Gate.BORROWING, id="nobody lends"),
        pytest.param(Queue("a", quotas=(Quota(CARDS, 2_000, 0),)), 3, Gate.QUOTA, id="may not borrow"),
        pytest.param(
            Queue("a", quotas=(Quota(CARDS, 2_000, 500),)), 3, Gate.BORROWING, id="borrows too little"
        ),
    ],
)
def test_what_may_not_be_borrowed_is_another_gate_than_what_is_not_entitled(
    queue: Queue, asks: int, gate: Gate
) -> None:
    """Of 12 cards 10 are another queue's, which lends none."""
    how = settings(
        queues=(queue, Queue("b", quotas=(Quota(CARDS, 10_000, None, lending=0),))),
        order=Order(half_life_ms=0),
    )
    site = WorldBuilder().node("n", 12).submit("asks", a_request(asks), queue="a")
    wait: Wait = explain_wait(site.frozen, how, site.job("asks").job.id, Memo(), site.at)
    assert wait.gate is gate
    assert wait.lack is not None
    assert wait.lack.need == asks * 1000


@pytest.mark.parametrize(
    ("queues", "asks", "lack"),
    [
        pytest.param(
            (Queue("lab", quotas=(Quota(CARDS, 1_000, maximum=3_000),)), Queue("lab/x")),
            2, Lack(CARDS, 2_000, 1_000, "lab", used=2_000, maximum=3_000), id="of the queue above",
        ),
        pytest.param(
            (Queue("lab"), Queue("lab/x", quotas=(Quota(CARDS, 0, maximum=2_000),))),
            1, Lack(CARDS, 1_000, 0, "lab/x", used=2_000, maximum=2_000), id="of its own",
        ),
    ],
)  # fmt: skip  # a table reads by rows
def test_a_hard_maximum_is_named_since_no_lender_helps(
    queues: tuple[Queue, ...], asks: int, lack: Lack
) -> None:
    """Two of 12 cards are in use in `lab/x`."""
    how = settings(queues=queues, order=Order(half_life_ms=0))
    site = WorldBuilder().node("n", 12).submit("runs", a_request(2), queue="lab/x")
    carried_out(site, how)
    site.started("runs").submit("asks", a_request(asks), queue="lab/x")
    wait = explain_wait(site.frozen, how, site.job("asks").job.id, Memo(), site.at)
    assert (wait.gate, wait.lack) == (Gate.QUOTA, lack)


# --- room that is still being given back -----------------------------------------------------------------


def test_b06_a_job_waits_for_the_release_of_what_is_over_but_for_its_last_processes() -> None:
    """B06: the reason is the release, and who it waits for; a job that is done is not yet gone."""
    site = busy(8, 8).started("runs0").started("runs1").submit("asks", a_request(8))
    assert why(site, "asks").gate is Gate.FIT
    for says in (site.stopping, site.cancel):
        says("runs0")
        wait = why(site, "asks")
        assert (wait.gate, wait.others) == (Gate.RELEASE, ("runs0",))
        assert list(gate_lines(wait)) == ["It waits for runs0."]
    carried_out(site, settings())
    assert site.waiting == ["asks"]
    site.ended("runs0")
    carried_out(site, settings())
    assert site.waiting == []


def test_a_release_that_would_not_do_is_not_waited_for() -> None:
    site = WorldBuilder().node("n", 8)
    for name, cards in (("a", 2), ("b", 6)):
        site.submit(name, a_request(cards))
    carried_out(site, settings())
    site.started("a").started("b").stopping("a").submit("asks", a_request(4)).submit(
        "gang", [a_request(2)] * 2
    )
    assert why(site, "asks").gate is Gate.FIT
    assert why(site, "gang").gate is Gate.FIT
    site.submit("small", a_request(1)).submit("least", [a_request(2)] * 2, minimum=1)
    assert why(site, "small").others == ("a",)
    assert why(site, "least").others == ("a",)


def test_of_two_that_end_only_those_in_the_way_are_named() -> None:
    site = busy(8, 8).started("runs0").started("runs1").stopping("runs0").stopping("runs1")
    site.submit("one", a_request(8)).submit("both", [a_request(8)] * 2)
    assert why(site, "one").others == ("runs0",)
    assert why(site, "both").others == ("runs0", "runs1")
