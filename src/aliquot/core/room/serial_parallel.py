"""Wide or narrow, together or one after the other: the two choices between parallel and serial.

A job that may run with several widths gets the one that ends soonest, but a width must use its cards well
enough: the floor on speed per card rises with load, since cards spent on little speed-up are cards taken from
those who wait. Several small tasks share a card only where together they get through more than one after the
other would, their memory fits, and nobody falls below the speed he was promised.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from aliquot.core.errors import SpecError
from aliquot.core.settings import EfficiencyFloor

FULL_MILLI = 1000


class Width(NamedTuple):
    """A width that a job may run with: `wait_ms` until that many cards are free, and its speed (any unit)."""

    cards: int
    speed: float
    wait_ms: int = 0


class Task(NamedTuple):
    """A small task: its speed beside the others of the set, the least it was promised, and its memory."""

    speed_milli: int
    floor_milli: int
    memory_mib: int


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


def shares_card(tasks: Sequence[Task], card_mib: int, gain_milli: int = 250) -> bool:
    """Whether `tasks` run on one card at once: together at least `gain_milli` more than one card's worth."""
    fits = sum(task.memory_mib for task in tasks) <= card_mib
    kept = all(task.speed_milli >= task.floor_milli for task in tasks)
    return fits and kept and sum(task.speed_milli for task in tasks) >= FULL_MILLI + gain_milli


def serial_order(work_ms: Sequence[int]) -> tuple[int, ...]:
    """Who goes first when tasks run one after the other: the shortest; equal ones as given."""
    return tuple(sorted(range(len(work_ms)), key=lambda at: (work_ms[at], at)))


def _check(widths: Sequence[Width], floor: EfficiencyFloor) -> None:
    cards = [0, *(width.cards for width in widths)]
    if len(cards) < 2 or any(low >= high for low, high in pairwise(cards)):
        raise SpecError("must rise from 1 or more", field="widths", value=cards[1:])
    if not all(width.speed > 0 for width in widths):
        raise SpecError("must be above 0", field="widths.speed", value=[width.speed for width in widths])
    if floor.low_load_milli >= floor.high_load_milli:
        raise SpecError("low load must be below high load", field="floor", value=floor)
