"""What is believed of reports, and what is made of them."""

from __future__ import annotations

import json

import pytest

from aliquot.control.progress import KEPT, WINDOW_MS, ProgressBoard, Whose
from aliquot.control.views import Progress
from aliquot.core.ids import JobId

OWNER, STRANGER, ROOT = 1000, 1001, 0


class Told:
    """A board on one job of two members, and the time."""

    def __init__(self) -> None:
        self.now, self.attempt = 0, 1
        self.board = ProgressBoard(lambda: self.now, self._whose, lambda uid: uid == ROOT)

    def say(self, uid: int = OWNER, after: int = 1_000, **what: object) -> bool:
        self.now += after
        said = {"job": "j", "attempt": self.attempt, **what}
        return self.board.note(uid, json.dumps(said).encode())

    def seen(self, member: int = 0) -> Progress:
        found = {one.member: one for one in self.board.of(JobId("j"), self.attempt, lambda at: 1e12)}
        return found[member]

    def _whose(self, job: JobId) -> Whose | None:
        return Whose(OWNER, self.attempt, 2) if job == "j" else None


@pytest.mark.parametrize(
    ("uid", "what", "is_believed"),
    [
        (OWNER, {"step": 1}, True),
        (ROOT, {"step": 1}, True),
        (STRANGER, {"step": 1}, False),
        (OWNER, {"step": 1, "member": 1}, True),
        (OWNER, {"step": 1, "member": 2}, False),
        (OWNER, {"step": 1, "attempt": 2}, False),
        (OWNER, {"step": 1, "job": "other"}, False),
        (OWNER, {"step": -1}, False),
        (OWNER, {"flops": 1e40}, False),
        (OWNER, {"step": "many"}, False),
    ],
)
def test_who_is_believed(uid: int, what: dict[str, object], is_believed: bool) -> None:
    told = Told()
    assert told.say(uid, **what) is is_believed
    assert told.board.ignored == (not is_believed)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\xff\xfe", id="no text"),
        pytest.param(b'{"job":"j","attempt":1,"x":' + b"[" * 4000, id="nested without end"),
        pytest.param(b'{"job":"j","attempt":1,"x":' + b"[" * 2000 + b"]" * 2000 + b"}", id="nested deeply"),
        pytest.param(b'{"job":"j","attempt":1,"flops":"nan"}', id="no number"),
        pytest.param(b'{"job":"j","attempt":1e400}', id="no attempt"),
        pytest.param(b'{"job":"\\ud800","attempt":1}', id="half a letter"),
    ],
)
def test_whatever_is_sent_hurts_nobody(body: bytes) -> None:
    told = Told()
    assert told.board.note(OWNER, body) is False
    assert told.say(step=1)


def test_speed_is_of_the_last_minute_however_many_reports_there_are() -> None:
    told = Told()
    for step in range(20 * KEPT):
        told.say(after=100, step=10 * step, flops=1e10 * step)
    seen = told.seen()
    assert seen.steps_per_s == pytest.approx(100)
    assert seen.mfu == pytest.approx(0.1)
    for step in range(2 * WINDOW_MS // 1_000):
        told.say(step=13_000 + step)
    assert told.seen().steps_per_s == pytest.approx(1)


def test_b38_what_an_attempt_has_saved_is_what_the_next_goes_on_from() -> None:
    """B38: the age of the checkpoint outlives the attempt; speeds begin anew."""
    told = Told()
    told.say(step=100)
    told.say(step=200, checkpoint=True)
    assert told.seen().checkpoint_ms == 2_000
    told.attempt = 2
    told.say(step=200)
    told.say(step=201, member=1)
    seen = told.seen()
    assert (seen.checkpoint_ms, seen.step, seen.reports, seen.steps_per_s) == (2_000, 200, 1, None)
    assert told.seen(1).checkpoint_ms is None
    told.say(checkpoint=True)
    assert told.seen().checkpoint_ms == told.now
