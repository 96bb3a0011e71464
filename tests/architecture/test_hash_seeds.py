"""Same input, same bytes out, whatever seed Python hashes text with.

Each row of PROGRAMS is run once per seed; add a row for each output that a person or a file depends on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

PROGRAMS: Final[dict[str, tuple[str, ...]]] = {
    "the columns of a blank chunk": (
        "-c",
        "from aliquot.core.columns import blank_chunk; print([c.tobytes().hex() for c in blank_chunk(2, 8)])",
    ),
}


@pytest.mark.parametrize("arguments", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_output_does_not_depend_on_the_hash_seed(
    arguments: tuple[str, ...], under_hash_seeds: Callable[..., list[bytes]]
) -> None:
    first, second = under_hash_seeds(*arguments)
    assert first
    assert first == second
