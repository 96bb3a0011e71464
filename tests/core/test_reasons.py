"""Why a job waits: every node counted once, under the first thing it lacks, with numbers."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from aliquot.core.jobs import Link, Request
from aliquot.core.planner import Memo, explain_wait
from aliquot.core.steps import Gate, Reason, Shortfall, Wait
from aliquot.core.topology.wiring import uniform, unknown
from aliquot.interfaces.cli.sentences import explain_reason
from tests.core.test_topology_sets import linked
from tests.support.build import H100, L40S, T4, a_node, a_request
from tests.support.planning import carried_out, settings, shortfalls, why
from tests.support.worlds import WorldBuilder

PAIRS = linked(8, {(0, 1): 4, (2, 3): 4, (4, 5): 4, (6, 7): 4}, per_socket=4)
GONE, PROFILE, SIZE, CPU, HOST = (
    Shortfall.GONE, Shortfall.PROFILE, Shortfall.SIZE, Shortfall.CPU, Shortfall.HOST,
)  # fmt: skip  # a table reads by columns
CARDS, MEMORY, COMPUTE, BANDWIDTH, LINK = (
    Shortfall.CARDS, Shortfall.MEMORY, Shortfall.COMPUTE, Shortfall.BANDWIDTH, Shortfall.LINK,
)  # fmt: skip  # a table reads by columns


def told(site: WorldBuilder, request: Request) -> Wait:
    """The Wait of one job that asks for `request`, last in the queue."""
    return why(site.submit("asks", request), "asks")


def filled(site: WorldBuilder, *requests: Request) -> WorldBuilder:
    """The site with running jobs that ask for `requests`."""
    for number, request in enumerate(requests):
        site.submit(f"runs{number}", request)
    carried_out(site, settings())
    assert site.waiting == []
    return site


def test_every_node_is_counted_once_under_the_first_thing_it_lacks() -> None:
    site = WorldBuilder()
    site.node("busy", 8)
    filled(site, a_request(6, memory=None, cpu=0))
    site.node("lost", 8).lose("lost").node("drained", 8).drain("drained")
    site.node(a_node("t4", 8, model=T4)).node("small", 2).node(a_node("cpu", 0))
    site.node(a_node("weak", 8, cpu=1_000)).node(a_node("forgetful", 8, host=1_000))
    wait = told(site, a_request(4, models=("H100",), cpu=8_000, host=64_000))
    assert wait.gate is Gate.FIT
    assert shortfalls(wait) == {
        GONE: (2, None, None),
        PROFILE: (2, None, None),
        SIZE: (3, None, None),
        CARDS: (1, 4, 2),
    }


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (a_request(0, cpu=16_000), {CPU: (2, 16_000, 6_000)}),
        (a_request(0, cpu=5_000, host=64_000), {CPU: (1, 5_000, 4_000), HOST: (1, 64_000, 63_000)}),
    ],
    ids=["cpu", "cpu here, memory there"],
)
def test_what_is_taken_of_the_host_is_told_with_the_most_that_is_left(
    asked: Request, expected: dict[Shortfall, tuple[int, int, int]]
) -> None:
    site = WorldBuilder()
    for name in ("a", "b"):
        site.node(a_node(name, 0, cpu=16_000, host=64_000))
    filled(site, a_request(0, cpu=12_000, host=60_000), a_request(0, cpu=10_000, host=1_000))
    assert shortfalls(told(site, asked)) == expected


def test_a_full_machine_without_cards_is_not_called_gone() -> None:
    site = filled(WorldBuilder().node(a_node("a", 0, cpu=8_000, host=64)), a_request(0, cpu=8_000, host=64))
    assert shortfalls(told(site, a_request(0, cpu=1_000))) == {CPU: (1, 1_000, 0)}
    site.drain("a")
    assert shortfalls(why(site, "asks")) == {GONE: (1, None, None)}


@pytest.mark.parametrize(
    ("running", "asked", "expected"),
    [
        (
            a_request(1, memory=50_000, compute=100),
            a_request(1, memory=40_960, compute=100),
            (MEMORY, 40_960, 31_559),
        ),
        (
            a_request(1, memory=1_000, compute=800),
            a_request(1, memory=1_000, compute=300),
            (COMPUTE, 300, 200),
        ),
        (
            a_request(1, memory=1_000, compute=100, bandwidth=900),
            a_request(1, memory=1_000, compute=100, bandwidth=200),
            (BANDWIDTH, 200, 100),
        ),
    ],
    ids=["memory", "compute", "bandwidth"],
)
def test_each_dimension_of_a_card_is_named_with_need_and_most(
    running: Request, asked: Request, expected: tuple[Shortfall, int, int]
) -> None:
    site = filled(WorldBuilder().node("n", 1), running)
    what, need, best = expected
    assert shortfalls(told(site, asked)) == {what: (1, need, best)}


def test_twelve_nodes_lack_memory() -> None:
    site = WorldBuilder().nodes(12, cards=1)
    filled(site, *[a_request(1, memory=60_000, compute=500)] * 12)
    wait = told(site, a_request(1, memory=40_960, compute=500))
    assert shortfalls(wait) == {MEMORY: (12, 40_960, 21_559)}
    assert (
        explain_reason(wait.reasons[0])
        == "12 nodes lack memory: 40960 MiB needed, at most 21559 MiB free on a card"
    )


def test_memory_over_any_card_can_never_fit() -> None:
    site = WorldBuilder().node("n", 8).node(a_node("m", 4, model=L40S))
    wait = told(site, a_request(1, memory=90_000))
    assert (wait.gate, shortfalls(wait)) == (Gate.NEVER, {SIZE: (2, None, None)})


def test_a_whole_card_too_small_for_the_memory_asked_is_told_as_too_small() -> None:
    asked = a_request(1)
    wait = told(
        WorldBuilder().node(a_node("t", 4, model=T4)),
        replace(asked, ask=replace(asked.ask, memory_mib=16_000)),
    )
    assert (wait.gate, shortfalls(wait)) == (Gate.NEVER, {SIZE: (1, None, None)})


def test_a_model_nobody_has_is_a_matter_of_kind() -> None:
    wait = told(WorldBuilder().node("n", 8), a_request(1, models=("B200",)))
    assert (wait.gate, shortfalls(wait)) == (Gate.NEVER, {PROFILE: (1, None, None)})


# --- links -----------------------------------------------------------------------------------------------


def test_needs_8_linked_cards_and_the_machine_has_pairs() -> None:
    site = WorldBuilder().node(a_node("pairs", 8, wiring=PAIRS))
    wait = told(site, a_request(8, link=Link.REQUIRED))
    assert (wait.gate, shortfalls(wait)) == (Gate.NEVER, {LINK: (1, 8, 2)})
    assert explain_reason(wait.reasons[0]).endswith("needs 8 linked cards, largest linked set 2")


def test_needs_4_linked_cards_and_four_are_free_but_not_linked() -> None:
    quads = linked(
        8,
        {(a, b): 2 for group in ((0, 1, 2, 3), (4, 5, 6, 7)) for a in group for b in group if a < b},
        per_socket=4,
    )
    site = WorldBuilder().node(a_node("quads", 8, wiring=quads))
    site.faulty("quads", "quads-g0", "quads-g4")
    assert shortfalls(told(site, a_request(4, link=Link.REQUIRED))) == {LINK: (1, 4, 3)}
    assert why(site, "asks").gate is Gate.TOPOLOGY


def test_unknown_links_are_said_to_be_unknown() -> None:
    site = WorldBuilder().node(a_node("a", 4)).node(a_node("b", 4, wiring=unknown(4)))
    wait = told(site, a_request(2, link=Link.REQUIRED))
    assert shortfalls(wait) == {LINK: (2, 2, None)}
    assert explain_reason(wait.reasons[0]).endswith("largest linked set unknown")


def test_a_linked_set_for_whole_cards_must_be_idle() -> None:
    site = filled(WorldBuilder().node(a_node("n", 8, wiring=uniform(8, 18))), a_request(1, compute=100))
    assert shortfalls(told(site, a_request(8, link=Link.REQUIRED))) == {CARDS: (1, 8, 7)}


# --- gangs -----------------------------------------------------------------------------------------------


def test_a_gang_is_told_what_its_first_part_without_a_place_lacks() -> None:
    site = WorldBuilder().node("five", 5).node("two", 2)
    site.submit("gang", [a_request(3), a_request(5)])
    wait = why(site, "gang")
    assert (wait.gate, shortfalls(wait)) == (Gate.NEVER, {SIZE: (1, None, None), CARDS: (1, 3, 0)})


def test_a_job_that_backs_off_is_told_so() -> None:
    site = WorldBuilder().node("n", 1).submit("job")
    carried_out(site)
    site.refused("job")
    assert explain_wait(site.frozen, settings(), site.job("job").job.id, Memo(), site.at).gate is Gate.BACKOFF


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [
        (Reason(GONE, 1), "1 node is not available: down, drained or without a healthy card"),
        (Reason(PROFILE, 2), "2 nodes have too few cards of the kind asked for"),
        (Reason(SIZE, 3), "3 nodes are too small even when empty"),
        (Reason(CPU, 1, 8_500, 250), "1 node lacks cpu: 8.5 cores needed, at most 0.25 cores free"),
        (Reason(HOST, 2, 64, 12), "2 nodes lack host memory: 64 MiB needed, at most 12 MiB free"),
        (Reason(CARDS, 2, 8, 0), "2 nodes lack free cards: 8 needed, at most 0 free"),
        (Reason(COMPUTE, 1, 300, 20), "1 node lacks compute: 30 % needed, at most 2 % free on a card"),
        (
            Reason(BANDWIDTH, 1, 5, 1),
            "1 node lacks memory bandwidth: 0.5 % needed, at most 0.1 % free on a card",
        ),
        (
            Reason(LINK, 1, 8, 2),
            "1 node has the cards but not the links: needs 8 linked cards, largest linked set 2",
        ),
    ],
    ids=lambda value: value.shortfall.name.lower() if isinstance(value, Reason) else "",
)
def test_sentences(reason: Reason, sentence: str) -> None:
    assert explain_reason(reason) == sentence


def test_every_shortfall_has_a_sentence() -> None:
    assert all(explain_reason(Reason(shortfall, 1, 1, 1)) for shortfall in Shortfall)
    assert H100.usable_mib == 81_559
