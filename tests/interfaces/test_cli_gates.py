"""Every gate has words, and says its numbers."""

from __future__ import annotations

import pytest

from aliquot.core.ids import JobId
from aliquot.core.queues import CARDS, MEMORY, Measure, Resource
from aliquot.core.steps import Gate, Lack, Wait
from aliquot.interfaces.cli.gates import GATES, gate_lines


def test_every_gate_has_words() -> None:
    assert set(GATES) == set(Gate)
    assert len(set(GATES.values())) == len(Gate)


@pytest.mark.parametrize(
    ("lack", "words"),
    [
        (Lack(CARDS, 4500, 2000, "lab"), "It asks for 4.5 of cards; queue lab has 2 left"),
        (
            Lack(CARDS, 3000, 0, "lab", most=2000),
            "queue lab can never give it more than 2, whatever else runs or ends: under this quota it will",
        ),
        (Lack(MEMORY, 40_960, 0, ""), "It asks for 40 GiB of memory; the pool has 0 MiB left"),
        (Lack(Resource(Measure.MONEY), 12_345, 99, "x/y"), "123.45 a month of money; queue x/y has 0.99 a"),
    ],
)
def test_a_limit_is_said_in_the_unit_of_its_measure(lack: Lack, words: str) -> None:
    (line,) = gate_lines(Wait(JobId("j"), Gate.QUOTA, lack=lack))
    assert words in line


def test_of_many_jobs_that_are_waited_for_the_first_are_named() -> None:
    others = tuple(JobId(f"j{at}") for at in range(7))
    (line,) = gate_lines(Wait(JobId("j"), Gate.DEPENDENCY, others=others))
    assert line == "It waits for j0, j1, j2, j3, j4 and 2 more."
