"""What stands in a file, as written: scalars keep their text, every item knows its file, line and path.

YAML 1.1 would read `0x10` as 16, `1_000` as 1000, `12:30:00` as seconds, `010` as 8 and `no` as false. Here
nothing is read twice: an item is text until the field that wants it parses it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NoReturn

from aliquot.control.words import LONGEST, quoted
from aliquot.core.errors import DocumentError

MOST_SHOWN: Final = 16


@dataclass(frozen=True, slots=True)
class Item:
    """One value of a document: a scalar (`text`), a map (`entries`) or a list (`items`); exactly one is set.

    `plain` is True for a scalar without quotes; `null` for an empty or null one, which means "not said".
    """

    file: str
    line: int | None
    path: str
    text: str | None = None
    plain: bool = False
    null: bool = False
    entries: tuple[tuple[str, Item], ...] | None = None
    items: tuple[Item, ...] | None = None

    @property
    def kind(self) -> str:
        """What it is, for a message."""
        if self.entries is not None:
            return "a map"
        if self.items is not None:
            return "a list"
        return "nothing" if self.null else quoted(self.text or "")

    def fail(self, message: str, hint: str = "") -> NoReturn:
        """Raise a DocumentError that points here."""
        raise self.error(message, hint)

    def error(self, message: str, hint: str = "") -> DocumentError:
        """A DocumentError that points here; of a long text that `message` quotes, only the beginning."""
        if self.text is not None and len(self.text) > LONGEST:
            message = message.replace(repr(self.text), quoted(self.text))
        return DocumentError(
            message, file=self.file, line=self.line, field=self.path, value=self.text, hint=hint
        )

    def scalar(self) -> str:
        """The text of a scalar as written; fails on anything else."""
        if self.text is None or self.null:
            self.fail(f"{self.kind} stands where one value is expected", "write one value")
        return self.text

    def fields(self) -> tuple[tuple[str, Item], ...]:
        """The entries of a map, those that say nothing left out; fails on anything else."""
        if self.entries is None:
            self.fail(f"{self.kind} stands where a map of fields is expected", "write key: value")
        return tuple((key, item) for key, item in self.entries if not item.null)

    def elements(self) -> tuple[Item, ...]:
        """The elements of a list; fails on anything else and on an empty one."""
        if not self.items:
            what = "an empty list" if self.items == () else self.kind
            self.fail(f"{what} stands where a list is expected", "write a list of one or more")
        return self.items

    def get(self, key: str) -> Item | None:
        """The entry `key` of a map, or None where it is absent or says nothing."""
        return next((item for name, item in self.entries or () if name == key and not item.null), None)

    def walk(self) -> Iterator[Item]:
        """This item and all below it."""
        yield self
        for child in (*(item for _, item in self.entries or ()), *(self.items or ())):
            yield from child.walk()


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint: the known word closest to `word`, else all of them, as far as one can read."""
    words = list(known)
    folded = {known_word.casefold(): known_word for known_word in words}
    close = difflib.get_close_matches(word.casefold(), folded, n=1, cutoff=0.6)
    if close:
        return f"did you mean {folded[close[0]]!r}?"
    shown = ", ".join(words[:MOST_SHOWN]) + (", ..." if len(words) > MOST_SHOWN else "")
    return f"one of {shown}" if words else ""
