"""What the reading of documents needs of a hardware catalogue, and the look-up of names in it.

The catalogue itself is a sibling this package does not import; anything of this shape will do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from aliquot.config.tree import Item, nearest
from aliquot.core.inventory import CardModel, Node


class Shelf(Protocol):
    """A catalogue to read documents with."""

    def models(self) -> Mapping[str, CardModel]:
        """GPU models by name."""
        ...

    def families(self) -> Mapping[str, tuple[str, ...]]:
        """Names of the models that one word stands for."""
        ...

    def nvlinks(self) -> Mapping[str, tuple[int, int]]:
        """(links of one card, MB/s of one link one way) by model name."""
        ...

    def machines(self) -> Mapping[str, Node]:
        """Template nodes by the name of the machine shape."""
        ...


class ModelNames:
    """Every word that may stand for card models: names, aliases, families; whatever the case of letters."""

    def __init__(self, shelf: Shelf) -> None:
        self._models: dict[str, CardModel] = {}
        self._families = {word.casefold(): names for word, names in shelf.families().items()}
        for model in shelf.models().values():
            self.add(model)

    def add(self, model: CardModel) -> None:
        """Make a model known that a document declares; it goes before the catalogue's of the same name."""
        for word in (model.name, *model.aliases):
            self._models[word.casefold()] = model

    def find(self, item: Item) -> CardModel | None:
        """The one model an item names, or None; a family of several is refused."""
        word = item.scalar()
        model = self._models.get(word.casefold())
        family = self._families.get(word.casefold(), ())
        if model is None and len(family) > 1:
            item.fail(f"{word!r} may be any of several models", f"one of {', '.join(family)}")
        return model or (self._models[family[0].casefold()] if family else None)

    def expand(self, words: Iterable[tuple[str, Item]]) -> tuple[str, ...]:
        """Model names for words that accept several: `A100` is its four boards. Fails on an unknown word."""
        found: dict[str, None] = {}
        for word, item in words:
            model = self._models.get(word.casefold())
            names = (model.name,) if model else self._families.get(word.casefold(), ())
            if not names:
                item.fail(f"unknown GPU model {word!r}", self.hint(word))
            found |= dict.fromkeys(names)
        return tuple(found)

    def hint(self, word: str) -> str:
        """The nearest known word."""
        known = {model.name for model in self._models.values()} | {
            names[0] for names in self._families.values()
        }
        return nearest(word, sorted(known))
