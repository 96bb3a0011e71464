"""Whether the record has room for new work, said once when that changes."""

from __future__ import annotations

from collections.abc import Callable

from aliquot.control.errors import UnavailableError


class Room:
    """`lack`: why the record can take no new work now, "" where it can; `say`: tell people."""

    def __init__(self, lack: Callable[[], str], say: Callable[[str], object]) -> None:
        self._lack, self._say = lack, say
        self._is_short = False

    def must_be_there(self) -> None:
        """UnavailableError where new work has to wait."""
        if why := self._lack():
            raise UnavailableError(why, is_full=True)

    def note(self) -> None:
        """Look, and say what is new about it."""
        why = self._lack()
        if bool(why) is not self._is_short:
            self._is_short = bool(why)
            self._say(why or "there is room on the disk again: new jobs are accepted")
