"""Readers of single values. Each returns what the core counts in, or fails pointing at the item."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from fractions import Fraction
from math import ceil
from typing import Final, TypeVar

from aliquot.config.fields import located, quantity
from aliquot.config.tree import Item, nearest
from aliquot.core import units

EnumT = TypeVar("EnumT", bound=Enum)

FORMATS: Final = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8")
MOST_MS: Final = 100 * 365 * 86_400_000  # a hundred years
MOST_MACHINE_MIB: Final = 2**30  # a PiB in one machine: what the world's columns can count
MOST_CORES: Final = 1_000_000
_NAME: Final = re.compile(r"\w[\w.-]{0,252}")
_MONEY: Final = re.compile(r"[0-9]{1,10}(?:\.[0-9]{1,2})?")
_PLAIN: Final = re.compile(r"[0-9]{1,7}(?:\.[0-9]{1,3})?")
_NEGATIVE: Final = re.compile(r"-\d+(?:\.\d*)?")
_SPEED: Final = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")
GB_MIB: Final = 954  # 953.67, rounded up
_DECIMAL: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([KMGTkmgt])[Bb]?")
_NO_MEMORY: Final = re.compile(r"0+(?:\.0+)?\s*[A-Za-z]*")


def flag(item: Item) -> bool:
    """`true` or `false`, unquoted. `on`, `off`, `yes`, `no` mean different things to different readers."""
    word = item.scalar().casefold()
    if not item.plain or word not in {"true", "false"}:
        item.fail(f"{item.kind} is not a yes or no", "write true or false")
    return word == "true"


def name(item: Item) -> str:
    """A name: letters, digits, `_`, `-` and `.`, no spaces or slashes, up to 253 signs."""
    text = item.scalar()
    if not _NAME.fullmatch(text):
        item.fail(
            f"{text!r} is not a name", "letters, digits, '-', '_' and '.', beginning with a letter or digit"
        )
    return text


def path_name(item: Item) -> str:
    """A name that may have levels: `ai-lab/training`."""
    text = item.scalar()
    if not all(_NAME.fullmatch(part) for part in text.split("/")):
        item.fail(f"{text!r} is not a name", "names joined by '/', such as ai-lab/training")
    return text


def text(item: Item) -> str:
    """Any one value, as written."""
    return item.scalar()


def words(item: Item) -> tuple[str, ...]:
    """A list of words, or one alone."""
    return tuple(child.scalar() for child in item.elements()) if item.items is not None else (item.scalar(),)


def choice(kind: type[EnumT]) -> Callable[[Item], EnumT]:
    """A member of an enumeration by its value."""
    return lambda item: kind(one_of([str(member.value) for member in kind])(item))


def one_of(known: list[str]) -> Callable[[Item], str]:
    """One of the `known` words."""

    def read(item: Item) -> str:
        word = item.scalar()
        if word not in known:
            item.fail(f"{word!r} is not known here", nearest(word, known))
        return word

    return read


def count(least: int = 1, most: int | None = None) -> Callable[[Item], int]:
    """A whole number within bounds."""
    return quantity(units.parse_count, least=least, most=most)


def whole(item: Item) -> int:
    """A whole number of up to nine digits, negative ones too: priorities."""
    return count(-(10**9), 10**9)(item)


def duration(item: Item) -> int:
    """Milliseconds, more than 0."""
    return _bounded(item, quantity(units.parse_duration)(item), MOST_MS, "100 years")


def moment(item: Item) -> int:
    """Milliseconds since the beginning; `0` or `0s` is the beginning."""
    return _bounded(item, quantity(units.parse_duration, zero=True)(item), MOST_MS, "100 years")


def machine_memory(item: Item) -> int:
    """MiB that one machine has."""
    return _bounded(item, quantity(units.parse_memory, up=False)(item), MOST_MACHINE_MIB, "1024TiB")


def asked_memory(item: Item) -> int:
    """MiB asked for on one machine or card. More than any card has is no error: the job waits."""
    if item.text is not None and item.text.strip().endswith("%"):
        item.fail(
            f"{item.text!r} is a share, not an amount",
            "write an amount such as 8GiB; a share of `compute` alone takes memory in proportion",
        )
    return _bounded(item, quantity(units.parse_memory)(item), MOST_MACHINE_MIB, "1024TiB")


def quota_memory(item: Item) -> int:
    """MiB of a quota. 0 is a quota of nothing, which is not the same as no quota.

    Each whole GB counts 954 MiB, so that any jobs of whole GB fit that add up to it: 16 of 4 GB book 16 x
    3815 = 61040 MiB, and 64 GB are 61036 when rounded once, 61056 here.
    """
    if _NO_MEMORY.fullmatch(item.scalar()):
        return 0
    mib: int = quantity(units.parse_memory)(item)
    decimal = _DECIMAL.fullmatch(item.scalar().strip())
    if decimal is None:
        return mib
    exact = Fraction(decimal[1]) * 1000 ** (" KMGT".index(decimal[2].upper()))
    whole_gb = exact // 10**9
    return int(whole_gb * GB_MIB + ceil((exact - whole_gb * 10**9) / 2**20))


def thousandths(item: Item) -> int:
    """Thousandths of a plain number, 0 too: `2` is 2000, `0.5` is 500."""
    _refuse_negative(item, "2 or 0.5")
    if not _PLAIN.fullmatch(item.scalar()):
        item.fail(f"{item.text!r} is not a plain number", "such as 2 or 0.5, down to thousandths")
    return int(Fraction(item.scalar()) * 1000)


def speed(item: Item) -> Fraction:
    """A speed in any unit, more than 0."""
    exact = Fraction(item.scalar()) if _SPEED.fullmatch(item.scalar()) else Fraction(0)
    if exact == 0:
        item.fail(f"{item.text!r} is not a speed", "a plain number above 0, such as 1.9")
    return exact


def machine_cores(item: Item) -> int:
    """Milli-cores that one machine has."""
    return _bounded(item, quantity(units.parse_cores)(item), MOST_CORES * 1000, f"{MOST_CORES} cores")


def asked_cores(item: Item) -> int:
    """Milli-cores asked for; 0 is a job that brings no load of its own."""
    asked = quantity(units.parse_cores, zero=True)(item)
    return _bounded(item, asked, MOST_CORES * 1000, f"{MOST_CORES} cores")


def share(item: Item) -> int:
    """Thousandths, 1 to 1000, of `25%`, `0.25`, `250m`, `1/4`."""
    return quantity(units.parse_share)(item)


def level(item: Item) -> int:
    """Thousandths, 0 to 1000: a share that may be nothing at all."""
    exact = quantity(units.parse_fraction)(item)
    return 0 if exact == 0 else share(item)


def ratio(item: Item) -> float:
    """A fraction of 0 to 1 as a float, such as `3%`."""
    exact: Fraction = quantity(units.parse_fraction)(item)
    if exact > 1:
        item.fail(f"{item.text!r} is more than the whole", "at most 100%")
    return float(exact)


def percent(item: Item) -> int:
    """Thousandths of a key that is named `..._percent`: a plain number up to 100, `25` is a quarter."""
    written = item.scalar().removesuffix("%")
    return located(item, lambda: units.parse_share(f"{written}%", ""))


def rate(item: Item) -> int:
    """MB/s."""
    return _bounded(item, quantity(units.parse_rate)(item), 10**9, "1000000GB/s")


def gigabytes_rate(item: Item) -> int:
    """Whole GB/s, rounded up: a minimum."""
    return ceil(Fraction(rate(item), 1000))


def money(item: Item) -> int:
    """Cents of an amount in the site's currency, such as `30000` or `0.53`."""
    _refuse_negative(item, "30000 or 0.53")
    if not _MONEY.fullmatch(item.scalar()):
        item.fail(
            f"{item.text!r} is not an amount of money", "such as 30000 or 0.53, without a currency sign"
        )
    return int(Fraction(item.scalar()) * 100)


