"""Jobs that are submitted together: which of them is wrong, and which waits for which of those before it.

In a batch `after` and `afterOk` may name an earlier job of the same batch: none of them has an id yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from aliquot.control.errors import BatchError
from aliquot.control.views import Submission
from aliquot.core.errors import AliquotError, SpecError
from aliquot.core.jobs import After, When

FIELDS = {When.ENDED: "spec.after", When.SUCCEEDED: "spec.afterOk"}


class Batch:
    """The jobs of one submission by their names. One job alone has no others to name."""

    def __init__(self, asked: Sequence[Submission]) -> None:
        self._named: dict[str, list[int]] = {}
        for at, one in enumerate(asked if len(asked) > 1 else ()):
            self._named.setdefault(one.name, []).append(at)

    def find(self, at: int, edge: After) -> int | None:
        """Which earlier job the job `at` waits for; None where it means an id. Raises SpecError."""
        named = self._named.get(edge.on, [])
        if not named:
            return None
        if len(named) > 1:
            many = f"{len(named)} jobs submitted together are called {edge.on!r}"
            raise _mistaken(edge, many, "a name of its own for each")
        if named[0] >= at:
            raise _mistaken(edge, f"{edge.on!r} does not come before it", "submit that one first")
        return named[0]


@contextmanager
def blaming(at: int) -> Iterator[None]:
    """What is wrong inside is wrong with the job `at` of a batch. Raises BatchError."""
    try:
        yield
    except BatchError:
        raise
    except AliquotError as error:
        raise BatchError(at, error) from error


def not_there(edge: After) -> SpecError:
    """Nobody knows what `edge` waits for."""
    return _mistaken(edge, f"there is no job {edge.on!r} to wait for", "the id of a job, as submit prints it")


def _mistaken(edge: After, message: str, hint: str) -> SpecError:
    return SpecError(message, field=FIELDS[edge.when], value=edge.on, hint=hint)
