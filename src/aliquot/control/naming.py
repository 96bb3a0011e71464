"""Names that are not there, and which one was meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final

from aliquot.control.arrays import array_of
from aliquot.control.chronicle import Life
from aliquot.control.words import quoted
from aliquot.core.errors import NotFoundError

MOST_SHOWN: Final = 24
MOST_NAMED: Final = 5  # jobs of one name


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


def no_job(job: str, lives: Iterable[Life]) -> NotFoundError:
    """Nothing has this id; jobs that are called so are named, those that are not over before others."""
    called = [life for life in lives if life.name == job]
    living = [array_of(life.job.id) or life.job.id for life in called if life.over_ms is None]
    found = list(dict.fromkeys(living or [array_of(life.job.id) or life.job.id for life in called]))
    if not found:
        return NotFoundError(f"no job {quoted(job)}; 'aliquot jobs' lists those there are")
    more = len(found) - MOST_NAMED
    named = ", ".join(found[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
    called_so = f"job {named} is called" if len(found) == 1 else f"jobs {named} are called"
    return NotFoundError(f"no job has the id {quoted(job)}; {called_so} so: a job is meant by its id")


def _or(names: list[str]) -> str:
    return " or ".join(repr(name) for name in names)
