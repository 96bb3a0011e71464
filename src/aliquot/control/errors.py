"""What a live service raises beside the core's errors: who may do what, and when it cannot be done.

AliquotError
├── ForbiddenError    the caller may not do this; it is another's
├── ConflictError     it cannot be done any more, such as cancelling what is over
├── BatchError        one of several jobs is why none was accepted
└── UnavailableError  the service cannot do it now: it stops, or its record cannot be written
"""

from __future__ import annotations

from aliquot.core.errors import AliquotError


class ForbiddenError(AliquotError):
    """The caller may not do this."""


class ConflictError(AliquotError):
    """What was asked for does not go with the state things are in."""


class BatchError(AliquotError):
    """None of a batch was accepted for what is wrong with its job `at`, counted from 0: `error`."""

    def __init__(self, at: int, error: AliquotError) -> None:
        self.at, self.error = at, error
        super().__init__(f"job {at + 1} of the batch, and none is accepted: {error}")


class UnavailableError(AliquotError):
    """Not now; nothing was done. `is_full`: for want of room on the disk."""

    def __init__(self, message: str, *, is_full: bool = False) -> None:
        self.is_full = is_full
        super().__init__(message)
