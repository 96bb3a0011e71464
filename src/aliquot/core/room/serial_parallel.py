"""Wide or narrow: how parallel one job runs. Whether jobs run together on cards is `colocate`'s matter.

A job that may run with several widths gets the one that ends soonest, but a width must use its cards well
enough: the floor on speed per card rises with load, since cards spent on little speed-up are cards taken from
those who wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from aliquot.core.errors import SpecError
from aliquot.core.settings import EfficiencyFloor


class Width(NamedTuple):
    """A width that a job may run with: `wait_ms` until that many cards are free, and its speed (any unit)."""

    cards: int
    speed: float
    wait_ms: int = 0


def choose_width(
    widths: Sequence[Width],
    work: float,
    load_milli: int,
    floor: EfficiencyFloor = EfficiencyFloor(),  # noqa: B008 - a frozen value
) -> Width:
    """The width with which `work` (in units of speed x ms) ends soonest, among those above the floor.

    A width is open only if every narrower one is above the floor too, so a higher load never widens the
    choice. The narrowest is always open; the earlier end wins, then the narrower. Raises SpecError for no
    widths, widths that do not rise, or speeds that are not positive.
    """
    _check(widths, floor)
    least = floor.at(load_milli) * widths[0].speed / widths[0].cards
    open_widths: list[Width] = []
    for width in widths:
        if open_widths and width.speed / width.cards < least:
            break
        open_widths.append(width)
    return min(open_widths, key=lambda width: (width.wait_ms + work / width.speed, width.cards))


def _check(widths: Sequence[Width], floor: EfficiencyFloor) -> None:
    cards = [0, *(width.cards for width in widths)]
    if len(cards) < 2 or any(low >= high for low, high in pairwise(cards)):
        raise SpecError("must rise from 1 or more", field="widths", value=cards[1:])
    if not all(width.speed > 0 for width in widths):
        raise SpecError("must be above 0", field="widths.speed", value=[width.speed for width in widths])
    if floor.low_load_milli >= floor.high_load_milli:
        raise SpecError("low load must be below high load", field="floor", value=floor)
