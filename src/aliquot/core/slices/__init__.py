"""How a card may be cut, and what one piece takes from each dimension of it."""

from aliquot.core.slices.ask import Ask, Cut, SliceClass, Vector, resolve_ask

__all__ = ["Ask", "Cut", "SliceClass", "Vector", "resolve_ask"]
