"""Quantities as people write them: what each form comes to, and what is refused with the field named."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.core.errors import QuantityError
from aliquot.core.units import (
    FULL,
    MOST_MIB,
    format_memory,
    format_ms,
    parse_cores,
    parse_count,
    parse_duration,
    parse_fraction,
    parse_memory,
    parse_rate,
    parse_share,
)

READ: list[tuple[str, Callable[..., Any], object, object]] = [
    ("a GiB is 1024 MiB", parse_memory, "20GiB", 20480),
    ("a GB is a thousand million bytes, rounded up", parse_memory, "20GB", 19074),
    ("MiB as they are", parse_memory, "20480MiB", 20480),
    ("the short form of Kubernetes", parse_memory, "20Gi", 20480),
    ("a fraction of a GiB", parse_memory, "0.5GiB", 512),
    ("a space before the unit", parse_memory, "20 GiB", 20480),
    ("a byte is still a MiB of the ledger", parse_memory, "1B", 1),
    ("percent", parse_share, "25%", 250),
    ("a fraction", parse_share, "0.25", 250),
    ("a fraction that YAML read as a number", parse_share, 0.25, 250),
    ("thousandths", parse_share, "250m", 250),
    ("a ratio, rounded down once", parse_share, "1/3", 333),
    ("the whole", parse_share, "100%", 1000),
    ("the least", parse_share, "0.1%", 1),
    ("cores", parse_cores, "4", 4000),
    ("part of a core", parse_cores, "1.5", 1500),
    ("the least of a core", parse_cores, "0.001", 1),
    ("cores rounded up", parse_cores, "1.0001", 1001),
    ("the least of a time", parse_duration, "0.001s", 1),
    ("milli-cores", parse_cores, "500m", 500),
    ("seconds", parse_duration, "90s", 90_000),
    ("hours and minutes", parse_duration, "1h30m", 5_400_000),
    ("minutes spelled out", parse_duration, "1h 30min", 5_400_000),
    ("days", parse_duration, "2d", 172_800_000),
    ("milliseconds", parse_duration, "250ms", 250),
    ("gigabytes a second", parse_rate, "25GB/s", 25_000),
    ("megabytes a second", parse_rate, "800MB/s", 800),
    ("a count", parse_count, "8", 8),
    ("a count that YAML read", parse_count, 8, 8),
]

REFUSED: list[tuple[str, Callable[..., Any], object, str]] = [
    ("memory of nothing", parse_memory, "0GiB", "comes to nothing"),
    ("less than a byte", parse_memory, "0.4B", "comes to nothing"),
    ("a millionth of a KiB", parse_memory, "0.000001KiB", "comes to nothing"),
    ("less than a thousandth of a core", parse_cores, "0.0001", "comes to nothing"),
    ("a tenth of a milli-core", parse_cores, "0.1m", "comes to nothing"),
    ("less than a millisecond", parse_duration, "0.4ms", "comes to nothing"),
    ("a count beyond all counts", parse_count, "9" * 30, "out of range"),
    ("a count of more digits than a number may have", parse_count, "9" * 5000, "out of range"),
    ("memory without a unit", parse_memory, "20", "no unit"),
    ("hexadecimal memory", parse_memory, "0x10", "not an amount"),
    ("memory in thousandths", parse_memory, "250m", "thousandths"),
    ("memory in bits", parse_memory, "20Gb", "bits"),
    ("memory in a unit nobody knows", parse_memory, "20GiBs", "unknown unit"),
    ("negative memory", parse_memory, "-1GiB", "negative"),
    ("memory that is no number", parse_memory, ".nan", "not an amount"),
    ("endless memory", parse_memory, float("inf"), "finite"),
    ("memory beyond any site", parse_memory, f"{MOST_MIB + 1}MiB", "more than any site"),
    ("a yes where memory belongs", parse_memory, True, "not a quantity"),
    ("a share of nothing", parse_share, "0%", "comes to nothing"),
    ("a share below what the ledger counts", parse_share, "0.05%", "comes to nothing"),
    ("more than the whole", parse_share, "101%", "more than the whole"),
    ("a plain 20 where a share belongs", parse_share, "20", "more than the whole"),
    ("a negative share", parse_share, "-1", "negative"),
    ("memory where a share belongs", parse_share, "8000Mi", "not a fraction"),
    ("hexadecimal share", parse_share, "0x10", "not a fraction"),
    ("a share that is no number", parse_share, float("nan"), "finite"),
    ("a ratio over nothing", parse_share, "1/0", "not a fraction"),
    ("no cores", parse_cores, "0", "comes to nothing"),
    ("cores with a unit of memory", parse_cores, "4Gi", "not a number of cores"),
    ("a duration without a unit", parse_duration, "90", "not a duration"),
    ("a clock", parse_duration, "12:30:00", "not a duration"),
    ("a duration of nothing", parse_duration, "0s", "comes to nothing"),
    ("a duration with a stray word", parse_duration, "1h and 5m", "not a duration"),
    ("a rate in bits", parse_rate, "25Gb/s", "not a rate"),
    ("a rate without time", parse_rate, "25GB", "not a rate"),
    ("half a card counted", parse_count, "2.5", "not a whole number"),
    ("a hexadecimal count", parse_count, "0x10", "not a whole number"),
    ("an octal count", parse_count, "010", "not a whole number"),
    ("a count with a separator", parse_count, "1_000", "not a whole number"),
    ("a count in powers of ten", parse_count, "1e3", "not a whole number"),
    ("a yes where a count belongs", parse_count, True, "not a whole number"),
    ("none of them", parse_count, "0", "out of range"),
]


@pytest.mark.parametrize(
    ("parse", "written", "comes_to"), [row[1:] for row in READ], ids=[r[0] for r in READ]
)
def test_a_quantity_comes_to(parse: Callable[..., Any], written: object, comes_to: object) -> None:
    assert parse(written, "spec.x") == comes_to


@pytest.mark.parametrize(("parse", "written", "why"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_a_quantity_is_refused_with_field_value_and_advice(
    parse: Callable[..., Any], written: object, why: str
) -> None:
    with pytest.raises(QuantityError, match=why) as caught:
        parse(written, "spec.x")
    error = caught.value
    assert (error.field, error.value) == ("spec.x", written)
    assert error.hint
    assert str(error).startswith("spec.x: ")


@pytest.mark.parametrize("written", ["1.5", "99", "9" * 30, "-" + "9" * 30, "x"])
def test_a_count_with_bounds_says_both(written: str) -> None:
    with pytest.raises(QuantityError, match=r"\(-10 to 10\)"):
        parse_count(written, "x", least=-10, most=10)


def test_a_key_that_fixes_its_unit_takes_a_plain_number() -> None:
    assert parse_memory("10240", "memory_mb", plain="MiB") == 10240


def test_a_capacity_rounds_down_and_an_ask_up() -> None:
    assert parse_memory("20GB", "x", up=False) == 19073
    assert parse_memory("20GB", "x") == 19074


def test_a_quota_of_320_gb_holds_eight_jobs_of_40_gb() -> None:
    assert 8 * parse_memory("40GB", "x") <= parse_memory("320GB", "x")


def test_a_tenth_ten_times_is_one_card() -> None:
    assert 10 * parse_share("0.1", "x") == FULL
    assert 10 * parse_share(0.1, "x") == FULL


def test_a_third_of_a_card_in_mib_three_times_is_the_card() -> None:
    assert 3 * parse_memory("15356MiB", "x") == 46068


@given(st.integers(1, 1000))
def test_a_whole_shared_among_n_never_exceeds_it(n: int) -> None:
    assert n * parse_share(f"1/{n}", "x") <= FULL
    assert parse_fraction(f"1/{n}", "x") * n == 1


@given(st.integers(1, 1000))
def test_thousandths_percent_and_decimals_agree(milli: int) -> None:
    forms = (f"{milli}m", f"{milli}/1000", f"{milli / 10:.1f}%", f"{milli / 1000:.3f}")
    assert {parse_share(form, "x") for form in forms} == {milli}


@given(st.integers(1, MOST_MIB))
def test_memory_survives_being_written_and_read(mib: int) -> None:
    assert parse_memory(format_memory(mib), "x") == mib


@given(st.integers(1, 2**30))
def test_gigabytes_are_smaller_than_gibibytes(count: int) -> None:
    exact = Fraction(count * 10**9, 2**20)
    assert parse_memory(f"{count}GB", "x", up=False) <= exact <= parse_memory(f"{count}GB", "x")
    assert parse_memory(f"{count}GB", "x") < parse_memory(f"{count}GiB", "x")


@given(st.one_of(st.text(max_size=12), st.floats(), st.booleans(), st.none()))
def test_whatever_is_written_is_read_or_refused_but_never_crashes(written: object) -> None:
    for parse in (parse_memory, parse_share, parse_cores, parse_duration, parse_rate, parse_count):
        try:
            number = parse(written, "x")
        except QuantityError:
            continue
        assert isinstance(number, int)
        assert number > 0


@pytest.mark.parametrize(
    ("ms", "shown"),
    [(0, "0 s"), (1200, "1.2 s"), (303_000, "5 min 3 s"), (9_120_000, "2 h 32 min"), (86_400_000, "1 d")],
)
def test_a_time_is_shown_in_two_units(ms: int, shown: str) -> None:
    assert format_ms(ms) == shown
