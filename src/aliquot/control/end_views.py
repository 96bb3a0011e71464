"""How jobs came to an end that did not end by themselves, as plain records of the API."""

from __future__ import annotations

import msgspec


class GivenUp(msgspec.Struct, frozen=True):
    """Who gave a job up, a user by number and name; or, where nobody did, for what `reason` and `why`.

    `reason`: dependency (a job that had to succeed before it did not) or idle (it did not use its cards).
    """

    by: int | None = None
    user: str = ""
    reason: str = ""
    why: str = ""
