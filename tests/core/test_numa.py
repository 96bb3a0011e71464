"""Which NUMA nodes a member's cpu and memory come from."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from aliquot.core.columns import NodeChunk, blank_chunk
from aliquot.core.inventory import kind_of
from aliquot.core.numa import split_host
from tests.support.build import a_node

KIND = kind_of(a_node("n", 4, numa=2))  # cards 0 and 1 on NUMA node 0, cards 2 and 3 on node 1


def free(*per_numa: tuple[int, int]) -> NodeChunk:
    """One row with so many (milli-cores, MiB) left per NUMA node."""
    chunk = blank_chunk(1, 4)
    for at, (cpu, host) in enumerate(per_numa):
        chunk.numa_cpu[0, at], chunk.numa_host[0, at] = cpu, host
    return chunk


@pytest.mark.parametrize(
    ("left", "mask", "need", "taken"),
    [
        pytest.param([(8, 80), (8, 80)], 0b0001, (4, 30), ((0, 4, 30),), id="beside its card"),
        pytest.param(
            [(8, 80), (8, 80)], 0b1000, (4, 30), ((1, 4, 30),), id="beside a card of the other socket"
        ),
        pytest.param([(8, 80), (8, 80)], 0b0011, (4, 30), ((0, 4, 30),), id="both cards on one socket"),
        pytest.param([(8, 80), (8, 80)], 0b0110, (4, 30), ((0, 2, 15), (1, 2, 15)), id="a card on each"),
        pytest.param(
            [(8, 80), (8, 80)], 0b0110, (5, 31), ((0, 3, 16), (1, 2, 15)), id="the odd one to the first"
        ),
        pytest.param(
            [(3, 80), (8, 80)], 0b0001, (4, 30), ((0, 3, 30), (1, 1, 0)), id="the rest from the other"
        ),
        pytest.param([(0, 0), (8, 80)], 0b0001, (4, 30), ((1, 4, 30),), id="nothing left beside its card"),
        pytest.param(
            [(1, 80), (8, 80)], 0b0110, (6, 0), ((0, 1, 0), (1, 5, 0)), id="an uneven split where it must"
        ),
        pytest.param([(8, 80), (8, 80)], 0, (4, 30), ((0, 4, 30),), id="no card: first come"),
        pytest.param([(2, 9), (8, 80)], 0, (4, 30), ((0, 2, 9), (1, 2, 21)), id="no card: then the next"),
        pytest.param([(8, 80), (8, 80)], 0b0001, (0, 0), (), id="nothing needed"),
        pytest.param([], 0b0001, (4, 30), (), id="NUMA unknown"),
    ],
)
def test_host_resources_come_from(
    left: list[tuple[int, int]], mask: int, need: tuple[int, int], taken: tuple[tuple[int, int, int], ...]
) -> None:
    assert split_host(free(*left), 0, KIND, mask, *need) == taken


def test_a_card_whose_numa_node_has_no_column_is_as_good_as_unknown() -> None:
    """Cards with memory of their own report it as NUMA nodes beyond those with cpus: 9, 34."""
    odd = replace(KIND, card_numa=(9, None, 34, 0))
    assert split_host(free((8, 80), (8, 80)), 0, odd, 0b11, 4, 30) == ((0, 4, 30),)
