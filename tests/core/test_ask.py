"""What an ask books on one card, exactly."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.core.errors import SpecError
from aliquot.core.slices import Ask, Cut, Vector, resolve_ask

SHARED = Cut.SHARED


@pytest.mark.parametrize(
    ("ask", "usable", "booked"),
    [
        pytest.param(Ask(), 46_068, Vector(1000, 46_068, 1000), id="nothing said is the whole card"),
        pytest.param(
            Ask(SHARED), 46_068, Vector(1000, 46_068, 1000), id="shared without a size is the whole card"
        ),
        pytest.param(
            Ask(Cut.WHOLE, memory_mib=40_000), 46_068, Vector(1000, 46_068, 1000), id="a large enough card"
        ),
        pytest.param(Ask(Cut.WHOLE, memory_mib=46_069), 46_068, None, id="a card 1 MiB too small"),
        pytest.param(Ask(SHARED, 2_000), 46_068, Vector(43, 2_000, 43), id="compute follows memory"),
        pytest.param(
            Ask(SHARED, compute_milli=460), 15_360, Vector(460, 7_065, 460), id="memory follows compute"
        ),
        pytest.param(Ask(SHARED, 1), 81_559, Vector(1, 1, 1), id="compute is never rounded to nothing"),
        pytest.param(Ask(SHARED, compute_milli=1), 500, Vector(1, 1, 1), id="nor is memory"),
        pytest.param(
            Ask(SHARED, 1_000, 1_000), 32_768, Vector(1000, 1_000, 1000), id="all compute, some memory"
        ),
        pytest.param(Ask(SHARED, 8_000, 250, 600), 32_768, Vector(250, 8_000, 600), id="all three said"),
        pytest.param(Ask(SHARED, 15_360), 15_360 - 443, None, id="what the driver keeps can't be asked for"),
        pytest.param(Ask(SHARED, 14_917), 15_360 - 443, Vector(1000, 14_917, 1000), id="all that is usable"),
        pytest.param(Ask(), 0, None, id="a card without usable memory"),
    ],
)
def test_an_ask_books(ask: Ask, usable: int, booked: Vector | None) -> None:
    assert resolve_ask(ask, usable) == booked


@pytest.mark.parametrize("field", ["memory_mib", "compute_milli", "bandwidth_milli"])
@pytest.mark.parametrize("value", [0, -1])
def test_a_slice_of_nothing_is_refused_with_its_field(field: str, value: int) -> None:
    asked: dict[str, Any] = {field: value}
    with pytest.raises(SpecError, match=field) as caught:
        Ask(SHARED, **asked)
    assert caught.value.value == value


@given(
    usable=st.integers(1, 200_000),
    memory=st.none() | st.integers(1, 250_000),
    compute=st.none() | st.integers(1, 1000),
    bandwidth=st.none() | st.integers(1, 1000),
)
def test_what_is_booked_is_at_least_what_was_asked_and_never_nothing(
    usable: int, memory: int | None, compute: int | None, bandwidth: int | None
) -> None:
    booked = resolve_ask(Ask(SHARED, memory, compute, bandwidth), usable)
    if memory is not None and memory > usable:
        assert booked is None
        return
    assert booked is not None
    assert min(booked) >= 1
    assert all(part <= most for part, most in zip(booked, (1000, usable, 1000), strict=True))
    if memory is not None or compute is not None:
        said = [(want, got) for want, got in zip((compute, memory, bandwidth), booked, strict=True) if want]
        assert all(want == got for want, got in said)


@given(usable=st.integers(1, 200_000), parts=st.integers(1, 50))
def test_equal_parts_of_a_card_always_fit_together(usable: int, parts: int) -> None:
    if usable // parts == 0:
        return
    booked = resolve_ask(Ask(SHARED, usable // parts), usable)
    assert booked is not None
    assert all(parts * part <= most for part, most in zip(booked, (1000, usable, 1000), strict=True))
