"""What a person writes and the parser would not understand, spelt as it does."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

LIVE_EXPLAIN: Final = "why"


def spell_json(arguments: Sequence[str], takes_value: Sequence[str]) -> list[str]:
    """`--json` without a file to write becomes `--json -`, for the commands in `takes_value`.

    The parser knows options with a value and options without, not both in one. What follows is the file to
    write if it is `-` or ends in `.json`.
    """
    if not arguments or arguments[0] not in takes_value:
        return list(arguments)
    spelt: list[str] = []
    for at, word in enumerate(arguments):
        spelt.append(word)
        if word == "--json":
            after = arguments[at + 1] if at + 1 < len(arguments) else ""
            if after != "-" and not after.endswith(".json"):
                spelt.append("-")
    return spelt


def spell_explain(arguments: Sequence[str]) -> list[str]:
    """`explain ID`, without a file to read, asks the running service."""
    words = list(arguments)
    if words[:1] != ["explain"]:
        return words
    own = [word for before, word in pairwise(words) if before != "--socket"]
    others = [word for word in own if not word.startswith("-")]
    return [LIVE_EXPLAIN, *words[1:]] if len(others) == 1 and not _is_file(others[0]) else words


def _is_file(word: str) -> bool:
    """Whether it is one, or is written like one; else it is meant to be a job's id, right or wrong."""
    if not word.isprintable() or not word:
        return False
    try:
        is_there = Path(word).exists()
    except OSError:  # such as a name that is too long
        return False
    return is_there or Path(word).suffix in {".yaml", ".yml", ".json"} or os.sep in word
