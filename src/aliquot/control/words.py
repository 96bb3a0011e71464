"""Words that people, or their jobs, have chosen, as they may be shown to others.

What a job is called, runs and says of its end is printed in other people's terminals: nothing in it may
command them, or fill them. Apart from everything else, since the shortest commands need it.
"""

from __future__ import annotations

from typing import Final

LONGEST: Final = 60  # characters of a word that a sentence quotes
LONGEST_NAME: Final = 253  # characters of what may be the name of a thing: a job's id, a node, a card


def visible(text: str) -> str:
    """`text` with every character that is not to be printed spelt out, such as `\\x1b` and `\\n`."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else _spelt(one) for one in text)


def quoted(text: str) -> str:
    """`'text'`, spelt out, and no longer than a sentence bears: `'xxx' and 69,940 characters more`."""
    more = len(text) - LONGEST
    return repr(text) if more <= 0 else f"{text[:LONGEST]!r} and {more:,} characters more"


def shortened(text: str, most: int) -> str:
    """`text` spelt out; of one of more than `most` characters its beginning, and how many more there are."""
    more = len(text) - most
    return visible(text) if more <= 0 else f"{visible(text[:most])} ... and {more:,} characters more"


def counted(count: int, noun: str) -> str:
    """`1 card`, `2 cards`, `10,240 bytes`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def measured(amount: float, noun: str) -> str:
    """`1 core`, `1.5 cores`."""
    return f"{amount:g} {noun}" if amount == 1 else f"{amount:g} {noun}s"


def is_name(text: str) -> bool:
    """Whether a thing can be called so in an address: it can be printed, is not blank and has no slash."""
    return text.isprintable() and bool(text.strip()) and "/" not in text and len(text) <= LONGEST_NAME


def _spelt(one: str) -> str:
    return one.encode("unicode_escape").decode("ascii")
