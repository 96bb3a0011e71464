"""`aliquot jobs` without the parser, which takes longer to load than ten thousand jobs take to list.

Only what is plainly right is read here: the flags of the list and its socket, each as a word of its own. All
else, help and mistakes too, is the parser's; what a list then does is the same, `list_jobs`.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from aliquot.core.errors import AliquotError
from aliquot.interfaces.cli.leaving import Reading, describe_trouble

if TYPE_CHECKING:
    from aliquot.control.live import Live

BAD_INPUT: Final = 2
FLAGS: Final[Mapping[str, str]] = {
    "--all": "over",
    "-a": "over",
    "--mine": "mine",
    "-m": "mine",
    "--each": "each",
    "-e": "each",
    "--json": "json",
}
SOCKET, SOCKET_VARIABLE = "--socket", "ALIQUOT_SOCKET"
COMPLETES: Final = "_ALIQUOT_COMPLETE"  # the parser's: a shell asks for what could follow, or for its script


class ListAsk(NamedTuple):
    """Which jobs, and how they are printed. `socket` None: the usual one."""

    over: bool = False
    mine: bool = False
    each: bool = False
    json: bool = False
    socket: Path | None = None


def run_quickly(words: Sequence[str], live: Callable[[], Live]) -> int | None:
    """List jobs if that is what `words` plainly ask for, and the exit code; None: ask the parser."""
    if words[:1] != ["jobs"] or read_ask(words[1:], {}) is None:
        return None
    gc.set_threshold(50_000, 20, 100)  # what is loaded stays: looking for garbage in it finds nothing
    doors = live()
    asked = read_ask(words[1:], doors.environment())
    if asked is None:
        return None
    try:
        with Reading():
            list_jobs(asked, doors)
    except (AliquotError, OSError) as error:
        from aliquot.interfaces.cli.plain import complain

        complain(describe_trouble(error) if isinstance(error, OSError) else str(error))
        return BAD_INPUT
    return 0


def read_ask(words: Sequence[str], environment: Mapping[str, str]) -> ListAsk | None:
    """What the words after `jobs` say; None where they are not all plain."""
    said: dict[str, bool] = {}
    socket = environment.get(SOCKET_VARIABLE, "")
    rest = iter(words)
    for word in rest:
        if word in FLAGS:
            said[FLAGS[word]] = True
        elif word == SOCKET:
            socket = next(rest, "")
            if not socket or socket.startswith("-"):
                return None
        else:
            return None
    if COMPLETES in environment:
        return None
    return ListAsk(**said, socket=Path(socket) if socket else None)


def list_jobs(asked: ListAsk, doors: Live) -> None:
    """Ask the service and print what it says."""
    from aliquot.control.rows import decode_rows
    from aliquot.interfaces.cli.job_rows import job_lines
    from aliquot.interfaces.cli.plain import print_lines, print_said

    said = doors.dial(asked.socket).read("/v1/jobs", over=asked.over, mine=asked.mine, fold=not asked.each)
    if asked.json:
        print_said(said)
    else:
        print_lines(job_lines(decode_rows(said)))
