"""What the local engine raises, each with a sentence that says what to do.

AliquotError
├── JournalError            the record cannot be used
│   ├── JournalLockedError      another service has it; carries its pid
│   ├── JournalFullError        no room on the disk: nothing was recorded, free some and try again
│   ├── JournalReadOnlyError    the disk or the file may not be written
│   ├── JournalVersionError     written by a newer Aliquot, or not a journal at all
│   └── JournalDamagedError     its contents are broken in a way that needs a person's decision
└── DriverError
    └── PermanentError
        └── NoSupervisorError   the small program beside each job is not there and cannot be compiled
"""

from __future__ import annotations

from aliquot.core.errors import AliquotError, PermanentError


class JournalError(AliquotError):
    """The record cannot be used. What was acknowledged before is still on the disk."""


class JournalLockedError(JournalError):
    """Two services on one journal: `pid` has it, None where the holder did not say."""

    def __init__(self, message: str, pid: int | None) -> None:
        self.pid = pid
        super().__init__(message)


class JournalFullError(JournalError):
    """The disk is full. Nothing of this append was recorded; the same append may succeed later."""


class JournalReadOnlyError(JournalError):
    """The journal may not be written where it is."""


class JournalVersionError(JournalError):
    """The file is not a journal, or one of a newer version."""


class JournalDamagedError(JournalError):
    """Acknowledged events cannot be read any more, and whole ones lie behind them."""


class NoSupervisorError(PermanentError):
    """No compiled supervisor and no compiler."""
