"""Names that are not there, and which one was meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final

from aliquot.core.errors import NotFoundError

MOST_SHOWN: Final = 24


def not_found(what: str, name: str, known: Iterable[str], where: str = "") -> NotFoundError:
    """`no policy 'fdg'; did you mean 'fgd'?`, or all that there are where none is close."""
    names = list(dict.fromkeys(known))
    begun = [other for other in names if name and other.casefold().startswith(name.casefold())]
    folded = {other.casefold(): other for other in names}
    close = begun or [folded[match] for match in difflib.get_close_matches(name.casefold(), folded, n=3)]
    at = f" in {where}" if where else ""
    if close:
        return NotFoundError(f"no {what} {name!r}{at}; did you mean {_or(close[:3])}?")
    shown = ", ".join(names[:MOST_SHOWN]) + (", ..." if len(names) > MOST_SHOWN else "")
    return NotFoundError(
        f"no {what} {name!r}{at}; there {'is' if len(names) == 1 else 'are'} {shown or 'none'}"
    )


def _or(names: list[str]) -> str:
    return " or ".join(repr(name) for name in names)
