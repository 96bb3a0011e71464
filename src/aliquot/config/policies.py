"""Policies: a document into the core's settings, and the named ones that every scenario has.

A document starts from the defaults, or from a preset; then from weights of its own; then each field that it
names replaces that value and no other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from aliquot.config.fields import Field, Table, quantity, read_fields
from aliquot.config.objectives import PRESETS, WHOLE, weighed
from aliquot.config.readers import (
    choice,
    count,
    duration,
    flag,
    level,
    moment,
    money,
    one_of,
    ratio,
    share,
    thousandths,
    whole,
)
from aliquot.config.shelf import ModelNames
from aliquot.config.tree import Item, nearest
from aliquot.core import units
from aliquot.core.settings import (
    Backfill,
    Colocation,
    Defrag,
    Discipline,
    ElasticRules,
    Estimating,
    Idling,
    MixSource,
    Objectives,
    Order,
    Overrun,
    Preemption,
    Rates,
    Rescue,
    Settings,
    Source,
    SpotCap,
)
from aliquot.core.together import SEATS

DEFAULT_PLACEMENT: Final = "future-packing"
PLACEMENTS: Final = (
    DEFAULT_PLACEMENT,
    "fgd",
    "best-fit",
    "spread",
    "gpu-packing",
    "gpu-clustering",
    "dot-product",
    "random",
)
SYNONYMS: Final = {"binpack": "best-fit"}

MECHANISMS: Final = ("mps", "time-slicing", "mig", "cgpu", "vgpu", "hami")

MIX: Final[Table] = {
    "source": Field(choice(MixSource), "mix_source"),
    "window": Field(count(1, 10**6), "mix_window"),
    "epoch": Field(count(1, 10**6), "mix_epoch"),
}
RESCUE: Final[Table] = {
    "share": Field(ratio),
    "worth": Field(share, "worth_milli"),
    "tidyGain": Field(count(0, 10**6), "tidy_gain"),
    "tidyEvery": Field(share, "tidy_every_milli"),
    "tidyFrom": Field(share, "tidy_from_milli"),
    "tidyMoves": Field(count(0, 10**6), "tidy_moves"),
}
ORDER: Final[Table] = {
    "aging": Field(moment, "aging_ms"),
    "agingCeiling": Field(whole, "aging_ceiling"),
    "halfLife": Field(moment, "half_life_ms"),
    "bySize": Field(flag, "by_size"),
}
OVERRUN: Final[Table] = {"least": Field(moment, "least_ms"), "again": Field(thousandths, "again_milli")}
ESTIMATES: Final[Table] = {"source": Field(choice(Source)), "quantile": Field(share, "quantile_milli")}
BACKFILL: Final[Table] = {
    "bySize": Field(flag, "by_size"),
    "overdue": Field(moment, "overdue_ms"),
    "overdueWide": Field(moment, "overdue_wide_ms"),
    "wideCards": Field(count(1, 4096), "wide_cards"),
    "reservations": Field(count(0, 1000)),
    "first": Field(count(0, 1000)),
    "doubt": Field(thousandths, "doubt_milli"),
    "passBlocked": Field(flag, "pass_blocked"),
    "byEnd": Field(flag, "by_end"),
}
PREEMPTION: Final[Table] = {
    "lowerPriority": Field(flag, "lower_priority"),
    "acrossQueues": Field(flag, "across_queues"),
    "reclaim": Field(flag),
    "spot": Field(flag),
    "leastRun": Field(moment, "least_run_ms"),
    "grace": Field(moment, "grace_ms"),
    "mostVictims": Field(count(1, 10**6), "most_victims"),
    "mostEvictions": Field(count(0, 10**6), "most_evictions"),
    "again": Field(thousandths, "again_milli"),
    "perPlan": Field(count(1, 10**6), "per_plan"),
    "work": Field(count(1, 10**9)),
    "shrink": Field(flag),
}
ELASTICITY: Final[Table] = {
    "change": Field(thousandths, "change_milli"),
    "dwell": Field(moment, "dwell_ms"),
    "evenness": Field(thousandths, "evenness_milli"),
}
DEFRAG: Final[Table] = {
    "movesAnHour": Field(count(0, 10**6), "moves_an_hour"),
    "after": Field(moment, "after_ms"),
    "pause": Field(moment, "pause_ms"),
}
COLOCATION: Final[Table] = {
    "leastGain": Field(thousandths, "least_gain_milli"),
    "most": Field(count(2, SEATS)),
}
SPOT: Final[Table] = {"quantile": Field(share, "quantile_milli"), "horizon": Field(duration, "horizon_ms")}
IDLING: Final[Table] = {
    "warnAfter": Field(moment, "warn_after_ms"),
    "stopAfter": Field(moment, "stop_after_ms"),
    "grace": Field(moment, "grace_ms"),
}
RATE: Final[Table] = {"compute": Field(thousandths), "month": Field(money)}
OBJECTIVES: Final[Table] = {
    goal: Field(level, f"{goal}_milli") for goal in ("performance", "utilisation", "fairness", "stability")
}


def read_placement(item: Item) -> tuple[tuple[str, float], ...]:
    """A placement policy by name, or a map of weights such as `{fgd: 0.7, best-fit: 0.3}`."""
    if item.text is not None:
        return ((_placement(item, item.scalar()), 1.0),)
    weights: dict[str, float] = {}
    for key, child in item.fields():
        word = _placement(child, key)
        weight = quantity(units.parse_fraction)(child)
        if weight == 0 or word in weights:
            child.fail(f"{key!r} has no weight of its own", "more than 0, once for each policy")
        weights[word] = float(weight)
    if not weights:
        item.fail("no placement policy", nearest("", PLACEMENTS))
    return tuple(weights.items())


def _placement(item: Item, word: str) -> str:
    if word not in PLACEMENTS and word not in SYNONYMS:
        item.fail(f"unknown placement policy {word!r}", nearest(word, (*PLACEMENTS, *SYNONYMS)))
    return SYNONYMS.get(word, word)


def _mix(item: Item) -> dict[str, Any]:
    if item.text is not None:
        return {"mix_source": choice(MixSource)(item)}
    return read_fields(item, MIX)


def _estimates(item: Item) -> dict[str, Any]:
    """`estimates: best` is short for a source."""
    return {"source": choice(Source)(item)} if item.text is not None else read_fields(item, ESTIMATES)


def _rescue(item: Item) -> dict[str, Any]:
    """`rescue: 3%` is the share of placed jobs that may move; a map sets the rest too."""
    return {"share": ratio(item)} if item.text is not None else read_fields(item, RESCUE)


def _switched(table: Table) -> Callable[[Item], dict[str, Any] | None]:
    """A reader of `false` (None), `true` (as it is), or a map of what is to be otherwise."""

    def read(item: Item) -> dict[str, Any] | None:
        if item.text is not None:
            return {} if flag(item) else None
        return read_fields(item, table)

    return read


def _mechanisms(item: Item) -> tuple[tuple[str, bool], ...]:
    return tuple(read_fields(item, {word: Field(flag) for word in MECHANISMS}).items())


POLICY: Final[Table] = {
    "preset": Field(one_of([preset.name for preset in PRESETS])),
    "objectives": Field(lambda item: item),
    "placement": Field(read_placement, "policy"),
    "sharing": Field(flag, "shared"),
    "discipline": Field(choice(Discipline)),
    "byPriority": Field(flag, "by_priority"),
    "topologyAware": Field(flag, "topology_aware"),
    "order": Field(lambda item: read_fields(item, ORDER)),
    "backfill": Field(_switched(BACKFILL)),
    "overrun": Field(lambda item: read_fields(item, OVERRUN)),
    "estimates": Field(_estimates),
    "preemption": Field(_switched(PREEMPTION)),
    "elasticity": Field(_switched(ELASTICITY), "elastic"),
    "defrag": Field(_switched(DEFRAG)),
    "idling": Field(_switched(IDLING)),
    "colocation": Field(_switched(COLOCATION)),
    "spot": Field(_switched(SPOT), "spot_cap"),
    "rates": Field(lambda item: item),
    "mix": Field(_mix),
    "rescue": Field(_rescue),
    "scatter": Field(flag),
    "seed": Field(count(0, 2**31 - 1)),
    "mechanisms": Field(_mechanisms),
    "engine": Field(one_of(["numba", "python"])),
}
Part = Order | Overrun | Estimating | Backfill | Preemption | Rescue | ElasticRules | Defrag | Idling
Sharing = Colocation | SpotCap
PARTS: Final[dict[str, type[Part | Sharing]]] = {
    "order": Order,
    "overrun": Overrun,
    "estimates": Estimating,
    "rescue": Rescue,
    "backfill": Backfill,
    "preemption": Preemption,
    "elastic": ElasticRules,
    "defrag": Defrag,
    "idling": Idling,
    "colocation": Colocation,
    "spot_cap": SpotCap,
}


def read_policy(spec: Item, names: ModelNames) -> Settings:
    """The settings of a policy document; what it leaves out keeps the default, or the preset's value."""
    values = read_fields(spec, POLICY)
    base = _base(spec, values)
    values |= values.pop("mix", {})
    if "rates" in values:
        values["rates"] = read_rates(values["rates"], names)
    for part, kind in PARTS.items():
        if part in values:
            values[part] = _change(getattr(base, part) or kind(), values[part])
    settings = replace(base, **values)
    _check_aging(spec, settings)
    idling = settings.idling
    if idling is not None and idling.stop_after_ms < idling.warn_after_ms:
        (spec.get("idling") or spec).fail("stopped before it is warned", "stopAfter no less than warnAfter")
    if settings.elastic is not None and settings.elastic.evenness_milli < 1:
        (spec.get("elasticity") or spec).fail("evenness is 0", "above 0, such as 0.5")
    backfill = settings.backfill
    if backfill is not None and backfill.first > backfill.reservations:
        (spec.get("backfill") or spec).fail(
            f"first {backfill.first} of {backfill.reservations} reservations", "first: as many at most"
        )
    return settings


