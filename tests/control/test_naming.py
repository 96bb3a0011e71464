"""A name that is not there, and which one was meant."""

from __future__ import annotations

import pytest

from aliquot.control.naming import MOST_SHOWN, not_found

POLICIES = ("future-packing", "fgd", "best-fit", "spread")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("fdg", "no policy 'fdg'; did you mean 'fgd'?"),
        ("best", "no policy 'best'; did you mean 'best-fit'?"),
        ("Spread", "no policy 'Spread'; did you mean 'spread'?"),
        ("x", "no policy 'x'; there are future-packing, fgd, best-fit, spread"),
        ("", "no policy ''; there are future-packing, fgd, best-fit, spread"),
    ],
)
def test_the_nearest_name_or_all_of_them(name: str, told: str) -> None:
    assert str(not_found("policy", name, POLICIES)) == told


def test_where_it_was_looked_for_and_no_more_than_one_can_read() -> None:
    names = [f"job-{number}" for number in range(500)]
    assert str(not_found("job", "job", names, where="x.yaml")) == (
        "no job 'job' in x.yaml; did you mean 'job-0' or 'job-1' or 'job-2'?"
    )
    shown = str(not_found("job", "zzz", names))
    assert shown.count(",") == MOST_SHOWN
    assert shown.endswith(", ...")
    assert str(not_found("job", "zzz", [])) == "no job 'zzz'; there are none"
    assert str(not_found("job", "zzz", ["a"])) == "no job 'zzz'; there is a"
