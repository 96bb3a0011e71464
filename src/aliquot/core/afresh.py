"""The record of a job that goes back to its queue: its next attempt.

Nothing of what it was is forgotten: its first submit time stays in the job, and what ended its attempts is
counted, so that it is stopped seldom and tried again later each time a node refuses it.
"""

from __future__ import annotations

from typing import Final

from aliquot.core.lifecycle import News, Phase
from aliquot.core.records import JobRecord

BACKOFF_MS: Final = 1000
BACKOFF_DOUBLINGS: Final = 6


def next_attempt(record: JobRecord, news: News, at: int, *, is_kept: bool) -> JobRecord:
    """The job of `record`, pending again at `at` because of `news`.

    `is_kept`: room is kept for it, which it goes on with where it was stopped for another width.
    """
    refusals = record.refusals + 1 if news is News.REFUSED else 0
    wait = BACKOFF_MS * 2 ** min(refusals - 1, BACKOFF_DOUBLINGS) if refusals else 0
    resized = record.resizing is not None and record.phase is Phase.STOPPING
    return JobRecord(
        record.job,
        attempt=record.attempt + 1,
        since_ms=at,
        not_before_ms=at + wait,
        refusals=refusals,
        evictions=record.evictions + (record.evicting is not None),
        guess_ms=record.guess_ms,
        resizing=record.resizing if resized and is_kept else None,
        resizes=record.resizes + resized,
    )
