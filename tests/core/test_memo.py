"""The memo: what it keeps, when it starts anew, and that it never matters."""

from __future__ import annotations

from aliquot.control.encode import encode_json
from aliquot.core.events import EpochBegan
from aliquot.core.memo import KEPT, Memo
from aliquot.core.settings import MixSource
from tests.support.build import L40S, T4, a_node, a_request
from tests.support.planning import PLAIN, carried_out, placements, planned, settings
from tests.support.worlds import WorldBuilder


def test_scorers_are_kept_while_kinds_and_settings_stay() -> None:
    site, memo = WorldBuilder().nodes(3, cards=4), Memo()
    placer, _ = memo.prepare(site.frozen, PLAIN)
    site.submit("job").placed()
    assert memo.prepare(site.frozen, PLAIN)[0] is placer
    assert memo.prepare(site.node(a_node("new", 2, model=T4)).frozen, PLAIN)[0] is not placer
    again, _ = memo.prepare(site.frozen, PLAIN)
    assert memo.prepare(site.frozen, settings("fgd"))[0] is not again


def test_one_memo_may_serve_policies_in_turn() -> None:
    site, memo = WorldBuilder().nodes(2, cards=8).submit("a", a_request(1, compute=400)), Memo()
    carried_out(site, settings())
    site.submit("b", a_request(1, compute=400)).submit("c")
    for policy in ("spread", "best-fit", "fgd", "future-packing", "spread"):
        assert planned(site, settings(policy), memo=memo) == planned(site, settings(policy)), policy


def test_a_kind_that_joins_late_is_seen_by_requests_that_were_resolved_before() -> None:
    site, memo = (
        WorldBuilder().node(a_node("t", 2, model=T4)).submit("large", a_request(1, memory=30_000)),
        Memo(),
    )
    assert placements(planned(site, memo=memo)) == {}
    site.node(a_node("l", 2, model=L40S))
    assert placements(planned(site, memo=memo))["large"][0][0] == "l"


def test_a_new_epoch_scores_by_its_own_mix() -> None:
    how = settings("future-packing", mix_source=MixSource.WINDOW)
    site, memo = WorldBuilder().nodes(3, cards=4), Memo()
    for number in range(3):
        site.submit(f"j{number}", a_request(1, compute=500))
    planned(site, how, memo=memo)
    site.happen(EpochBegan(0, 1, 7, ((a_request(1, compute=300), 5), (a_request(4), 2))))
    assert encode_json(planned(site, how, memo=memo)) == encode_json(planned(site, how))


def test_requests_that_accept_the_same_kinds_are_one_group_of_demand() -> None:
    site, memo = WorldBuilder().node(a_node("t", 2, model=T4)).node("h", 2), Memo()
    memo.prepare(site.frozen, PLAIN)

    def spec(**how: object) -> int:
        return memo.options(a_request(1, **how))[0][1].spec  # type: ignore[arg-type] # a_request checks

    assert spec(compute=100) == spec(compute=200)
    assert spec(models=("T4",)) != spec(compute=100)


def test_it_does_not_grow_with_every_request_it_has_seen() -> None:
    site, memo = WorldBuilder().node("n", 2), Memo()
    for turn in range(3):
        memo.prepare(site.frozen, PLAIN)
        for number in range(KEPT // 2 + 1):
            memo.options(a_request(0, cpu=turn * KEPT + number))
        assert memo.known <= KEPT + KEPT // 2 + 2


def test_the_order_in_which_requests_were_first_seen_does_not_matter() -> None:
    """Groups of demand are numbered as they come; nothing may depend on the numbers."""
    how = settings("future-packing", mix_source=MixSource.WINDOW)
    site, memo = WorldBuilder(), Memo()
    for number in range(3):
        site.node(a_node(f"t{number}", 4, model=T4)).node(a_node(f"l{number}", 4, model=L40S))
    either, small, large = (
        a_request(2, cpu=4_000, models=models) for models in (("T4", "L40S"), ("T4",), ("L40S",))
    )
    site.submit("large", large).submit("small", small).submit("either", either)
    planned(site, how, memo=memo)
    site.happen(EpochBegan(0, 1, 3, ((either, 3), (small, 3), (large, 3), (a_request(1, compute=300), 3))))
    for number in range(6):
        site.submit(f"j{number}", (either, small, large)[number % 3])
    assert encode_json(planned(site, how, memo=memo)) == encode_json(planned(site, how))