def _check_aging(spec: Item, settings: Settings) -> None:
    order = spec.get("order")
    ceiling = None if order is None else order.get("agingCeiling")
    if (
        order is not None
        and ceiling is not None
        and not settings.order.aging_ms
        and order.get("aging") is None
    ):
        ceiling.fail("a ceiling where nothing rises", "aging beside it, such as 1h, or leave it out")


def read_rates(item: Item, names: ModelNames) -> Rates:
    """What a card of each model is worth: `{A100-SXM4-80GB: {compute: 1, month: 1500}}`."""
    compute: dict[str, int] = {}
    cents: dict[str, int] = {}
    for key, child in item.fields():
        model = names.find(Item(child.file, child.line, child.path, text=key))
        if model is None:
            child.fail(f"unknown GPU model {key!r}", names.hint(key))
        said = read_fields(child, RATE)
        if not said or model.name in compute or model.name in cents:
            child.fail(f"no rate of its own for {model.name}", "compute, month or both, once for each model")
        compute |= {model.name: said["compute"]} if "compute" in said else {}
        cents |= {model.name: said["month"]} if "month" in said else {}
    return Rates(tuple(compute.items()), tuple(cents.items()))


def _base(spec: Item, values: dict[str, Any]) -> Settings:
    """What the document starts from; takes `preset` and `objectives` out of `values`."""
    preset = next((each for each in PRESETS if each.name == values.get("preset")), None)
    goals = None if preset is None else preset.objectives
    written: Item | None = values.pop("objectives", None)
    values.pop("preset", None)
    if written is not None:
        goals = _mix_goals(written, goals or Objectives())
    return Settings() if goals is None else weighed(Settings(), goals)


def _mix_goals(item: Item, usual: Objectives) -> Objectives:
    """Those written down weigh what is written; the others share the rest in their own proportion."""
    said: dict[str, int] = read_fields(item, OBJECTIVES)
    rest = WHOLE - sum(said.values())
    others = {field: getattr(usual, field) for field in usual.__struct_fields__ if field not in said}
    if rest < 0 or (rest and not others):
        item.fail(f"weights of {(WHOLE - rest) / 10:g}% in all", "100% in all; leave out what is to follow")
    if not sum(others.values()):
        others = dict.fromkeys(others, 1)
    total = sum(others.values())
    shared = {field: rest * weight // total for field, weight in others.items()}
    for field in list(shared)[: rest - sum(shared.values())]:
        shared[field] += 1
    return Objectives(**said, **shared)


def _change(usual: Any, said: dict[str, Any] | None) -> Any:
    return None if said is None else replace(usual, **said)
