"""Quantities as people write them, read once and exactly.

Inside the core everything is an integer: MiB, 1/1000 of a card or core, milliseconds, MB/s, cents. A
fraction is parsed as an exact rational and rounded down once to thousandths, so `0.1` ten times is one card
and `1/9` nine times fits. Memory asked for and quotas round up to a MiB, capacities round down: a quota of
320GB holds eight jobs of 40GB. What is less than the smallest part there is, a byte, a thousandth of a card
or core, a millisecond, is refused and never rounded to one.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import Final, NewType

from aliquot.core.errors import QuantityError

MiB = NewType("MiB", int)
Milli = NewType("Milli", int)
Ms = NewType("Ms", int)

FULL: Final = 1000
"""A whole card, in milli-cards."""

MOST_MIB: Final = 2**40
"""An EiB: more than any site has, and far inside 64 bits."""

_NUMBER: Final = r"([0-9]+(?:\.[0-9]+)?)"
_MEMORY: Final = re.compile(rf"^{_NUMBER}\s*([A-Za-z]*)$")
_BYTES: Final = {
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "K": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
    "TIB": 2**40,
    "KI": 2**10,
    "MI": 2**20,
    "GI": 2**30,
    "TI": 2**40,
}
_NOT_BYTES: Final = {"m": "thousandths", "Kb": "bits", "Mb": "bits", "Gb": "bits", "Tb": "bits"}
_SECONDS: Final = {
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "m": Fraction(60),
    "min": Fraction(60),
    "h": Fraction(3600),
    "d": Fraction(86400),
}
_DURATION: Final = re.compile(rf"{_NUMBER}\s*(ms|min|[smhd])")
_RATE: Final = re.compile(rf"^{_NUMBER}\s*([kKMGT]?B)(?:/s|ps)$")  # a small b is a bit
_FRACTION: Final = re.compile(rf"^(?:{_NUMBER}(%|m)?|([0-9]+)/([0-9]+))$")
_COUNT: Final = re.compile(r"-?(?:0|[1-9][0-9]*)")
_DIGITS: Final = 18  # a longer number is beyond 64 bits, and of no use here


def parse_memory(value: object, field: str, *, plain: str = "", up: bool = True) -> MiB:
    """Whole MiB of `20GiB`, `20GB`, `20480MiB`; a plain number only where the key fixes its unit (`plain`).

    Rounds up (an ask, a quota) or down (a capacity, `up=False`). Raises QuantityError on 0 and below, above
    MOST_MIB, and on units that mean something else than bytes (`250m`, `20Gb`).
    """
    text = _text(value, field, "20GiB, 20GB or 20480MiB")
    match = _MEMORY.match(text)
    if not match:
        raise QuantityError(
            f"{text!r} is not an amount of memory", field=field, value=value, hint="such as 20GiB"
        )
    unit = (match[2] or plain).upper()
    if match[2] in _NOT_BYTES:
        raise QuantityError(
            f"{text!r} is in {_NOT_BYTES[match[2]]}, not in bytes",
            field=field,
            value=value,
            hint="such as 20GiB",
        )
    if not unit:
        raise QuantityError(
            f"{text!r} has no unit", field=field, value=value, hint=f"write {text}MiB or {text}GiB"
        )
    if unit not in _BYTES:
        raise QuantityError(
            f"unknown unit {match[2]!r}", field=field, value=value, hint="one of MiB, GiB, TiB, MB, GB, TB"
        )
    exact = Fraction(match[1]) * _BYTES[unit] / 2**20
    _not_less(
        exact * 2**20, value, field, "1 byte or more; it is rounded up to a MiB" if up else "1MiB or more"
    )
    mib = _positive(math.ceil(exact) if up else math.floor(exact), value, field, "1MiB or more")
    if mib > MOST_MIB:
        raise QuantityError(
            f"{text!r} is more than any site has", field=field, value=value, hint=f"at most {MOST_MIB}MiB"
        )
    return MiB(mib)


def parse_share(value: object, field: str) -> Milli:
    """Thousandths (1..1000) of `25%`, `0.25`, `250m`, `1/4`; rounded down once."""
    exact = parse_fraction(value, field)
    if exact > 1:
        raise QuantityError(
            f"{value!r} is more than the whole", field=field, value=value, hint="at most 100%"
        )
    milli = math.floor(exact * FULL)
    return Milli(_positive(milli, value, field, "0.1% or more: the ledger counts thousandths"))


def parse_fraction(value: object, field: str) -> Fraction:
    """The exact rational written as `25%`, `0.25`, `250m` or `1/4`; 0 or more."""
    text = _text(value, field, "25%, 0.25, 250m or 1/4")
    match = _FRACTION.match(text)
    if not match or (match[4] is not None and int(match[4]) == 0):
        raise QuantityError(
            f"{text!r} is not a fraction", field=field, value=value, hint="write 25%, 0.25, 250m or 1/4"
        )
    if match[3] is not None:
        return Fraction(int(match[3]), int(match[4]))
    return Fraction(match[1]) / {"%": 100, "m": 1000, None: 1}[match[2]]


def parse_cores(value: object, field: str, *, zero: bool = False) -> Milli:
    """Milli-cores of `4`, `1.5` or `500m`; below a thousandth is refused, not rounded away."""
    text = _text(value, field, "4, 1.5 or 500m")
    match = re.match(rf"^{_NUMBER}(m)?$", text)
    if not match:
        raise QuantityError(
            f"{text!r} is not a number of cores", field=field, value=value, hint="4, 1.5 or 500m"
        )
    exact = Fraction(match[1]) * (1 if match[2] else 1000)
    if zero and exact == 0:
        return Milli(0)
    _not_less(exact, value, field, "0.001 cores or more: the ledger counts thousandths")
    return Milli(math.ceil(exact))


def parse_duration(value: object, field: str, *, zero: bool = False) -> Ms:
    """Milliseconds of `90s`, `4h`, `1h30m`, `2d`, `250ms`; a plain number is refused: its unit is unknown."""
    text = _text(value, field, "90s, 4h or 1h30m")
    parts = _DURATION.findall(text)
    if not parts or "".join(f"{n}{u}" for n, u in parts) != text.replace(" ", ""):
        if zero and text == "0":
            return Ms(0)
        raise QuantityError(
            f"{text!r} is not a duration", field=field, value=value, hint="write 90s, 4h or 1h30m"
        )
    exact = sum((Fraction(n) * _SECONDS[u] for n, u in parts), Fraction(0)) * 1000
    if zero and exact == 0:
        return Ms(0)
    _not_less(exact, value, field, "1ms or more")
    return Ms(math.ceil(exact))


def parse_rate(value: object, field: str) -> int:
    """MB/s of `25GB/s` or `800MB/s` (decimal)."""
    text = _text(value, field, "25GB/s")
    match = _RATE.match(text)
    if not match:
        raise QuantityError(f"{text!r} is not a rate", field=field, value=value, hint="such as 25GB/s")
    exact = Fraction(match[1]) * _BYTES[match[2].upper()] / 10**6
    return _positive(math.floor(exact), value, field, "1MB/s or more")


def parse_count(value: object, field: str, *, least: int = 1, most: int | None = None) -> int:
    """A whole number written plainly; `true`, `0x10`, `010`, `1e3`, `2.5` and `"four"` are refused."""
    limit = f"{least} or more" if most is None else f"{least} to {most}"
    text = str(value) if isinstance(value, (int, str)) and not isinstance(value, bool) else ""
    if not _COUNT.fullmatch(text):
        raise QuantityError(f"{value!r} is not a whole number", field=field, value=value, hint=limit)
    number = int(text) if len(text) <= _DIGITS else None
    if number is None or number < least or (most is not None and number > most):
        raise QuantityError(f"{text} is out of range", field=field, value=value, hint=limit)
    return number


def format_memory(mib: int) -> str:
    """`20 GiB` where whole, else `20480 MiB`."""
    return f"{mib // 1024} GiB" if mib and mib % 1024 == 0 else f"{mib} MiB"


def format_ms(ms: int) -> str:
    """`2 h 32 min`, `5 min 3 s`, `1.2 s`, `0 s`: two units at most."""
    if ms < 10_000:
        return f"{ms / 1000:g} s"
    seconds = round(ms / 1000)
    for big, name, small, small_name in (
        (86400, "d", 3600, "h"),
        (3600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if seconds >= big:
            rest = seconds % big // small
            return f"{seconds // big} {name}" + (f" {rest} {small_name}" if rest else "")
    return f"{seconds} s"


def _text(value: object, field: str, hint: str) -> str:
    """The written form. A float comes from a YAML literal and `repr` gives back its digits."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise QuantityError(f"{value!r} is not a quantity", field=field, value=value, hint=hint)
    if isinstance(value, float) and not math.isfinite(value):
        raise QuantityError(f"{value!r} is not a finite number", field=field, value=value, hint=hint)
    text = format(Decimal(repr(value)), "f") if isinstance(value, float) else str(value).strip()
    if text.startswith("-"):
        raise QuantityError(f"{text} is negative", field=field, value=value, hint=hint)
    return text


def _not_less(exact: Fraction, value: object, field: str, hint: str) -> None:
    """Raises QuantityError for what is less than one of the smallest parts there are."""
    if exact < 1:
        raise QuantityError(f"{value!r} comes to nothing", field=field, value=value, hint=hint)


def _positive(number: int, value: object, field: str, hint: str) -> int:
    if number <= 0:
        raise QuantityError(f"{value!r} comes to nothing", field=field, value=value, hint=hint)
    return number
