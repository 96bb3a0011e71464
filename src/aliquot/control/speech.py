"""What is said to a service and by it, as JSON and back.

What a person wrote may be bytes that are no text, and the other side may be of another version.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec

from aliquot.control.errors import UnavailableError
from aliquot.control.words import quoted
from aliquot.core.errors import SpecError

_T = TypeVar("_T")


def encoded(value: object) -> bytes:
    """`value` as JSON. Raises SpecError that names the field of what is no text, as a name in Latin-1."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        field, text = next(_untexted(msgspec.to_builtins(value), ""), ("", ""))
        raise SpecError(
            f"{quoted(text)} has bytes that are no text", field=field, value=text, hint="text in UTF-8"
        ) from None


def decoded(body: bytes, kind: type[_T]) -> _T:
    """The answer as `kind`. Raises UnavailableError where the service speaks otherwise."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.MsgspecError as error:
        raise UnavailableError(
            f"the service answers otherwise than this version understands ({error}); restart it with this one"
        ) from error


def is_text(word: str) -> bool:
    """Whether it can be said at all: what came as bytes that are no UTF-8 cannot."""
    return not any("\ud800" <= one <= "\udfff" for one in word)


def _untexted(value: Any, at: str) -> Iterator[tuple[str, str]]:
    """Places within `value` of what is no text, and it."""
    if isinstance(value, str) and not is_text(value):
        yield at, value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from _untexted(key, at)
            yield from _untexted(part, f"{at}.{key}" if at else str(key))
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _untexted(part, at)
