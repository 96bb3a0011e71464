"""Streams of future requests drawn from the demand mix, one set per profile, the same for every node.

A profile is what the mix looks like from a node kind: kinds that can serve the same demands alike share one.
Each stream is sorted big-first inside small windows: a router lets a node wait a little for the right one.
Draws come from a counter-based generator, so they are the same on every platform.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np

from aliquot.core.columns import DIMS
from aliquot.core.placement.cells import I32, I64
from aliquot.core.placement.mix import Demand, DemandMix
from aliquot.core.placement.shapes import MILLI, Ask, Hardware

FIELDS: Final = 9
CPU, CARDS, WHOLE, GAIN, COUNT, ELIGIBLE, ASK = range(7)  # ASK, ASK + 1, ASK + 2: the three dimensions
NO_CARD: Final[Ask] = (MILLI, 0, MILLI)
MASK64: Final = (1 << 64) - 1
Pod = tuple[int, ...]


class Plan(NamedTuple):
    """How the streams are drawn."""

    streams: int  # R
    length: int  # K requests each, before those that a profile can't serve are left out
    windows: tuple[int, ...]  # B of the first stream, of the second, ... and around again


class Tables(NamedTuple):
    """The mix as arrays; see `kernels.values.Demands`."""

    flat: bool
    profile: I32  # [kinds]
    pods: I32  # [profiles, streams, length, FIELDS]
    length: I32  # [profiles, streams]
    ceiling: I32  # [profiles, MILLI + 1]
    card_class: I32  # [kinds, cards] cards of one class are alike to every demand


def stream_tables(mix: DemandMix, hardware: Sequence[Hardware], plan: Plan, seed: int, cards: int) -> Tables:
    """The streams of an epoch. `cards` is the width of the cells."""
    drawn = _sort_windows(_draw(mix, plan, seed), mix, plan.windows)
    return _tables(mix, hardware, drawn, cards, flat=is_flat(mix, hardware))


def typical_tables(mix: DemandMix, hardware: Sequence[Hardware], cards: int) -> Tables:
    """Every demand of the mix once, in its order: one 'stream' for the fragment measure, always flat."""
    return _tables(mix, hardware, np.arange(len(mix.demands), dtype=np.int64)[None, :], cards, flat=True)


def is_flat(mix: DemandMix, hardware: Sequence[Hardware]) -> bool:
    """Whether one number per card says all: cards of a node alike, dimensions asked for in proportion.

    A dimension that no demand asks for does not count; a demand for whole cards takes all of them anyway.
    """
    shared = [demand.shape for demand in mix.demands if demand.shape.cards and not demand.shape.whole]
    for kind, facts in enumerate(hardware):
        everything = (1 << len(facts.full)) - 1
        if len(set(facts.full)) > 1:
            return False
        if any(d.shape.cards and 0 < d.shape.eligible[kind] & everything < everything for d in mix.demands):
            return False
        here = [shape.ask[kind] for shape in shared if shape.eligible[kind]]
        asked = [dim for dim in range(DIMS) if any(ask[dim] for ask in here)]
        if facts.full and not all(_in_proportion(ask, facts.full[0], asked) for ask in here):
            return False
    return True


def _in_proportion(ask: Ask, full: Ask, dims: Sequence[int]) -> bool:
    """Whether the ask is the same part of the card in all `dims`, to a milli of it."""
    parts = [Fraction(ask[dim] * MILLI, full[dim]) for dim in dims if full[dim] > 0]
    return not parts or max(parts) - min(parts) <= 1


def uniform(seed: int, counter: int) -> int:
    """A 64-bit draw: SplitMix64 of (seed, counter)."""
    mixed = (seed * 0xD1342543DE82EF95 + (counter + 1) * 0x9E3779B97F4A7C15) & MASK64
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK64
    return mixed ^ (mixed >> 31)


def pod_of(demand: Demand, kind: int, facts: Hardware, *, flat: bool) -> Pod:
    """A demand as a node kind sees it; ELIGIBLE is 0 where the kind can't serve it."""
    shape = demand.shape
    if shape.cards == 0:
        return (shape.cpu, 0, 0, 0, demand.times, shape.eligible[kind], 0, 0, 0)
    ask = shape.ask[kind]
    if not flat:
        return (
            shape.cpu,
            shape.cards,
            int(shape.whole),
            shape.milli,
            demand.times,
            shape.eligible[kind],
            *ask,
        )
    full = facts.full[0] if facts.full else NO_CARD
    milli = MILLI if shape.whole else _largest(ask, full)
    whole = int(milli >= MILLI)
    gain = shape.cards * milli
    return (shape.cpu, shape.cards, whole, gain, demand.times, shape.eligible[kind], milli, 0, 0)