def tflops(item: Item) -> tuple[tuple[str, int], ...]:
    """GFLOP/s by number format, from `{bf16: 300}` in TFLOP/s; rounded up: minima."""
    found = []
    for key, child in item.fields():
        if key not in FORMATS:
            child.fail(f"unknown number format {key!r}", nearest(key, FORMATS))
        found.append((key, ceil(_in_tflops(child, "300") * 1000)))
    return tuple(found)


def throughput(item: Item) -> int:
    """GFLOP/s, from a number in TFLOP/s; to the nearest."""
    return max(1, round(_in_tflops(item, "250") * 1000))


def _in_tflops(item: Item, such: str) -> Fraction:
    """A plain number of TFLOP/s above 0."""
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?", item.scalar()) or not (exact := Fraction(item.scalar())):
        item.fail(f"{item.text!r} is not a number of TFLOP/s", f"a plain number above 0, such as {such}")
    return exact


def _refuse_negative(item: Item, such: str) -> None:
    if _NEGATIVE.fullmatch(item.scalar()):
        item.fail(f"{item.text!r} is below 0", f"0 or more, such as {such}")


def _bounded(item: Item, number: int, most: int, limit: str) -> int:
    if number > most:
        item.fail(f"{item.text!r} is out of range", f"at most {limit}")
    return number
