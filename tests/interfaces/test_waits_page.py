"""The page on waits names every gate, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from aliquot.core.steps import Gate, Reason, Shortfall
from aliquot.interfaces.cli.sentences import explain_reason


def test_every_gate_has_a_line_and_no_line_is_without_a_gate(repository: Path) -> None:
    text = (repository / "docs" / "reference" / "waits.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| `(\w+)` \|", text.partition("## ")[0], re.MULTILINE)
    assert sorted(named) == sorted(gate.value for gate in Gate)


@pytest.mark.parametrize("shortfall", Shortfall)
def test_every_reason_has_a_line_that_is_worded_as_it_is_printed(
    repository: Path, shortfall: Shortfall
) -> None:
    text = (repository / "docs" / "reference" / "waits.md").read_text(encoding="utf-8")
    words = re.findall(r"^\| `([^`]+)` \|", text.partition("## Reasons")[2], re.MULTILINE)
    assert len(words) == len(Shortfall)
    printed = explain_reason(Reason(shortfall, 2, 8, 4))
    said = [each for each in words if re.search(rf"(are|have|lack) {each}(:|$)", printed)]
    assert said == [words[list(Shortfall).index(shortfall)]], printed
