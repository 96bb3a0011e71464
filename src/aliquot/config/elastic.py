"""Elastic jobs: the widths a job can run at, and how fast it is at each.

A width counts the cards of a job of one member, and the members of a gang. Speeds are measured ones, in any
one unit, or follow from the part of the work that stays serial: with `serial: 5%` four cards run at
4 / (1 + 3 x 0.05) = 3.48 times the speed of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final

from aliquot.config.fields import Field, Table, quantity, read_fields
from aliquot.config.readers import count, speed
from aliquot.config.tree import Item
from aliquot.core import units
from aliquot.core.jobs import Elastic, Request

MOST_WIDTH: Final = 4096
MOST_WIDTHS: Final = 64


def _part(item: Item) -> Fraction:
    exact: Fraction = quantity(units.parse_fraction)(item)
    if exact > 1:
        item.fail(f"{item.text!r} is more than the whole", "at most 100%")
    return exact


ELASTIC: Final[Table] = {
    "widths": Field(lambda item: [count(1, MOST_WIDTH)(child) for child in item.elements()], required=True),
    "speeds": Field(lambda item: [speed(child) for child in item.elements()]),
    "serial": Field(_part),
}


def read_elastic(item: Item, members: Sequence[Request], minimum: int | None) -> Elastic:
    """The widths and speeds of a job of `members`, of which `minimum` start together."""
    values = read_fields(item, ELASTIC)
    widths: list[int] = values["widths"]
    _check_widths(item, widths)
    if len({*members}) > 1:
        item.fail("members that ask for different things have no one width", "leave it out")
    asked, what = (members[0].cards, "cards") if len(members) == 1 else (len(members), "members")
    if not members[0].cards:
        item.fail("elastic has no meaning without cards", "leave it out, or add gpu")
    if asked not in widths:
        item.fail(f"the job asks for {asked} {what}, which is none of its widths", f"{asked} among widths")
    if minimum is not None and len(members) > 1 and widths[0] < minimum:
        item.fail(
            f"width {widths[0]} is below the minimum of {minimum} members", f"widths of {minimum} or more"
        )
    return Elastic(tuple(widths), _speeds(item, values, widths))


def amdahl(width: int, serial: Fraction) -> Fraction:
    """The speed of `width` cards in speeds of one, with the part `serial` of the work left to one."""
    return Fraction(width) / (1 + serial * (width - 1))


def _check_widths(item: Item, widths: list[int]) -> None:
    listed = item.get("widths") or item
    if any(after <= before for before, after in pairwise(widths)):
        listed.fail("widths that do not rise", "each above the one before it, such as [1, 2, 4]")
    if len(widths) > MOST_WIDTHS:
        listed.fail(f"{len(widths)} widths", f"{MOST_WIDTHS} at most")


def _speeds(item: Item, values: dict[str, Any], widths: list[int]) -> tuple[int, ...]:
    """Thousandths of the speed at the first width, rounded to the nearest."""
    if ("speeds" in values) == ("serial" in values):
        item.fail(
            "how fast the job is at each width has to be said once",
            "speeds: [1, 1.9, 3.4], or serial: 5%",
        )
    speeds: list[Fraction] = values.get("speeds") or [amdahl(width, values["serial"]) for width in widths]
    if len(speeds) != len(widths):
        (item.get("speeds") or item).fail(
            f"{len(speeds)} speeds for {len(widths)} widths", "one speed for each width"
        )
    found = tuple(round(fast * 1000 / speeds[0]) for fast in speeds)
    if min(found) < 1:
        (item.get("speeds") or item).fail("a speed below a thousandth of the first", "speeds in one unit")
    return found
