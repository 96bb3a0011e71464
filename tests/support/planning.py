"""The real planner on a world told as a story: what it decides, and what commit makes of it."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from aliquot.core.planner import Memo, explain_wait, plan
from aliquot.core.settings import Settings
from aliquot.core.steps import Gate, Place, Plan, Shortfall, Wait
from tests.support.worlds import WorldBuilder

PLAIN = Settings(engine="python")
"""The default policy by its plain twins: small sites need nothing compiled."""


def settings(policy: str = "best-fit", **changes: Any) -> Settings:
    """One placement policy, uncompiled, with other values than the default's."""
    return replace(PLAIN, policy=((policy, 1.0),), **changes)


def planned(site: WorldBuilder, how: Settings = PLAIN, *, memo: Memo | None = None, **more: Any) -> Plan:
    """What the planner would do now."""
    return plan(site.frozen, how, site.at, memo or Memo(), **more)


def carried_out(site: WorldBuilder, how: Settings = PLAIN, *, memo: Memo | None = None) -> Plan:
    """Plan, commit, fold; commit must accept all of it."""
    decided = planned(site, how, memo=memo)
    site.check(*decided.steps)
    assert site.verdict.refused == ()
    return decided


def placements(decided: Plan) -> dict[str, list[tuple[str, list[str]]]]:
    """job -> [(node, cards) of each member] of what a plan places."""
    return {
        step.job: [(there.node.name, list(there.cards)) for there in step.placements]
        for step in decided.steps
        if isinstance(step, Place)
    }


def nodes_of(decided: Plan) -> dict[str, list[str]]:
    """job -> node of each member, of what a plan places."""
    return {job: [node for node, _ in there] for job, there in placements(decided).items()}


def gates(decided: Plan) -> dict[str, Gate]:
    """job -> what holds it, of what a plan lets wait."""
    return {step.job: step.gate for step in decided.steps if isinstance(step, Wait)}


def why(site: WorldBuilder, name: str, how: Settings = PLAIN) -> Wait:
    """Why a job waits, with reasons that add up to the nodes, which is checked here."""
    wait = explain_wait(site.frozen, how, site.job(name).job.id, Memo())
    if wait.reasons:
        assert sum(reason.nodes for reason in wait.reasons) == site.frozen.rows
    return wait


def shortfalls(wait: Wait) -> dict[Shortfall, tuple[int, int | None, int | None]]:
    """shortfall -> (nodes, need, best)."""
    return {reason.shortfall: (reason.nodes, reason.need, reason.best) for reason in wait.reasons}


def width(site: WorldBuilder, name: str) -> int:
    """Cards of a job."""
    return sum(len(grant.placement.cards) for grant in site.world.grants[site.job(name).job.id])


def ran(site: WorldBuilder, how: Settings) -> WorldBuilder:
    """Whoever waits is placed, and all run for ten minutes."""
    carried_out(site, how)
    for name in site.holding:
        site.started(name)
    return site.later(10 * 60_000)
