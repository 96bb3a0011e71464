"""Usage that fades: an average over the past in which half a half-life ago counts half.

Between two changes of its rate a queue's usage is known exactly, so nothing is sampled: an `Account` is
written only when the rate changes and read at any time in between. How often it is read changes nothing.

Powers of one half are computed in integers from square roots, never with the machine's `pow`: two machines
that differ in the last bit of a float would order the same jobs differently.
"""

from __future__ import annotations

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


def per_weight(level: int, weight: int) -> int:
    """`level` for one queue against others: divided by its weight (thousandths); weight 0 is last."""
    return level * FULL_WEIGHT // weight if weight else 2**62 + level


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
