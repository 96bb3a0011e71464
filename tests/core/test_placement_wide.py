"""The value of a state for all streams at once is the value worked out one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aliquot.core.placement.streams import FIELDS, Tables
from aliquot.core.placement.wide import value_wide
from aliquot.core.placement.worth import code, value_plain

Pods = st.integers(0, 4)


@st.composite
def flat_tables(draw: st.DrawFn) -> Tables:
    pod = st.tuples(st.integers(0, 8000), st.integers(0, 3), st.sampled_from([100, 250, 500, 1000])).map(
        lambda got: (got[0], got[1], int(got[2] == 1000), got[1] * got[2], 1, 1, got[2], 0, 0)
    )
    return tables_of(draw, pod, flat=True)


@st.composite
def mixed_tables(draw: st.DrawFn) -> Tables:
    pod = st.tuples(
        st.integers(0, 8000), st.integers(0, 3), st.booleans(), st.integers(0, 3),
        st.integers(0, 1000), st.integers(0, 40_000), st.integers(0, 500),
    ).map(lambda got: (got[0], got[1], int(got[2]), got[1] * got[4], 1, got[3], *got[4:]))  # fmt: skip
    return tables_of(draw, pod, flat=False)


def tables_of(draw: st.DrawFn, pod: st.SearchStrategy[tuple[int, ...]], *, flat: bool) -> Tables:
    streams, length = draw(st.integers(1, 4)), draw(st.integers(1, 12))
    drawn = draw(st.lists(pod, min_size=streams * length, max_size=streams * length))
    # what asks for no card gains nothing
    rows = [(*one[:3], one[3] if one[1] else 0, *one[4:]) for one in drawn]
    pods = np.array(rows, np.int32).reshape(1, streams, length, FIELDS)
    lengths = draw(st.lists(st.integers(0, length), min_size=streams, max_size=streams))
    none = np.zeros((1, 1), np.int32)
    return Tables(flat, np.zeros(1, np.int32), pods, np.array([lengths], np.int32), none, none)


FLAT_CODES = st.lists(st.integers(0, 1000), min_size=1, max_size=8)
MIXED_CODES = st.lists(
    st.builds(
        code,
        st.tuples(st.integers(0, 1000), st.integers(0, 40_000), st.integers(0, 1000)),
        st.integers(0, 1),
        st.integers(0, 1),
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=150)
@given(flat_tables(), st.integers(0, 40_000), FLAT_CODES)
def test_in_a_flat_mix(tables: Tables, cpu: int, codes: list[int]) -> None:
    codes.sort(reverse=True)
    assert value_wide(tables, 0, cpu, codes) == value_plain(tables, 0, cpu, codes, fragments=False)


@settings(max_examples=150)
@given(mixed_tables(), st.integers(0, 40_000), MIXED_CODES)
def test_in_any_other_mix(tables: Tables, cpu: int, codes: list[int]) -> None:
    codes.sort(reverse=True)
    assert value_wide(tables, 0, cpu, codes) == value_plain(tables, 0, cpu, codes, fragments=False)


@pytest.mark.parametrize("codes", [[0, 0], [1000, 1000]])
def test_a_full_and_an_empty_state(codes: list[int]) -> None:
    pod = (1000, 1, 1, 1000, 1, 1, 1000, 0, 0)
    pods = np.array([pod] * 5, np.int32).reshape(1, 1, 5, FIELDS)
    none = np.zeros((1, 1), np.int32)
    tables = Tables(True, np.zeros(1, np.int32), pods, np.array([[5]], np.int32), none, none)
    assert value_wide(tables, 0, 99_000, codes) == sum(codes)
