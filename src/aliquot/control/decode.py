"""What a service answered, as values: the other side may be of another version."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from aliquot.control.errors import UnavailableError

_T = TypeVar("_T")


def decoded(body: bytes, kind: type[_T]) -> _T:
    """The answer as `kind`. Raises UnavailableError where the service speaks otherwise."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.MsgspecError as error:
        raise UnavailableError(
            f"the service answers otherwise than this version understands ({error}); restart it with this one"
        ) from error
