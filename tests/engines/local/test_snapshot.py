"""A world goes into bytes and comes back the same, and lives on the same."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from aliquot.engines.local.snapshot import decode_world, encode_world
from tests.support.histories import MIX, History
from tests.support.same import encoded, same_world


@pytest.mark.parametrize("seed", range(8))
def test_a_world_restored_at_any_moment_lives_on_as_if_nothing_had_happened(seed: int) -> None:
    history = History(Random(seed))
    for _ in range(6):
        history.run(20)
        restored = decode_world(encode_world(history.world), window=MIX.mix_window)
        assert same_world(restored.freeze(), history.world.freeze())
        assert restored.outstanding() == history.world.outstanding()
        assert restored.recent_demand() == history.world.recent_demand()
        history.world = restored
    assert same_world(history.rebuilt().freeze(), history.world.freeze())


def test_a_job_that_is_over_stays_over() -> None:
    history = History(Random(3)).run(150)
    over = [event for event in history.events if type(event).__name__ == "JobSubmitted"]
    restored = decode_world(encode_world(history.world), window=MIX.mix_window)
    before = encoded(restored.freeze())
    restored.apply_all(over)
    assert encoded(restored.freeze()) == before


def test_bytes_do_not_depend_on_the_hash_seed(under_hash_seeds: Callable[..., list[bytes]]) -> None:
    code = (
        "import sys; from random import Random; from tests.support.histories import History;"
        "from aliquot.engines.local.snapshot import encode_world;"
        "sys.stdout.buffer.write(encode_world(History(Random(1)).run(120).world))"
    )
    first, second = under_hash_seeds("-c", code)
    assert first == second != b""
