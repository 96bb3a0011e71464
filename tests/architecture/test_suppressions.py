"""Whoever silences a check names the rule and says why, on the same line: `# noqa: RULE  # reason`."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.architecture.conftest import Source

REASON: Final = r"\s*(?:#|--?|:|\()?\s*(?P<reason>\S.*)"
WELL_FORMED: Final = (
    re.compile(r"#\s*noqa:\s*[A-Z]+[0-9]+(?:\s*,\s*[A-Z]+[0-9]+)*" + REASON),
    re.compile(r"#\s*type:\s*ignore\[[a-z0-9, -]+\]" + REASON),
    re.compile(r"#\s*pragma:\s*no cover" + REASON),
)
SILENCER: Final = re.compile(r"#\s*(?:noqa|type:\s*ignore|pragma:\s*no)", re.IGNORECASE)
WHOLE_FILE: Final = re.compile(r"#\s*(?:ruff:\s*noqa|flake8:\s*noqa|mypy:|fmt:\s*off)", re.IGNORECASE)


def test_every_suppression_names_its_rule_and_reason(all_python: list[Source]) -> None:
    found = [
        f"{source.path}:{line}: {comment}"
        for source in all_python
        for line, comment in comments(source.text)
        if not is_justified(comment)
    ]
    assert found == []


def test_ruff_exceptions_in_the_settings_say_why(repository: Path) -> None:
    text = (repository / "pyproject.toml").read_text(encoding="utf-8")
    block = text[text.index("\nignore = [") : text.index("[tool.mypy]")]
    entries = [line for line in block.splitlines() if re.match(r'\s*".*"(,|\s*=)', line)]
    assert entries
    assert [line for line in entries if not re.search(r"#\s+\S+\s+\S+", line)] == []


@pytest.mark.parametrize(
    ("comment", "justified"),
    [
        pytest.param("# a plain remark", True, id="no suppression at all"),
        pytest.param("# noqa: E501  # the table reads better in one piece", True, id="rule and reason"),
        pytest.param("# type: ignore[misc] - the stub lacks overloads", True, id="type rule and reason"),
        pytest.param("# noqa: E501", False, id="a rule without a reason"),
        pytest.param("# noqa", False, id="everything silenced"),
        pytest.param("# type: ignore", False, id="every type error silenced"),
        pytest.param("# type: ignore[misc]", False, id="a type rule without a reason"),
        pytest.param("# ruff: noqa", False, id="a whole file silenced"),
        pytest.param("# fmt: skip  # a table reads by columns", True, id="a table kept aligned"),
        pytest.param("# fmt: off", False, id="a file out of format"),
    ],
)
def test_suppressions_are_recognised(comment: str, justified: bool) -> None:
    assert is_justified(comment) is justified


def comments(text: str) -> Iterator[tuple[int, str]]:
    """(line, comment) of every comment; text in strings is none."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def is_justified(comment: str) -> bool:
    if WHOLE_FILE.search(comment):
        return False
    if not SILENCER.search(comment):
        return True
    matches = (pattern.search(comment) for pattern in WELL_FORMED)
    return any(match is not None and len(match["reason"].split()) >= 2 for match in matches)
