"""What a search costs, counted and not timed: the same on every machine.

1 is about one candidate looked at on one row. What is done for all tenants at one go costs a small part of
that for each.
"""

from __future__ import annotations

from typing import Final

AT_ONCE: Final = 5
"""Tenants, or rows, that cost 1 where all are looked at together."""

SEAT: Final = 50
"""A seat booked or given back on the draft."""

CANDIDATE: Final = 10
"""A candidate on a row that is cleared: tried, spared and tried again."""

LONG_WAY: Final = 10
"""So many times as much where links, or parts of jobs, have to be looked at one by one."""


UNLIMITED: Final = 2**62
"""Work without a bound."""


class Effort:
    """What may be done, and what was."""

    def __init__(self, left: int = UNLIMITED) -> None:
        self.left, self.spent = left, 0

    def spend(self, work: int) -> None:
        """So much was done."""
        self.left -= work
        self.spent += work

    @property
    def is_used_up(self) -> bool:
        """Whether no more should be begun."""
        return self.left <= 0
