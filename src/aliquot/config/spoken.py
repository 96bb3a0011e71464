"""Values that came by the API, as items that belong to no file: read by whoever reads documents."""

from __future__ import annotations

from collections.abc import Mapping

from aliquot.config.tree import Item


def item_of(value: object, path: str) -> Item:
    """A value from JSON, found at `path` of what was asked."""
    if isinstance(value, Mapping):
        entries = ((str(key), item_of(child, f"{path}.{key}")) for key, child in value.items())
        return Item("", None, path, entries=tuple(entries))
    if isinstance(value, list):
        children = (item_of(child, f"{path}[{at}]") for at, child in enumerate(value))
        return Item("", None, path, items=tuple(children))
    if value is None:
        return Item("", None, path, text="", plain=True, null=True)
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return Item("", None, path, text=text, plain=not isinstance(value, str))
