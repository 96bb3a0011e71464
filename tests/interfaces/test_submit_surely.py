"""`aliquot run` submits one job, also where the answer to that was lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pytest

from aliquot.control.errors import UnavailableError
from aliquot.control.live import Remote
from aliquot.control.views import Submission
from aliquot.interfaces.cli.live_run import submit_surely

JOB = Submission(command=("true",))


class Losing:
    """A service that goes away as often as `troubles` say, and then answers."""

    def __init__(self, troubles: Sequence[Exception]) -> None:
        self.troubles = list(troubles)
        self.keys: list[str] = []

    def submit(self, asked: Submission) -> str:
        self.keys.append(asked.key)
        if not self.troubles:
            return "7"
        trouble = self.troubles.pop(0)
        if isinstance(trouble, OSError):
            raise UnavailableError("the service did not answer") from trouble
        raise trouble


def test_an_answer_that_was_lost_is_asked_for_again_under_the_same_key() -> None:
    service = Losing([ConnectionResetError(), FileNotFoundError(), TimeoutError()])
    assert submit_surely(cast("Remote", service), JOB) == "7"
    assert len(service.keys) == 4
    assert len(set(service.keys)) == 1
    assert service.keys[0]


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param(FileNotFoundError(), id="nobody is there"),
        pytest.param(ConnectionRefusedError(), id="nobody listens"),
        pytest.param(UnavailableError("the service stops"), id="the service refuses"),
        pytest.param(UnavailableError("the disk is full", is_full=True), id="no room"),
    ],
)
def test_what_was_not_accepted_for_sure_is_not_asked_again(trouble: Exception) -> None:
    service = Losing([trouble])
    with pytest.raises(UnavailableError):
        submit_surely(cast("Remote", service), JOB)
    assert len(service.keys) == 1
