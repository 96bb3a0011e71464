"""The record of a job that goes back to its queue: its next attempt.

Nothing of what it was is forgotten: its first submit time stays in the job, and what ended its attempts is
counted, so that it is stopped seldom and tried again later each time a node refuses it or loses sight of it.
"""

from __future__ import annotations

from typing import Final

from aliquot.core.lifecycle import News, Phase
from aliquot.core.records import JobRecord
from aliquot.core.steps import Cause

BACKOFF_MS: Final = 1000
BACKOFF_DOUBLINGS: Final = 6


def next_attempt(record: JobRecord, news: News, at: int, *, is_kept: bool) -> JobRecord:
    """The job of `record`, pending again at `at` because of `news`.

    `is_kept`: room is kept for it, which it goes on with where it was stopped for another width.
    """
    refusals = record.refusals + 1 if news is News.REFUSED else 0
    losses = record.losses + 1 if news is News.UNSEEN else record.losses if refusals else 0
    again = losses if news is News.UNSEEN else refusals
    wait = BACKOFF_MS * 2 ** min(again - 1, BACKOFF_DOUBLINGS) if again else 0
    resized = record.resizing is not None and record.phase is Phase.STOPPING
    return JobRecord(
        record.job,
        attempt=record.attempt + 1,
        since_ms=at,
        not_before_ms=at + wait,
        refusals=refusals,
        losses=losses,
        evictions=record.evictions + (record.evicting is not None),
        guess_ms=record.guess_ms,
        resizing=record.resizing if resized and is_kept else None,
        resizes=record.resizes + resized,
        in_vain_ms=_in_vain_ms(record),
    )


def _in_vain_ms(record: JobRecord) -> int:
    """How long it has to be able to run to be tried again on a budget that stops jobs; 0: as any other.

    What it ran when it was stopped for one with nothing saved, and at least twice as much as the last time:
    so a job is stopped in vain a few times at most, however short they were.
    """
    if record.evicting is None or record.evicting.cause is not Cause.BUDGET:
        return record.in_vain_ms
    ran = record.since_ms - record.granted_ms
    stop = record.job.stop
    pause = stop.restart_ms if record.attempt > 1 else 0
    if stop.checkpoint_ms is not None and ran - pause >= stop.checkpoint_ms:
        return 0
    return max(1, ran, 2 * record.in_vain_ms)
