"""The textbook disciplines of a line, as rules of backfill. Apart from the kernels, which most never need."""

from __future__ import annotations

from aliquot.core.settings import Backfill

EASY = Backfill(
    by_size=False, overdue_ms=0, overdue_wide_ms=0, reservations=1, doubt_milli=1000, by_end=False
)
FIFO = Backfill(by_size=False, reservations=0, first=0, pass_blocked=False, by_end=False)
SKIP = Backfill(by_size=False, reservations=0, first=0, by_end=False)
