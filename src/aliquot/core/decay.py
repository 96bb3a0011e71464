"""Usage that fades: an average over the past in which half a half-life ago counts half.

Between two changes of its rate a queue's usage is known exactly, so nothing is sampled: an `Account` is
written only when the rate changes and read at any time in between. How often it is read changes nothing.

Powers of one half are computed in integers from square roots, never with the machine's `pow`: two machines
that differ in the last bit of a float would order the same jobs differently.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import isqrt
from typing import Final

import msgspec

from aliquot.core.queues import FULL_WEIGHT

HALF_LIFE_MS: Final = 24 * 3600 * 1000
UNIT_BITS: Final = 32
"""A level is in 1/2**32 of the rate's unit, so that slow decay of small rates is not rounded away."""

_BITS: Final = 96  # of a factor
_STEPS: Final = 48  # of the exponent's fraction: 2**-48 of a half-life of a day is 0.3 ns


class Account(msgspec.Struct, frozen=True):
    """Decayed usage of one queue: `level` at `since_ms`, and what it has used per time ever since."""

    level: int = 0
    rate: int = 0
    since_ms: int = 0


def level_at(account: Account, now: int, half_life: int = HALF_LIFE_MS) -> int:
    """The decayed average of the rate at `now`, in 1/2**32 of the rate's unit.

    Exact for a rate constant since `since_ms`: at rate 8 from 0, one half-life later it is 4, then 6, 7, ...
    A time before `since_ms` reads as `since_ms`.
    """
    target = account.rate << UNIT_BITS
    return target + (
        (account.level - target) * half_power(max(0, now - account.since_ms), half_life) >> _BITS
    )


def change_rate(account: Account, now: int, change: int, half_life: int = HALF_LIFE_MS) -> Account:
    """The account once its rate has changed by `change` at `now`."""
    since = max(now, account.since_ms)
    return Account(level_at(account, since, half_life), account.rate + change, since)


def penalty(amount: int, spell_ms: int, half_life: int = HALF_LIFE_MS) -> int:
    """What an admission of rate `amount` adds to a level before it has run: as if it had run `spell_ms`.

    A queue that starts a hundred jobs in one instant is charged for each before the next is chosen.
    """
    return (amount << UNIT_BITS) * ((1 << _BITS) - half_power(spell_ms, half_life)) >> _BITS


def per_weight(level: int, weight: int) -> int:
    """`level` for one queue against others: divided by its weight (thousandths); weight 0 is last."""
    return level * FULL_WEIGHT // weight if weight else 2**62 + level


def corrected_weights(
    weights: Mapping[str, int], levels: Mapping[str, int], strength: int = 1000
) -> dict[str, int]:
    """Weights for what goes beyond nominal, corrected by past usage; they sum to about 1,000,000.

    W + k (W - U) with W and U as parts of their sums and k = strength / 1000, never below 0; plain weights
    where all come to 0. Worked: weights 1:1 and usage 3:1 give 0.25 : 0.75 at k = 1.
    """
    all_weight, all_level = sum(weights.values()), sum(levels.get(name, 0) for name in weights)
    if not all_weight:
        return dict.fromkeys(weights, 0)
    million = 10**6
    plain = {name: weight * million // all_weight for name, weight in weights.items()}
    if not all_level:
        return plain
    past = {name: levels.get(name, 0) * million // all_level for name in weights}
    wanted = {name: max(0, plain[name] + strength * (plain[name] - past[name]) // 1000) for name in weights}
    whole = sum(wanted.values())
    return {name: part * million // whole for name, part in wanted.items()} if whole else plain


@lru_cache(maxsize=4096)
def half_power(elapsed: int, half_life: int) -> int:
    """0.5 ** (elapsed / half_life) in 1/2**96, by whole halvings and 48 bits of the fraction."""
    halvings, rest = divmod(elapsed, half_life)
    if halvings > 2 * _BITS:
        return 0
    fraction = (rest << _STEPS) // half_life
    power = 1 << _BITS
    for step, root in enumerate(_roots(), 1):
        if fraction >> (_STEPS - step) & 1:
            power = power * root >> _BITS
    return power >> halvings


@lru_cache(maxsize=1)
def _roots() -> tuple[int, ...]:
    """2**-(1/2), 2**-(1/4), ... each the square root of the one before."""
    roots, last = [], 1 << (_BITS - 1)
    for _ in range(_STEPS):
        last = isqrt(last << _BITS)
        roots.append(last)
    return tuple(roots)
