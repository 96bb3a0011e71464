"""The page on waits names every gate, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from aliquot.core.steps import Gate


def test_every_gate_has_a_line_and_no_line_is_without_a_gate(repository: Path) -> None:
    text = (repository / "docs" / "reference" / "waits.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
    assert sorted(named) == sorted(gate.value for gate in Gate)
