"""The demo prints what it is known to print, and writes the report it says it writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.demo import GOLDEN, run_demo


@pytest.mark.slow
def test_the_demo_prints_what_it_is_known_to_print(tmp_path: Path) -> None:
    """Changed on purpose? `python -m tests.golden.demo > tests/golden/demo.txt`, and read the difference."""
    assert run_demo(tmp_path / "out").splitlines() == GOLDEN.read_text().splitlines()
    assert (tmp_path / "out" / "case.html").stat().st_size > 100_000


def test_the_known_output_shows_the_figures_of_the_case_and_calls_them_a_calibrated_replay() -> None:
    text = GOLDEN.read_text()
    for words in (
        "45.0 %",
        "82.0 %",
        "31.4 %",
        "240.0 cards",
        "$7.20 M",
        "2 h 32 min",
        "A calibrated replay",
    ):
        assert words in text
