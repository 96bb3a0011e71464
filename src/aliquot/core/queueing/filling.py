"""Dividing an amount among queues: each its own first, the rest by weight, as water fills a vessel.

The alternative to comparing shares job by job: it says at once how much each should have. Exact integers;
the result depends on the claims, never on their order (single units left over go by name).
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple


class Claim(NamedTuple):
    """What `name` is promised, what it asks for in all, and its weight beyond the promise."""

    name: str
    deserved: int
    request: int
    weight: int = 1000


def fill(amount: int, claims: Iterable[Claim]) -> dict[str, int]:
    """How much of `amount` each claim gets, never more than it asks for.

    First min(deserved, request) each (by `deserved` in proportion, where the amount is short of that), then
    the rest by weight until every request is met; weight 0 gets what all others leave.
    Worked: 10 units, A deserves 2 and asks 9, B deserves 4 and asks 4, equal weights: A 6, B 4.
    """
    claims = sorted(claims)
    first = {claim.name: min(claim.deserved, claim.request) for claim in claims}
    if sum(first.values()) >= amount:
        return _pour(max(0, amount), [(claim.name, first[claim.name], claim.deserved) for claim in claims])
    given = first
    for rank in (
        [(claim, claim.weight) for claim in claims if claim.weight > 0],
        [(claim, 1) for claim in claims if claim.weight <= 0],
    ):
        left = amount - sum(given.values())
        more = _pour(
            left, [(claim.name, claim.request - given[claim.name], weight) for claim, weight in rank]
        )
        given = {name: has + more.get(name, 0) for name, has in given.items()}
    return given


def _pour(amount: int, wants: list[tuple[str, int, int]]) -> dict[str, int]:
    """`amount` over (name, want, weight): equal levels per weight, nobody above its want."""
    given = dict.fromkeys((name for name, _, _ in wants), 0)
    thirsty = [
        (Fraction(want, weight), name, want, weight) for name, want, weight in wants if want > 0 < weight
    ]
    thirsty.sort()
    weights, left = sum(weight for *_, weight in thirsty), amount
    for at, (level, name, want, weight) in enumerate(thirsty):
        if level * weights > left:
            given.update(_divide(left, thirsty[at:], weights))
            break
        given[name], left, weights = want, left - want, weights - weight
    return given


def _divide(
    amount: int, thirsty: list[tuple[Fraction, str, int, int]], weights: int
) -> Iterable[tuple[str, int]]:
    """In proportion to weight, rounded down; the units left go to the largest remainders, then by name."""
    exact = [(name, Fraction(amount * weight, weights)) for _, name, _, weight in thirsty]
    whole = {name: part.numerator // part.denominator for name, part in exact}
    spare = amount - sum(whole.values())
    by_rest = sorted(exact, key=lambda entry: (whole[entry[0]] - entry[1], entry[0]))
    for name, _ in by_rest[:spare]:
        whole[name] += 1
    return whole.items()
