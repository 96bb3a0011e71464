"""A policy in the words of documents: each field as one would write it. What is read back is the same policy.

Queues, slice classes and rates belong to the site and not to the policy, so they are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec import Struct

from aliquot.config.builtin import ABOUT, BUILTIN
from aliquot.config.documents import read_documents
from aliquot.config.fields import Table
from aliquot.config.policies import (
    BACKFILL,
    COLOCATION,
    DEFRAG,
    ELASTICITY,
    ESTIMATES,
    IDLING,
    OBJECTIVES,
    ORDER,
    OVERRUN,
    POLICY,
    PREEMPTION,
    RESCUE,
    SPOT,
)
from aliquot.config.shelf import Shelf
from aliquot.config.source import read_items
from aliquot.core.settings import Settings

TABLES: Final[Mapping[str, Table]] = {
    "objectives": OBJECTIVES,
    "order": ORDER,
    "backfill": BACKFILL,
    "overrun": OVERRUN,
    "estimates": ESTIMATES,
    "preemption": PREEMPTION,
    "elasticity": ELASTICITY,
    "defrag": DEFRAG,
    "idling": IDLING,
    "colocation": COLOCATION,
    "spot": SPOT,
    "rescue": RESCUE,
}
UNSAID: Final = "-"
_UNITS: Final = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1000, "s"), (1, "ms"))
_SHARES: Final = frozenset({"worth_milli", "tidy_every_milli", "tidy_from_milli"})


class PolicyPage(NamedTuple):
    """One policy: `rows` are (field, value, the value without this policy), all as written in documents."""

    name: str
    about: str
    rows: tuple[tuple[str, str, str], ...]


def list_policies(files: Sequence[Path], shelf: Shelf) -> list[PolicyPage]:
    """The policies of `files`, which need no cluster, then the built-in ones. Raises DocumentError."""
    own = read_documents(read_items(files), shelf).policies if files else ()
    usual = spell_policy(Settings())
    pages = []
    for name, settings in (*own, *BUILTIN):
        said = spell_policy(settings)
        rows = tuple((field, value, usual.get(field, UNSAID)) for field, value in said.items())
        pages.append(PolicyPage(name, ABOUT.get(name, "of these documents"), rows))
    return pages


def spell_policy(settings: Settings) -> dict[str, str]:
    """Field -> value, such as `order.halfLife` -> `15h`, in the order of the table of policies."""
    return dict(_spell(settings))


def _spell(settings: Settings) -> Iterator[tuple[str, str]]:
    for key, field in POLICY.items():
        into = field.into or key
        if key in {"preset", "rates"}:
            continue
        if key == "placement":
            yield key, _placement(settings.policy)
        elif key == "mix":
            yield "mix.source", settings.mix_source.value
            yield "mix.window", str(settings.mix_window)
            yield "mix.epoch", str(settings.mix_epoch)
        elif key == "mechanisms":
            yield from ((f"mechanisms.{word}", _word(on, "")) for word, on in settings.mechanisms)
        elif key in TABLES:
            yield from _part(key, getattr(settings, into))
        else:
            yield key, _word(getattr(settings, into), into)


def _part(key: str, part: Struct | None) -> Iterator[tuple[str, str]]:
    """The fields of one part; one that is switched off is `false`, weights that nobody set are left out."""
    if part is None:
        if key != "objectives":
            yield key, "false"
        return
    for word, field in TABLES[key].items():
        into = field.into or word
        yield f"{key}.{word}", _word(getattr(part, into), into)


def _placement(policy: tuple[tuple[str, float], ...]) -> str:
    if len(policy) == 1:
        return policy[0][0]
    return "{" + ", ".join(f"{name}: {weight:.12g}" for name, weight in policy) + "}"


def _word(value: Any, into: str) -> str:
    """One value in its unit, exactly."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, float):
        return f"{float(Fraction(repr(value)) * 100):.12g}%"
    if into.endswith("_ms"):
        return spell_ms(value)
    if into in _SHARES or into.removesuffix("_milli") in OBJECTIVES:
        return f"{value / 10:.12g}%"
    if into.endswith("_milli"):
        return f"{value / 1000:.12g}"
    return str(value)


def spell_ms(ms: int) -> str:
    """A duration to the millisecond: `1h40m`, `0s`."""
    parts = []
    for size, unit in _UNITS:
        if ms >= size:
            parts.append(f"{ms // size}{unit}")
            ms %= size
    return "".join(parts) or "0s"
