"""Gangs whose members care where the others are: groups with minima, and wishes for racks and blocks."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from aliquot.core.events import JobSubmitted
from aliquot.core.grants import Placement
from aliquot.core.image import image_of, world_of
from aliquot.core.inventory import Node
from aliquot.core.jobs import Elastic, gang_of
from aliquot.core.queues import CARDS, Queue, Quota
from aliquot.core.settings import Backfill, ElasticRules, Preemption
from aliquot.core.steps import Evict, Gate, Place, Reserve, Resize
from aliquot.core.wishes import Group, Level, Wish, find_breach
from aliquot.interfaces.cli.gates import gate_lines
from tests.support.build import a_job, a_node, a_placement, a_request
from tests.support.planning import carried_out, nodes_of, planned, settings, why
from tests.support.worlds import WorldBuilder, racks

ONE = a_request(8)
IN_A_RACK = Wish(required=Level.RACK)
BEST_FIT = settings()
TWICE = [(name, [ONE] * 2, None, IN_A_RACK) for name in ("a", "b")]
AT_ONCE = "It needs 2 groups, each inside one rack: all 2 racks have room for 1 at once"


def racks_of(site: WorldBuilder, job: str = "gang") -> list[str]:
    """The rack of each member that is placed now; empty: the gang waits."""
    placed = nodes_of(planned(site, BEST_FIT)).get(job, [])
    return [name.partition("-")[0] for name in placed]


class TestRequired:
    def test_takes_the_rack_it_fills_and_leaves_the_large_one_whole(self) -> None:
        site = racks(6, 4, 5).submit("gang", [ONE] * 4, wish=IN_A_RACK)
        assert racks_of(site) == ["r1"] * 4

    def test_the_first_by_id_of_racks_that_fit_alike(self) -> None:
        site = racks(3, 5, 5).submit("gang", [ONE] * 4, wish=IN_A_RACK)
        assert racks_of(site) == ["r1"] * 4

    def test_waits_where_only_two_racks_together_hold_it(self) -> None:
        site = racks(3, 3).submit("gang", [ONE] * 4, wish=IN_A_RACK)
        assert racks_of(site) == []

    def test_a_node_that_does_not_say_its_rack_is_in_none(self) -> None:
        site = WorldBuilder().nodes(8).submit("gang", [ONE] * 4, wish=IN_A_RACK)
        assert racks_of(site) == []

    def test_racks_of_one_name_in_two_blocks_are_two_racks(self) -> None:
        site = WorldBuilder()
        for block in ("a", "b"):
            for number in range(2):
                site.node(a_node(f"{block}{number}", 8, rack="r0", block=block))
        site.submit("gang", [ONE] * 3, wish=IN_A_RACK)
        site.submit("pair", [ONE] * 2, wish=IN_A_RACK)
        assert nodes_of(planned(site, BEST_FIT)) == {"pair": ["a0", "a1"]}

    def test_starts_with_as_many_as_one_rack_holds_where_its_minimum_allows(self) -> None:
        site = racks(2, 3).submit("gang", [ONE] * 5, minimum=2, wish=IN_A_RACK)
        assert racks_of(site) == ["r1"] * 3

    def test_all_on_one_node(self) -> None:
        site = racks(2).submit("gang", [a_request(3)] * 2, wish=Wish(required=Level.NODE))
        assert nodes_of(planned(site, BEST_FIT))["gang"] == ["r0-0", "r0-0"]

    def test_nodes_that_nvlink_joins(self) -> None:
        site = WorldBuilder()
        for number, domain in enumerate(["", "x", "", "y", "y"]):
            site.node(a_node(f"n{number}", 8, rack="r0", link_domain=domain))
        site.submit("gang", [ONE] * 2, wish=Wish(required=Level.LINKS))
        assert nodes_of(planned(site, BEST_FIT))["gang"] == ["n3", "n4"]

    def test_members_that_differ_share_the_rack_too(self) -> None:
        site = racks(1, 2).submit("gang", [a_request(0, cpu=1000), ONE, ONE], wish=IN_A_RACK)
        assert racks_of(site) == ["r1"] * 3

    def test_a_job_split_over_nodes_stays_in_its_rack(self) -> None:
        how = settings(scatter=True)
        site = racks(1, 2, cards=4).submit("wide", a_request(8), scatter=True, wish=IN_A_RACK)
        assert nodes_of(planned(site, how))["wide"] == ["r1-0", "r1-1"]
        assert (
            nodes_of(planned(racks(1, 1, cards=4).submit("wide", ONE, scatter=True, wish=IN_A_RACK), how))
            == {}
        )


class TestPreferred:
    def test_one_rack_where_one_holds_it(self) -> None:
        site = racks(3, 4).submit("gang", [ONE] * 4, wish=Wish(preferred=Level.RACK))
        assert racks_of(site) == ["r1"] * 4

    def test_else_the_block_that_holds_it_in_as_few_racks_as_will_do(self) -> None:
        site = WorldBuilder()
        for block, sizes in (("a", (1, 1, 1)), ("b", (1, 3, 1, 1))):
            for rack, size in enumerate(sizes):
                for number in range(size):
                    site.node(a_node(f"{block}{rack}-{number}", 8, rack=f"{block}{rack}", block=block))
        site.submit("gang", [ONE] * 4, wish=Wish(preferred=Level.RACK))
        assert sorted(nodes_of(planned(site, BEST_FIT))["gang"]) == ["b0-0", "b1-0", "b1-1", "b1-2"]

    def test_else_anywhere_in_as_few_racks_as_will_do(self) -> None:
        site = racks(2, 1, 3, 1).submit("gang", [ONE] * 5, wish=Wish(preferred=Level.RACK))
        assert sorted(racks_of(site)) == ["r0", "r0", "r2", "r2", "r2"]

    def test_inside_what_is_required(self) -> None:
        site = racks(2, 2, cards=4)
        site.submit("gang", [a_request(2)] * 4, wish=Wish(required=Level.RACK, preferred=Level.NODE))
        assert sorted(nodes_of(planned(site, BEST_FIT))["gang"]) == ["r0-0", "r0-0", "r0-1", "r0-1"]


class TestBalanced:
    def test_spread_over_the_fewest_racks_that_hold_all_slices(self) -> None:
        site = racks(4, 4, 4).submit("gang", [ONE] * 6, wish=Wish(balanced=Level.RACK))
        assert sorted(racks_of(site)) == ["r0"] * 3 + ["r1"] * 3

    def test_slices_stay_whole(self) -> None:
        site = racks(3, 3, 3).submit("gang", [ONE] * 4, wish=Wish(balanced=Level.RACK, slice=2))
        assert racks_of(site) == ["r0", "r0", "r1", "r1"]

    def test_over_as_many_racks_as_are_asked_for(self) -> None:
        site = racks(4, 4, 4).submit("gang", [ONE] * 4, wish=Wish(balanced=Level.RACK, slice=2, over=2))
        assert racks_of(site) == ["r0", "r0", "r1", "r1"]

    def test_waits_where_no_rack_holds_a_slice(self) -> None:
        site = racks(1, 1, 1, 1).submit("gang", [ONE] * 4, wish=Wish(balanced=Level.RACK, slice=2))
        assert racks_of(site) == []


class TestGroups:
    def test_launcher_without_card_and_workers_in_one_rack(self) -> None:
        workers = ("workers", [ONE] * 4, None, IN_A_RACK)
        members, groups = gang_of([("launcher", [a_request(0, cpu=1000)], None, None), workers])
        site = racks(3, 4).submit("gang", members, groups=groups)
        assert racks_of(site)[1:] == ["r1"] * 4

    def test_each_group_in_a_rack_of_its_own_choice(self) -> None:
        parts = [("prefill", [ONE] * 3, None, IN_A_RACK), ("decode", [ONE] * 4, None, IN_A_RACK)]
        members, groups = gang_of(parts)
        site = racks(3, 4).submit("gang", members, groups=groups)
        assert racks_of(site) == ["r0"] * 3 + ["r1"] * 4

    def test_a_group_gives_way_to_one_that_has_no_other_rack(self) -> None:
        """The first takes the tightest rack; the second fits there only, by its host memory."""
        site = WorldBuilder()
        for rack, host in (("r0", 512_000), ("r1", 100_000)):
            for number in range(2):
                site.node(a_node(f"{rack}-{number}", 8, rack=rack, host=host))
        parts = [
            ("light", [a_request(8)] * 2, None, IN_A_RACK),
            ("heavy", [a_request(7, host=400_000)] * 2, None, IN_A_RACK),
        ]
        members, groups = gang_of(parts)
        site.submit("gang", members, groups=groups)
        assert racks_of(site) == ["r1", "r1", "r0", "r0"]

    def test_starts_with_the_minimum_of_every_group_and_what_else_fits(self) -> None:
        parts = [("prefill", [ONE] * 4, 2, IN_A_RACK), ("decode", [ONE] * 2, 1, IN_A_RACK)]
        members, groups = gang_of(parts)
        site = racks(3, 1).submit("gang", members, groups=groups)
        assert racks_of(site) == ["r0", "r0", "r1", "r0"]

    def test_waits_while_one_group_lacks_its_minimum(self) -> None:
        parts = [("prefill", [ONE] * 4, 2, IN_A_RACK), ("decode", [ONE] * 2, 2, IN_A_RACK)]
        members, groups = gang_of(parts)
        site = racks(3, 1, 1).submit("gang", members, groups=groups)
        assert racks_of(site) == []

    def test_the_minimum_of_the_job_holds_over_all_groups(self) -> None:
        members, groups = gang_of([("a", [ONE] * 3, 1, None), ("b", [ONE] * 3, 1, None)])
        assert racks_of(racks(3).submit("gang", members, groups=groups, minimum=4)) == []
        assert len(racks_of(racks(4).submit("gang", members, groups=groups, minimum=4))) == 4

    def test_all_or_nothing_where_nothing_is_said(self) -> None:
        members, groups = gang_of([("a", [ONE] * 2, None, None), ("b", [ONE], None, None)])
        assert racks_of(racks(2).submit("gang", members, groups=groups)) == []

    def test_all_groups_in_one_block_each_in_a_rack(self) -> None:
        site = WorldBuilder()
        for block, sizes in (("a", (2, 1)), ("b", (2, 2))):
            for rack, size in enumerate(sizes):
                for number in range(size):
                    site.node(a_node(f"{block}{rack}-{number}", 8, rack=f"{block}{rack}", block=block))
        members, groups = gang_of([("p", [ONE] * 2, None, IN_A_RACK), ("d", [ONE] * 2, None, IN_A_RACK)])
        site.submit("gang", members, groups=groups, wish=Wish(required=Level.BLOCK))
        assert racks_of(site) == ["b0", "b0", "b1", "b1"]


class TestOrderOfMembers:
    def test_minima_first_then_one_of_each_in_turn(self) -> None:
        small, large = a_request(1), a_request(2)
        members, groups = gang_of([("s", [small] * 4, 1, None), ("l", [large] * 2, 1, None)])
        assert members == (small, large, small, large, small, small)
        assert [group.members for group in groups] == [(0, 2, 4, 5), (1, 3)]

    def test_as_written_where_all_have_to_start(self) -> None:
        members, groups = gang_of([("a", [a_request(1)], None, None), ("b", [a_request(2)] * 2, 2, None)])
        assert [request.cards for request in members] == [1, 2, 2]
        assert [group.minimum for group in groups] == [None, None]


class TestCommit:
    """A plan that breaks a wish or a minimum is refused, whoever made it."""

    def refused(self, site: WorldBuilder, *nodes: str) -> str:
        homes = [site.world.nodes[name].node for name in site.world.node_at if name.name in nodes]
        order = {home.id.name: home for home in homes}
        places = tuple(a_placement(order[name], range(8)) for name in nodes)
        site.check(Place(site.job("gang").job.id, 1, places))
        return site.verdict.refused[0].reason if site.verdict.refused else ""

    @pytest.mark.parametrize(
        ("wish", "nodes", "said"),
        [
            (IN_A_RACK, ("r0-0", "r1-0"), "members are not inside one rack"),
            (IN_A_RACK, ("r1-0", "r1-1"), ""),
            (Wish(preferred=Level.RACK), ("r0-0", "r1-0"), ""),
            (
                Wish(balanced=Level.RACK, slice=2),
                ("r0-0", "r1-0"),
                "slices of 2 that are not inside one rack",
            ),
            (Wish(balanced=Level.RACK), ("r0-0", "r1-0"), ""),
        ],
    )
    def test_wishes(self, wish: Wish, nodes: tuple[str, ...], said: str) -> None:
        site = racks(1, 2).submit("gang", [ONE] * 2, wish=wish)
        assert said in self.refused(site, *nodes)
        assert (site.holding == ["gang"]) is (said == "")

    def test_minimum_of_a_group(self) -> None:
        groups = (Group("a", (0, 1), 1), Group("b", (2, 3), 1))
        site = racks(4).submit("gang", [ONE] * 4, groups=groups)
        assert "members" in self.refused(site, "r0-0", "r0-1")
        assert self.refused(site, "r0-0", "r0-1", "r0-2") == ""

    def test_breach_names_the_group(self) -> None:
        group = Group("workers", (1, 2), None, IN_A_RACK)
        homes = [a_node("x"), a_node("y", rack="r0"), a_node("z", rack="r1")]
        assert find_breach(None, (group,), homes) == "members of group workers are not inside one rack"


def test_those_behind_who_have_no_wish_are_not_held_back() -> None:
    site = racks(3, 3).submit("gang", [ONE] * 4, wish=IN_A_RACK).submit("plain", [ONE] * 4)
    assert nodes_of(carried_out(site, BEST_FIT)).keys() == {"plain"}


class TestReasons:
    """Why a gang waits that would fit if its members were anywhere."""

    def told(self, site: WorldBuilder, name: str = "gang") -> tuple[Gate, list[str]]:
        wait = why(site, name, BEST_FIT)
        return wait.gate, list(gate_lines(wait))

    def test_the_best_rack_has_room_for_three(self) -> None:
        site = (
            racks(4, 2)
            .submit("first", [ONE])
            .granted("first", a_placement(a_node("r0-0", rack="r0"), range(8)))
        )
        site.submit("gang", [ONE] * 4, wish=IN_A_RACK)
        assert self.told(site) == (
            Gate.TOPOLOGY,
            ["It needs 4 members inside one rack: the best of 2 racks has room for 3."],
        )

    def test_no_rack_is_large_enough(self) -> None:
        gate, lines = self.told(racks(3, 3).submit("gang", [ONE] * 4, wish=IN_A_RACK))
        assert gate is Gate.NEVER
        assert "the best of 2 racks has room for 3, and for 3 with nothing else on it" in lines[0]

    def test_no_rack_is_large_enough_while_small_jobs_run_everywhere(self) -> None:
        site = racks(2, 2)
        for at in range(4):
            site.submit(f"small{at}", a_request(1))
            home = a_node(f"r{at // 2}-{at % 2}", rack=f"r{at // 2}")
            site.granted(f"small{at}", a_placement(home, [0]))
        told = self.told(site.submit("gang", [ONE] * 3, wish=IN_A_RACK))
        held = "the best of 2 racks has room for 0, and for 2 with nothing else on it."
        assert told == (Gate.NEVER, [f"It needs 3 members inside one rack: {held}"])

    def test_a_wish_behind_one_that_only_has_to_wait_can_be_the_one_that_is_never_kept(self) -> None:
        parts = [("head", [ONE] * 2, None, IN_A_RACK), ("workers", [ONE] * 3, None, IN_A_RACK)]
        members, groups = gang_of(parts)
        site = racks(2, 2, 2).submit("first", [ONE] * 5)
        carried_out(site, BEST_FIT)
        gate, lines = self.told(site.submit("gang", members, groups=groups))
        assert (gate, "3 members of group workers" in lines[0]) == (Gate.NEVER, True)

    def test_a_rack_of_which_a_node_is_drained_only_has_to_be_waited_for(self) -> None:
        site = racks(3, 2).submit("gang", [ONE] * 3, wish=IN_A_RACK).drain("r0-2")
        assert self.told(site)[0] is Gate.TOPOLOGY

    def test_nobody_says_its_rack(self) -> None:
        gate, lines = self.told(WorldBuilder().nodes(8).submit("gang", [ONE] * 4, wish=IN_A_RACK))
        assert (gate, "no node says which rack" in lines[0]) == (Gate.NEVER, True)

    def test_slices(self) -> None:
        site = racks(1, 1, 2).submit("gang", [ONE] * 4, wish=Wish(balanced=Level.RACK, slice=2))
        assert (
            "2 slices of 2 members, each inside one rack: all 3 racks have room for 1"
            in self.told(site)[1][0]
        )

    def test_the_group_is_named(self) -> None:
        members, groups = gang_of([("head", [ONE], None, None), ("workers", [ONE] * 3, None, IN_A_RACK)])
        site = (
            racks(3, 2)
            .submit("first", [ONE])
            .granted("first", a_placement(a_node("r0-0", rack="r0"), range(8)))
        )
        site.submit("gang", members, groups=groups)
        assert (
            "3 members of group workers inside one rack: the best of 2 racks has room for 2"
            in (self.told(site)[1][0])
        )

    def test_groups_of_which_the_racks_hold_only_one_even_when_empty_never_start(self) -> None:
        members, groups = gang_of(TWICE)
        told = self.told(racks(3, 1).submit("gang", members, groups=groups))
        assert told == (Gate.NEVER, [f"{AT_ONCE}, and for 1 with nothing else on them."])

    @pytest.mark.parametrize(
        ("taken", "gate", "line"),
        [
            pytest.param(0, Gate.TOPOLOGY, f"{AT_ONCE}.", id="enough is free, in two racks of three and one"),
            pytest.param(1, Gate.GANG, "It needs 4 members at once; 3 would find room now.", id="too little"),
        ],
    )
    def test_where_others_are_in_the_way_it_is_nearness_only_if_enough_is_free(
        self, taken: int, gate: Gate, line: str
    ) -> None:
        members, groups = gang_of(TWICE)
        site, full = racks(3, 2), ["r1-0", "r0-0"][: taken + 1]
        for name in full:
            site.submit(f"on-{name}", ONE)
            site.granted(f"on-{name}", a_placement(a_node(name, rack=name[:2]), range(8)))
        assert self.told(site.submit("gang", members, groups=groups)) == (gate, [line])

    @pytest.mark.parametrize(
        ("second", "gate"), [(3, Gate.NEVER), pytest.param(4, None, id="a block that holds both")]
    )
    def test_each_wish_alone_and_not_both(self, second: int, gate: Gate | None) -> None:
        """Two of four members inside one rack, all inside one block; of one block every node is a rack."""
        site = WorldBuilder()
        for number in range(4):
            site.node(a_node(f"r{number}", rack=f"r{number}", block="apart"))
        for number in range(second):
            site.node(a_node(f"s{number}", rack="s", block="one"))
        members, groups = gang_of([("a", [ONE] * 2, None, IN_A_RACK), ("b", [ONE] * 2, None, None)])
        site.submit("gang", members, groups=groups, wish=Wish(required=Level.BLOCK))
        if gate is None:
            assert len(nodes_of(planned(site, BEST_FIT))["gang"]) == 4
        else:
            held = "there is room for each of its wishes alone, but not for all at once"
            line = f"It needs 4 members inside one block: {held}, even with nothing else there."
            assert self.told(site) == (gate, [line])

    def test_members_that_differ_are_counted_together(self) -> None:
        big, small = a_request(6), a_request(4)
        site = racks(2, 1).submit("gang", [big, big, small], wish=IN_A_RACK)
        assert self.told(site)[1] == [
            "It needs 3 members inside one rack: the best of 2 racks has room for 2."
        ]


class TestReservations:
    """Room kept for a gang that waits is inside what it requires."""

    @pytest.mark.parametrize("engine", ["python", "numba"])
    def test_the_rack_that_is_ready_first(self, engine: str) -> None:
        how = settings(backfill=Backfill(overdue_wide_ms=0), engine=engine)
        site = racks(2, 2)
        for name, until in (("r0-0", 500), ("r0-1", 100), ("r1-0", 300), ("r1-1", 200)):
            site.submit(f"on-{name}", ONE, estimate_ms=until)
            rack = name.partition("-")[0]
            site.granted(f"on-{name}", a_placement(a_node(name, rack=rack), range(8))).started(f"on-{name}")
        site.submit("gang", [ONE] * 2, wish=IN_A_RACK, estimate_ms=1000)
        kept = [step for step in planned(site, how).steps if isinstance(step, Reserve)]
        assert [(step.job, step.from_ms) for step in kept] == [("gang", 300)]
        assert sorted(place.node.name for place in kept[0].placements) == ["r1-0", "r1-1"]

    @pytest.mark.parametrize("engine", ["python", "numba"])
    def test_every_slice_in_a_rack_of_its_own(self, engine: str) -> None:
        how = settings(backfill=Backfill(overdue_wide_ms=0), engine=engine)
        site = racks(3, 3)
        for name in ("r0-0", "r0-1", "r1-0", "r1-1"):
            site.submit(f"on-{name}", ONE, estimate_ms=100)
            rack = name.partition("-")[0]
            site.granted(f"on-{name}", a_placement(a_node(name, rack=rack), range(8))).started(f"on-{name}")
        site.submit("gang", [ONE] * 4, wish=Wish(balanced=Level.RACK, slice=2), estimate_ms=1000)
        (kept,) = (step for step in planned(site, how).steps if isinstance(step, Reserve))
        assert find_breach(site.job("gang").job.wish, (), homes(site, kept.placements)) is None


class TestPreemption:
    """Others are stopped inside one domain only."""

    def test_the_cheaper_rack_is_cleared(self) -> None:
        how = settings(preemption=Preemption(grace_ms=0))
        site = racks(2, 2)
        for name, since in (("r0-0", 0), ("r0-1", 900_000), ("r1-0", 600_000), ("r1-1", 700_000)):
            site.at = since
            site.submit(f"on-{name}", ONE)
            rack = name.partition("-")[0]
            site.granted(f"on-{name}", a_placement(a_node(name, rack=rack), range(8))).started(f"on-{name}")
        site.at = 1_000_000
        site.submit("gang", [ONE] * 2, wish=IN_A_RACK, priority=10)
        steps = planned(site, how).steps
        assert {step.job for step in steps if isinstance(step, Evict)} == {"on-r1-0", "on-r1-1"}
        (kept,) = (step for step in steps if isinstance(step, Reserve))
        assert find_breach(IN_A_RACK, (), homes(site, kept.placements)) is None


class TestElastic:
    def test_grows_inside_its_rack_only(self) -> None:
        how = settings(elastic=ElasticRules(dwell_ms=0))
        site = racks(2, 4)
        widths = Elastic((2, 4), (1000, 2000))
        site.submit("gang", [ONE] * 4, elastic=widths, wish=IN_A_RACK)
        homes_now = [a_node(f"r0-{at}", rack="r0") for at in range(2)]
        site.granted("gang", *(a_placement(node, range(8)) for node in homes_now)).started("gang").later(
            10**7
        )
        assert [step for step in planned(site, how).steps if isinstance(step, Resize)] == []

    def test_grows_where_its_rack_has_room(self) -> None:
        how = settings(elastic=ElasticRules(dwell_ms=0))
        site = racks(4, 4)
        site.submit("gang", [ONE] * 4, elastic=Elastic((2, 4), (1000, 2000)), wish=IN_A_RACK)
        homes_now = [a_node(f"r1-{at}", rack="r1") for at in range(2)]
        site.granted("gang", *(a_placement(node, range(8)) for node in homes_now)).started("gang").later(
            10**7
        )
        (step,) = (step for step in carried_out(site, how).steps if isinstance(step, Resize))
        assert {place.node.name[:2] for place in step.placements} == {"r1"}


def homes(site: WorldBuilder, placements: tuple[Placement, ...]) -> list[Node]:
    """The node of each placement."""
    return [site.world.nodes[placement.node].node for placement in placements]


class TestThoseAlike:
    """Jobs of one queue that ask for the same, with and without wishes, in every order."""

    QUEUES = (Queue("q", quotas=(Quota(CARDS, nominal=64_000),)),)

    @pytest.mark.parametrize("first", ["gang", "plain"])
    @pytest.mark.parametrize(
        "rules", [{}, {"backfill": Backfill(reservations=0)}, {"preemption": Preemption()}]
    )
    def test_who_has_no_wish_starts_though_one_with_a_wish_waits(
        self, first: str, rules: dict[str, Any]
    ) -> None:
        how = settings(queues=self.QUEUES, **rules)
        site = racks(3, 3)
        for name in (first, "plain" if first == "gang" else "gang"):
            site.submit(name, [ONE] * 4, wish=IN_A_RACK if name == "gang" else None, queue="q")
        assert nodes_of(carried_out(site, how)).keys() == {"plain"}

    def test_others_are_stopped_for_who_has_no_wish(self) -> None:
        how = settings(queues=self.QUEUES, preemption=Preemption(grace_ms=0))
        site = racks(1, 1)
        for name in ("r0-0", "r1-0"):
            site.submit(f"on-{name}", ONE, queue="q")
            node = a_node(name, rack=name.partition("-")[0])
            site.granted(f"on-{name}", a_placement(node, range(8))).started(f"on-{name}")
        site.submit("gang", [ONE] * 2, wish=IN_A_RACK, priority=10, queue="q")
        site.submit("plain", [ONE] * 2, priority=10, queue="q")
        kept = [step.job for step in planned(site, how).steps if isinstance(step, Reserve)]
        assert kept == ["plain"]


def test_groups_and_wishes_survive_the_journal_and_a_restart() -> None:
    wish = Wish(balanced=Level.RACK, slice=2, over=2)
    members, groups = gang_of([("a", [ONE] * 4, 2, wish), ("b", [a_request(0, cpu=1000)], None, None)])
    job = a_job("gang", members, groups=groups, wish=Wish(required=Level.BLOCK), minimum=4)
    event = JobSubmitted(0, job)
    assert msgspec.json.decode(msgspec.json.encode(event), type=JobSubmitted) == event
    site = racks(2, 2).happen(event)
    assert world_of(image_of(site.world)).jobs[job.id].job == job
