"""Everything Aliquot raises on purpose.

    AliquotError
    ├── SpecError            something a person wrote is wrong; carries field, value, what would be right
    │   ├── QuantityError    a number with a unit that cannot be read exactly
    │   └── DocumentError    the same, with the file and the place in it
    ├── NotFoundError        a named thing (job, workload, folder) that is not there
    ├── BrokenInvariantError a bug: the world would have become inconsistent
    └── DriverError
        ├── TemporaryError   worth another try after `retry_after_ms`
        └── PermanentError   not worth another try

A job that does not fit is never an exception: it is a `Wait` step with reasons.
"""

from __future__ import annotations


class AliquotError(Exception):
    """Root of the tree. `str(error)` is one sentence for a person."""


class SpecError(AliquotError):
    """A bad specification: `field` has `value`, and `hint` says what would be right."""

    def __init__(self, message: str, *, field: str = "", value: object = None, hint: str = "") -> None:
        self.message, self.field, self.value, self.hint = message, field, value, hint
        super().__init__(self.describe())

    def describe(self) -> str:
        """One line: the field, what is wrong with it, what would be right."""
        where = f"{self.field}: " if self.field else ""
        advice = f" ({self.hint})" if self.hint else ""
        return f"{where}{self.message}{advice}"


class QuantityError(SpecError):
    """A quantity that cannot be read exactly, or is outside its range."""


class DocumentError(SpecError):
    """A bad document: adds the file and, where known, the line or row in it."""

    def __init__(
        self,
        message: str,
        *,
        file: str = "",
        line: int | None = None,
        field: str = "",
        value: object = None,
        hint: str = "",
    ) -> None:
        self.file, self.line = file, line
        super().__init__(message, field=field, value=value, hint=hint)

    def describe(self) -> str:
        """One line, beginning with `file:line:` as compilers print it."""
        at = (
            f"{self.file}:{self.line}: " if self.line is not None else (f"{self.file}: " if self.file else "")
        )
        return at + super().describe()


class NotFoundError(AliquotError):
    """A thing asked for by name does not exist."""


class BrokenInvariantError(AliquotError):
    """The world would have become inconsistent: a bug in Aliquot, never a user's mistake."""


class DriverError(AliquotError):
    """A node mechanism failed."""


class TemporaryError(DriverError):
    """The same call may succeed after `retry_after_ms`."""

    def __init__(self, message: str, retry_after_ms: int) -> None:
        self.retry_after_ms = retry_after_ms
        super().__init__(message)


class PermanentError(DriverError):
    """The same call will fail again."""
