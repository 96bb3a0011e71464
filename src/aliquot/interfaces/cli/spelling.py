"""What a person writes and the parser would not understand, spelt as it does."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

LIVE_EXPLAIN: Final = "why"
_NAME: Final = re.compile(r"[A-Za-z][\w.-]*")


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
    return [LIVE_EXPLAIN, *words[1:]] if len(others) == 1 and not _is_document(others[0]) else words


def _is_document(word: str) -> bool:
    """Whether it is a file, or written like one or like a job's name in one; else it is meant to be an id."""
    if _NAME.fullmatch(word) or os.sep in word:
        return True
    try:
        return word.isprintable() and bool(word) and Path(word).exists()
    except OSError:  # such as a name that is too long
        return False
