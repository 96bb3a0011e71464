"""What somebody else finds wrong with a document, said of its place in the file.

Whoever reads a document points at it by itself. This is for those who only know the values: the service that
a job was submitted to, or a decoder.
"""

from __future__ import annotations

import re
from typing import Final

from aliquot.config.tree import Item
from aliquot.core.errors import AliquotError, DocumentError, SpecError

_PART: Final = re.compile(r"""\["([^"]*)"\]|\[(\d+)\]|([^.\[\]:\s]+)""")


def point_at(item: Item, path: str, error: AliquotError) -> DocumentError:
    """`error` about the value at `path` below `item`, or about what of that is there; and what it says."""
    found = find_item(item, path)
    message, hint = str(error), ""
    if isinstance(error, SpecError):
        message, hint = error.message, error.hint
    if not _says(message, found, path):
        message = f"{found.text!r}: {message}"
    return DocumentError(message, file=item.file, line=found.line, field=path, value=found.text, hint=hint)


def _says(message: str, found: Item, path: str) -> bool:
    """Whether a message has the value already, or there is no one value, or it is about the key."""
    if not found.text or found.null or repr(path.rpartition(".")[2]) in message:
        return True
    return re.search(rf"(?<!\w){re.escape(found.text)}(?!\w)", message) is not None


def find_item(item: Item, path: str) -> Item:
    """What stands at a path such as `spec.env["a.b"]` or `cards[1].model`, else the nearest above it."""
    for quoted, index, word in _PART.findall(path):
        below = _at(item, int(index)) if index else item.get(quoted or word)
        if below is None:
            return item
        item = below
    return item


def _at(item: Item, index: int) -> Item | None:
    listed = item.items or ()
    return listed[index] if index < len(listed) else None