def _largest(ask: Ask, full: Ask) -> int:
    """The milli-cards asked for in the dimension that takes most, to the nearest milli."""
    return max(
        ((have * MILLI + of // 2) // of for have, of in zip(ask, full, strict=True) if of > 0), default=0
    )


def _draw(mix: DemandMix, plan: Plan, seed: int) -> I64:
    """[streams, length] indices of demands, drawn with their shares."""
    if not mix.demands:
        return np.zeros((plan.streams, 0), np.int64)
    steps = np.cumsum([demand.times for demand in mix.demands])
    total = int(steps[-1])
    draws = [uniform(seed, at) * total >> 64 for at in range(plan.streams * plan.length)]
    picked = np.searchsorted(steps, np.array(draws, np.int64), side="right")
    return picked.astype(np.int64).reshape(plan.streams, plan.length)


def _sort_windows(drawn: I64, mix: DemandMix, windows: Sequence[int]) -> I64:
    size = np.array([demand.shape.milli for demand in mix.demands], np.int64)
    result = drawn.copy()
    for at, stream in enumerate(result):
        window = windows[at % len(windows)]
        for start in range(0, stream.shape[0], window):
            part = stream[start : start + window]
            stream[start : start + window] = part[np.argsort(-size[part], kind="stable")]
    return result


def _tables(mix: DemandMix, hardware: Sequence[Hardware], drawn: I64, cards: int, *, flat: bool) -> Tables:
    classes = _card_classes(mix, hardware, cards, flat=flat)
    views = [_view(mix, kind, facts, classes[kind], flat=flat) for kind, facts in enumerate(hardware)]
    profiles = list(dict.fromkeys(views))
    pods = np.zeros((max(len(profiles), 1), drawn.shape[0], max(drawn.shape[1], 1), FIELDS), np.int32)
    length = np.zeros(pods.shape[:2], np.int32)
    ceiling = np.zeros((pods.shape[0], MILLI + 1), np.int32)
    for profile, view in enumerate(profiles):
        table = np.array(view, np.int64).reshape(len(view), FIELDS).clip(max=2**31 - 1).astype(np.int32)
        ceiling[profile] = _ceiling(view)
        for stream, picked in enumerate(drawn):
            served = picked if drawn.shape[0] == 1 else picked[table[picked, ELIGIBLE] != 0]
            pods[profile, stream, : served.shape[0]] = table[served]
            length[profile, stream] = served.shape[0]
    profile_of = np.array([profiles.index(view) for view in views], np.int32).reshape(len(views))
    return Tables(
        flat, profile_of, pods, length, ceiling, np.array(classes, np.int32).reshape(len(views), cards)
    )


def _view(
    mix: DemandMix, kind: int, facts: Hardware, classes: Sequence[int], *, flat: bool
) -> tuple[Pod, ...]:
    """All demands as a kind sees them. Not flat: ELIGIBLE counts card classes instead of cards."""
    view = [pod_of(demand, kind, facts, flat=flat) for demand in mix.demands]
    if flat:
        return tuple((*pod[:ELIGIBLE], int(pod[ELIGIBLE] != 0), *pod[ASK:]) for pod in view)
    result = []
    for pod in view:
        mask = 0
        for card in range(len(facts.full)):
            mask |= (pod[ELIGIBLE] >> card & 1) << classes[card]
        result.append((*pod[:ELIGIBLE], mask if pod[CARDS] else int(pod[ELIGIBLE] != 0), *pod[ASK:]))
    return tuple(result)


def _ceiling(view: Sequence[Pod]) -> list[int]:
    """For each amount left of a card, the most that one-card requests (or a whole-card request) can pack."""
    reachable = 1
    for pod in view:
        if pod[ELIGIBLE] == 0 or pod[CARDS] == 0:
            continue
        ask = pod[ASK]
        if pod[WHOLE]:
            reachable |= 1 << MILLI
        elif ask > 0:
            for _ in range(MILLI // ask):
                reachable |= reachable << ask
    result, best = [], 0
    for left in range(MILLI + 1):
        best = left if reachable >> left & 1 else best
        result.append(best)
    return result


def _card_classes(mix: DemandMix, hardware: Sequence[Hardware], cards: int, *, flat: bool) -> list[list[int]]:
    """[kinds][cards] small numbers: 0 in a flat mix, else one per set of demands that accept the card."""
    if flat:
        return [[0] * cards for _ in hardware]
    result = []
    for kind, facts in enumerate(hardware):
        signatures = [
            (full, tuple(demand.shape.eligible[kind] >> card & 1 for demand in mix.demands))
            for card, full in enumerate(facts.full)
        ]
        known = list(dict.fromkeys(signatures))
        row = [known.index(signature) for signature in signatures]
        result.append((row + [0] * cards)[:cards])
    return result


__all__ = ["Plan", "Pod", "Tables", "is_flat", "stream_tables", "typical_tables", "uniform"]
