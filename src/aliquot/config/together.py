"""Jobs that may share their whole cards: what they need of each, and what they do with it alone.

`together: {memory: 12GiB, stages: {storage: 10%, cpu: 30%, gpu: 50%, network: 10%}}` for a job whose
iteration goes through stages, `together: {memory: 12GiB, compute: 45%, bandwidth: 30%}` for one that was
measured alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from aliquot.config.fields import Field, Table, read_fields
from aliquot.config.readers import asked_memory, duration, level
from aliquot.config.tree import Item
from aliquot.core.jobs import Request
from aliquot.core.slices import resolve_ask
from aliquot.core.together import STAGES as NAMES
from aliquot.core.together import Together
from aliquot.core.units import FULL

ROUNDING: Final = 2
"""Thousandths by which stages may miss the whole: three thirds are 999."""

STAGES: Final[Table] = {stage: Field(level) for stage in NAMES}


def _stages(item: Item) -> tuple[int, ...]:
    """Thousandths by stage, with what rounding lost on the longest."""
    said = read_fields(item, STAGES)
    parts = [said.get(stage, 0) for stage in NAMES]
    missing = FULL - sum(parts)
    if abs(missing) > ROUNDING:
        item.fail(f"stages of {sum(parts) / 10:g}% in all", "parts of one iteration, 100% in all")
    parts[parts.index(max(parts))] += missing
    return tuple(parts)


TOGETHER: Final[Table] = {
    "memory": Field(asked_memory, "memory_mib", required=True),
    "stages": Field(_stages, "stages_milli"),
    "iteration": Field(duration, "iteration_ms"),
    "compute": Field(level, "compute_milli"),
    "bandwidth": Field(level, "bandwidth_milli"),
    "overhead": Field(level, "overhead_milli"),
}


def read_together(item: Item, members: Sequence[Request], *, elastic: bool, scatter: bool) -> Together:
    """What a job of `members` says of sharing; fails where it has no cards of its own to share."""
    values = read_fields(item, TOGETHER)
    if not all(request.whole for request in members):
        item.fail("only whole cards are shared by agreement", "ask for whole cards, or leave it out")
    if elastic or scatter:
        item.fail(
            "a job of changing shape does not share its cards", "leave out elastic and scatter, or this"
        )
    used = [key for key in ("compute", "bandwidth") if item.get(key) is not None]
    if ("stages_milli" in values) == bool(used):
        item.fail(
            "what the job does with a card alone has to be said once",
            "stages: {cpu: 40%, gpu: 60%}, or compute: 45% and bandwidth: 30%",
        )
    if len(used) == 1:
        item.fail(f"{used[0]} without the other", "compute and bandwidth, both measured alone")
    if used and "iteration_ms" in values:
        (item.get("iteration") or item).fail("an iteration without its stages", "leave it out")
    for request in members:
        asked = request.ask.memory_mib
        if asked is not None and resolve_ask(request.ask, asked) is not None and values["memory_mib"] > asked:
            (item.get("memory") or item).fail(
                "needs more memory together than it asks for", f"{asked}MiB or less"
            )
    return Together(**values)
