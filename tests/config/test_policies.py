"""Policies: presets, weights and what follows from them, fields that change one value, and the way back."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import astuple, replace

from aliquot.catalog import load_catalog
from aliquot.config import BUILTIN
from aliquot.config.builtin import ABOUT
from aliquot.config.objectives import PRESETS, weigh, weighed
from aliquot.config.spelling import list_policies, spell_ms, spell_policy
from aliquot.core.settings import (
    HOUR_MS,
    Backfill,
    Defrag,
    ElasticRules,
    Idling,
    Objectives,
    Order,
    Overrun,
    Preemption,
    Rates,
    Settings,
)
from tests.config.documents import CLUSTER, check_error, document, load, policy_of

QUARTERS = Objectives()
weights = st.lists(st.integers(0, 1000), min_size=4, max_size=4).filter(any)


def goals(**milli: int) -> Objectives:
    """Weights of the goals named; those left out weigh nothing."""
    names = ("performance", "utilisation", "fairness", "stability")
    return Objectives(**{f"{name}_milli": milli.get(name, 0) for name in names})


def scaled(parts: list[int]) -> Objectives:
    total = sum(parts)
    first = [part * 1000 // total for part in parts[1:]]
    return Objectives(1000 - sum(first), *first)


# --- presets -------------------------------------------------------------------------------------------


def test_there_is_a_preset_for_every_stage_and_kind_of_site() -> None:
    assert [preset.name for preset in PRESETS] == [
        "development",
        "training",
        "inference",
        "balanced",
        "internal-platform",
        "latency-service",
    ]
    assert all(sum(astuple(preset.objectives)) == 1000 for preset in PRESETS)


def test_what_each_kind_of_site_puts_first() -> None:
    by_name = {preset.name: preset.objectives for preset in PRESETS}
    inside, outside = by_name["internal-platform"], by_name["latency-service"]
    others = (inside.performance_milli, inside.stability_milli)
    assert min(inside.utilisation_milli, inside.fairness_milli) > max(others)
    others = (outside.utilisation_milli, outside.fairness_milli)
    assert min(outside.performance_milli, outside.stability_milli) > max(others)


def test_every_preset_is_a_policy_that_needs_no_document_and_says_what_it_is() -> None:
    assert {preset.name for preset in PRESETS} <= set(dict(BUILTIN))
    assert set(ABOUT) == set(dict(BUILTIN))


# --- weights into values --------------------------------------------------------------------------------


def test_a_quarter_each_is_the_usual_value() -> None:
    values = weigh(QUARTERS)
    assert values.backfill == Backfill()
    assert values.order == Order(aging_ms=HOUR_MS, aging_ceiling=10)
    assert values.preemption == Preemption(least_run_ms=600_000)
    assert values.rescue.share == 0.03


EFFECTS: list[tuple[str, str, Callable[[Objectives], Any]]] = [
    ("fairness shortens the half-life of past use", "fairness", lambda g: -weigh(g).order.half_life_ms),
    ("fairness reserves sooner", "fairness", lambda g: -weigh(g).backfill.overdue_ms),
    ("fairness raises priority sooner", "fairness", lambda g: -weigh(g).order.aging_ms),
    ("utilisation keeps more reservations", "utilisation", lambda g: weigh(g).backfill.reservations),
    ("utilisation trusts estimates more", "utilisation", lambda g: -weigh(g).backfill.doubt_milli),
    ("utilisation moves more to make room", "utilisation", lambda g: weigh(g).rescue.share),
    ("stability makes moves gain more", "stability", lambda g: weigh(g).rescue.tidy_gain),
    ("stability lets moves destroy less", "stability", lambda g: -weigh(g).rescue.worth_milli),
    (
        "stability leaves jobs alone for longer",
        "stability",
        lambda g: (weigh(g).preemption or Preemption(least_run_ms=10**9)).least_run_ms,
    ),
    ("performance puts small work first", "performance", lambda g: weigh(g).order.by_size),
]


@pytest.mark.parametrize(("goal", "of"), [row[1:] for row in EFFECTS], ids=[row[0] for row in EFFECTS])
def test_a_goal_that_weighs_more_is_served_more(goal: str, of: Callable[[Objectives], Any]) -> None:
    def weighs(milli: int) -> Objectives:
        rest = dict.fromkeys(("performance", "utilisation", "fairness", "stability"), (1000 - milli) // 3)
        return goals(**(rest | {goal: milli}))

    served = [of(weighs(milli)) for milli in range(100, 1000, 50)]
    assert served == sorted(served)
    assert served[0] < served[-1]


def test_without_fairness_the_past_does_not_count_and_lent_quota_stays_lent() -> None:
    values = weigh(goals(performance=500, utilisation=300, stability=200))
    assert (values.order.half_life_ms, values.order.aging_ms) == (0, 0)
    assert values.preemption is not None
    assert not values.preemption.reclaim


def test_where_stability_outweighs_all_else_nothing_is_stopped_for_another() -> None:
    assert weigh(goals(stability=501, performance=499)).preemption is None
    assert weigh(goals(stability=500, performance=500)).preemption is not None


@given(weights)
def test_whatever_weighs_values_stay_sensible(parts: list[int]) -> None:
    values = weigh(scaled(parts))
    assert 0 <= values.order.half_life_ms <= 7 * 24 * HOUR_MS
    assert values.backfill.first <= values.backfill.reservations <= 32
    assert values.backfill.doubt_milli >= 1000
    assert values.backfill.overdue_wide_ms <= values.backfill.overdue_ms
    assert 0 <= values.rescue.share <= 0.1
    assert values == weigh(scaled(parts))


# --- documents ------------------------------------------------------------------------------------------


def test_a_preset_is_a_start_and_each_field_changes_one_value(tmp_path: Path) -> None:
    preset = dict(BUILTIN)["training"]
    found = policy_of(
        tmp_path,
        "{preset: training, order: {halfLife: 12h}, backfill: {reservations: 2}, preemption: {grace: 1m},"
        " rescue: {tidyMoves: 3}}",
    )
    assert preset.backfill is not None
    assert preset.preemption is not None
    assert found == replace(
        preset,
        order=replace(preset.order, half_life_ms=12 * HOUR_MS),
        backfill=replace(preset.backfill, reservations=2),
        preemption=replace(preset.preemption, grace_ms=60_000),
        rescue=replace(preset.rescue, tidy_moves=3),
    )


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ("{objectives: {fairness: 100%}}", Objectives(0, 0, 1000, 0)),
        ("{objectives: {fairness: 40%}}", Objectives(200, 200, 400, 200)),
        ("{preset: training, objectives: {fairness: 40%}}", Objectives(248, 247, 400, 105)),
        ("{preset: training}", Objectives(350, 350, 150, 150)),
        (
            "{objectives: {performance: 10%, utilisation: 20%, fairness: 30%, stability: 40%}}",
            Objectives(100, 200, 300, 400),
        ),
        ("{seed: 1}", None),
    ],
    ids=str,
)
def test_weights_that_are_written_count_and_the_others_share_the_rest(
    tmp_path: Path, spec: str, found: Objectives | None
) -> None:
    settings = policy_of(tmp_path, spec)
    assert settings.objectives == found
    if found is not None:
        assert settings == weighed(Settings(), found)


def test_every_part_of_a_policy_without_a_preset(tmp_path: Path) -> None:
    found = policy_of(
        tmp_path,
        "{order: {aging: 30m, agingCeiling: -2, halfLife: 0, bySize: true},"
        " backfill: {bySize: false, overdue: 6h, overdueWide: 3h, wideCards: 4, reservations: 4, first: 2,"
        " doubt: 1.5, passBlocked: false, byEnd: false}, overrun: {least: 5m, again: 0.25},"
        " preemption: {lowerPriority: false, acrossQueues: true, reclaim: false, spot: false,"
        " leastRun: 10m, grace: 0s,"
        " mostVictims: 3, mostEvictions: 0, again: 2, perPlan: 5, shrink: false},"
        " elasticity: {change: 0.2, dwell: 5m, evenness: 0.7},"
        " defrag: {movesAnHour: 3, after: 1m, pause: 2s},"
        " idling: {warnAfter: 1h, stopAfter: 2h, grace: 0s},"
        " rates: {T4: {compute: 0.4, month: 99.5}, a100-40gb: {compute: 1}}}",
    )
    assert found.order == Order(1_800_000, -2, 0, True)
    assert found.backfill == Backfill(
        by_size=False,
        overdue_ms=6 * HOUR_MS,
        overdue_wide_ms=3 * HOUR_MS,
        wide_cards=4,
        reservations=4,
        first=2,
        doubt_milli=1500,
        pass_blocked=False,
        by_end=False,
    )
    assert found.overrun == Overrun(300_000, 250)
    assert found.preemption == Preemption(False, True, False, False, 600_000, 0, 3, 0, 2000, 5, False)
    assert found.elastic == ElasticRules(200, 300_000, 700)
    assert found.defrag == Defrag(3, 60_000, 2000)
    assert found.idling == Idling(HOUR_MS, 2 * HOUR_MS, 0)
    assert found.rates == Rates((("T4", 400), ("A100-SXM4-40GB", 1000)), (("T4", 9950),))


@pytest.mark.parametrize(
    ("spec", "ceiling"),
    [
        pytest.param("{order: {aging: 30m}}", 10, id="as the presets have it"),
        pytest.param(
            "{order: {aging: 30m}, objectives: {fairness: 0}}", 10, id="over a preset without aging"
        ),
        pytest.param("{order: {aging: 30m, agingCeiling: 0}}", 0, id="none where it is said"),
    ],
)
def test_aging_without_a_ceiling_raises_all_the_same(tmp_path: Path, spec: str, ceiling: int) -> None:
    assert policy_of(tmp_path, spec).order.aging_ceiling == ceiling


@pytest.mark.parametrize("part", ["backfill", "preemption"])
def test_a_part_may_be_switched_on_and_off(tmp_path: Path, part: str) -> None:
    on = policy_of(tmp_path, f"{{{part}: true}}")
    assert getattr(on, part) in (Backfill(), Preemption())
    assert getattr(policy_of(tmp_path, f"{{{part}: false, preset: balanced}}"), part) is None
    assert getattr(policy_of(tmp_path, "{seed: 1}"), part) is None


def test_a_policy_with_rates_of_its_own_keeps_them(tmp_path: Path) -> None:
    rated = CLUSTER.replace("spec:\n", "spec:\n  rates: {T4: {compute: 1}}\n")
    policy = document("Policy", "p", "{rates: {T4: {compute: 2}}}")
    scenario = load(tmp_path, rated, policy)
    rates = {name: settings.rates.compute_milli for name, settings in scenario.policies}
    assert (rates["p"], rates["fgd"]) == ((("T4", 2000),), (("T4", 1000),))


def policy(spec: str) -> str:
    return document("Policy", "p", spec)


# (story, document, field, part of the message)
WRONG = [
    (
        "a ceiling where nothing rises",
        policy("{order: {agingCeiling: 5}}"),
        "spec.order.agingCeiling",
        "aging beside it",
    ),
    ("an unknown preset", policy("{preset: trainin}"), "spec.preset", "did you mean 'training'?"),
    ("a goal over the whole", policy("{objectives: {fairness: 120%}}"), "spec.objectives.fairness", "whole"),
    (
        "goals over the whole",
        policy("{objectives: {fairness: 60%, stability: 60%}}"),
        "spec.objectives",
        "120% in all",
    ),
    (
        "all goals, and less than the whole",
        policy("{objectives: {fairness: 10%, stability: 10%, performance: 10%, utilisation: 10%}}"),
        "spec.objectives",
        "40% in all",
    ),
    ("an unknown goal", policy("{objectives: {fairnes: 1%}}"), "spec.objectives.fairnes", "'fairness'"),
    ("a field in the wrong case", policy("{order: {halflife: 1h}}"), "spec.order.halflife", "'halfLife'"),
    ("a half-life without a unit", policy("{order: {halfLife: 12}}"), "spec.order.halfLife", "90s, 4h"),
    ("a switch in other words", policy("{preemption: maybe}"), "spec.preemption", "true or false"),
    (
        "more first than reservations",
        policy("{backfill: {reservations: 1, first: 2}}"),
        "spec.backfill",
        "first 2 of 1",
    ),
    ("a rate of a family", policy("{rates: {A100: {compute: 1}}}"), "spec.rates.A100", "several models"),
    ("a rate of nothing", policy("{rates: {T4: {}}}"), "spec.rates.T4", "no rate of its own"),
    (
        "a rate of an unknown model",
        policy("{rates: {T5: {compute: 1}}}"),
        "spec.rates.T5",
        "unknown GPU model",
    ),
    ("a policy named like a preset", document("Policy", "training", "{seed: 1}"), "", "of Aliquot's own"),
]


@pytest.mark.parametrize(("text", "field", "why"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_what_is_wrong_with_a_policy_is_named(tmp_path: Path, text: str, field: str, why: str) -> None:
    check_error(tmp_path, f"{CLUSTER}---\n{text}", field, why, after_line=6)


# --- and back -------------------------------------------------------------------------------------------


def written(fields: dict[str, str]) -> str:
    """Fields such as `order.aging` as a map in a map."""
    nested: dict[str, Any] = {}
    for field, value in fields.items():
        part, _, key = field.partition(".")
        if key:
            nested.setdefault(part, {})[key] = value
        else:
            nested[part] = value
    parts = (
        f"{key}: {{{', '.join(f'{k}: {v}' for k, v in value.items())}}}"
        if isinstance(value, dict)
        else f"{key}: {value}"
        for key, value in nested.items()
    )
    return "{" + ", ".join(parts) + "}"


@pytest.mark.parametrize("name", [name for name, _ in BUILTIN])
def test_a_policy_as_it_is_shown_reads_back_the_same(tmp_path: Path, name: str) -> None:
    settings = dict(BUILTIN)[name]
    assert policy_of(tmp_path, written(spell_policy(settings))) == settings


@given(weights, st.integers(0, 10**12), st.booleans())
def test_whatever_a_policy_says_reads_back_the_same(parts: list[int], half_life: int, shared: bool) -> None:
    settings = weighed(Settings(shared=shared, policy=(("fgd", 0.75), ("spread", 0.25))), scaled(parts))
    settings = replace(settings, order=replace(settings.order, half_life_ms=half_life))
    with tempfile.TemporaryDirectory() as folder:
        assert policy_of(Path(folder), written(spell_policy(settings))) == settings


@pytest.mark.parametrize(
    ("ms", "text"), [(0, "0s"), (1, "1ms"), (90_000, "1m30s"), (86_400_000, "1d"), (5_400_001, "1h30m1ms")]
)
def test_a_duration_is_written_to_the_millisecond(ms: int, text: str) -> None:
    assert spell_ms(ms) == text


def test_policies_of_documents_come_first_and_need_no_cluster(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(document("Policy", "night", "{preset: balanced, seed: 3}"))
    pages = list_policies([file], load_catalog())
    assert [page.name for page in pages] == ["night", *dict(BUILTIN)]
    assert ("seed", "3", "0") in pages[0].rows
    assert ("objectives.fairness", "25%", "-") in pages[0].rows
