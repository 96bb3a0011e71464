"""What a list of jobs needs to know of each: a part of what the API says, by the same names.

Apart from `views`, so that ten thousand jobs are listed without loading what can be said of one.
"""

from __future__ import annotations

import msgspec

from aliquot.control.speech import decoded


class StartRow(msgspec.Struct, frozen=True, gc=False):
    """When a waiting job is expected to start, a part of `core.queueing.outlook.Expected`."""

    at_ms: int | None = None
    low_ms: int | None = None
    high_ms: int | None = None


class ResizeRow(msgspec.Struct, frozen=True, gc=False):
    """A change of width, a part of `views.ResizeView`."""

    was: int
    width: int


class JobRow(msgspec.Struct, frozen=True, gc=False):
    """A job or an array in a list, a part of `views.JobSummary`."""

    id: str
    name: str
    user: str
    queue: str
    priority: int
    phase: str
    cards: int
    submitted_ms: int
    started_ms: int | None = None
    over_ms: int | None = None
    exit_status: int | None = None
    reason: str = ""
    expected: StartRow | None = None
    members: int = 1
    counts: dict[str, int] | None = None
    width: int | None = None
    resizing: ResizeRow | None = None


def decode_rows(body: bytes) -> list[JobRow]:
    """The rows of `GET /v1/jobs`. Raises UnavailableError."""
    return decoded(body, list[JobRow])
