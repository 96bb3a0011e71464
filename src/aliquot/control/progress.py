"""What jobs report of themselves, kept in memory: speed, beat, checkpoints, the share of the peak they reach.

It is telemetry: nothing depends on it, it is not recorded, and after a restart it is unknown until a job
reports again. What is malformed, not the sender's own, or of another attempt is counted and forgotten.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from aliquot.control.views import Progress
from aliquot.core.ids import JobId

WINDOW_MS: Final = 60_000  # speeds are of this long
KEPT: Final = 64  # reports of a window, spread over it where there are more


class Report(msgspec.Struct, frozen=True):
    """One datagram. Counts are totals of the attempt; what is not said is None."""

    job: str
    attempt: int
    member: int = 0
    step: int | None = None
    tokens: int | None = None
    flops: float | None = None
    checkpoint: bool | None = None


class Whose(NamedTuple):
    """Of a job as it is now: its owner, the attempt that runs, and its members."""

    owner: int | None
    attempt: int
    members: int


class _Beat(NamedTuple):
    at: int
    step: int | None
    tokens: int | None
    flops: float | None


class _Member:
    """The reports of one member."""

    def __init__(self, checkpoint_ms: int | None = None) -> None:
        self.beats: deque[_Beat] = deque()
        self.count = 0
        self.checkpoint_ms = checkpoint_ms
        self.last = _Beat(0, None, None, None)


class ProgressBoard:
    """One thread notes, any may ask. `whose`: a job that lives, or None; `is_admin`: uids heard for any."""

    def __init__(
        self, now: Callable[[], int], whose: Callable[[JobId], Whose | None], is_admin: Callable[[int], bool]
    ) -> None:
        self._now, self._whose, self._is_admin = now, whose, is_admin
        self._members: dict[JobId, tuple[int, dict[int, _Member]]] = {}
        self.ignored = 0

    def note(self, uid: int, body: bytes) -> bool:
        """Take a datagram of a process of `uid`; False where it says nothing that is to be believed."""
        try:
            said = _DECODER.decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            said = None
        if said is None or not self._is_believed(uid, said):
            self.ignored += 1
            return False
        self._take(said, self._now())
        return True

    def of(self, job: JobId, attempt: int, peak: Callable[[int], float | None]) -> tuple[Progress, ...]:
        """What the members of an attempt have reported, as of now; () where nothing.

        `peak`: floating-point operations a second of the cards of a member, None where unknown.
        """
        number, members = self._members.get(job, (0, {}))
        if number != attempt:
            return ()
        return tuple(
            _progress(at, member, peak(at)) for at, member in sorted(members.items()) if member.count
        )

    def _is_believed(self, uid: int, said: Report) -> bool:
        job = self._whose(JobId(said.job))
        counts = (said.step, said.tokens, said.flops)
        return (
            job is not None
            and (uid == job.owner or self._is_admin(uid))
            and said.attempt == job.attempt
            and 0 <= said.member < max(1, job.members)
            and all(count is None or 0 <= count <= _LARGEST for count in counts)
        )

    def _take(self, said: Report, now: int) -> None:
        job = JobId(said.job)
        number, members = self._members.get(job, (0, {}))
        if number != said.attempt:  # it goes on from what was saved before
            members = {at: _Member(before.checkpoint_ms) for at, before in members.items()}
        member = members.setdefault(said.member, _Member())
        last = member.last
        beat = _Beat(
            now,
            last.step if said.step is None else said.step,
            last.tokens if said.tokens is None else said.tokens,
            last.flops if said.flops is None else said.flops,
        )
        if any(_fell(before, after) for before, after in zip(last[1:], beat[1:], strict=True)):
            member.beats.clear()  # it began anew, from a checkpoint perhaps
        member.last = beat
        member.count += 1
        if said.checkpoint:
            member.checkpoint_ms = now
        _keep(member.beats, beat)
        self._members[job] = (said.attempt, members)
        self._forget()

    def _forget(self) -> None:
        """Jobs that are over go, once they are many."""
        if len(self._members) < _MANY:
            return
        self._members = {job: kept for job, kept in self._members.items() if self._whose(job) is not None}


_LARGEST: Final = 1e30
_MANY: Final = 2_000
_DECODER: Final = msgspec.json.Decoder(Report, strict=False)


def _fell(before: float | None, after: float | None) -> bool:
    return before is not None and after is not None and after < before


def _keep(beats: deque[_Beat], beat: _Beat) -> None:
    """The newest replaces one too near to the one before it, so that `KEPT` of them span the window."""
    while beats and beat.at - beats[0].at > WINDOW_MS:
        beats.popleft()
    if len(beats) > 1 and beats[-1].at - beats[-2].at < WINDOW_MS // KEPT:
        beats[-1] = beat
    else:
        beats.append(beat)


def _progress(at: int, member: _Member, peak: float | None) -> Progress:
    rates = [_rate(member.beats, field) for field in ("step", "tokens", "flops")]
    flops = rates[2]
    return Progress(
        member=at,
        reports=member.count,
        beat_ms=member.last.at,
        step=member.last.step,
        tokens=member.last.tokens,
        steps_per_s=rates[0],
        tokens_per_s=rates[1],
        flops_per_s=flops,
        mfu=None if flops is None or not peak else flops / peak,
        checkpoint_ms=member.checkpoint_ms,
    )


def _rate(beats: deque[_Beat], field: str) -> float | None:
    """From the first to the last of the window that say it; None of fewer than two moments."""
    said: list[tuple[int, float]] = [
        (beat.at, value) for beat in tuple(beats) if (value := getattr(beat, field)) is not None
    ]
    if len(said) < 2 or said[-1][0] <= said[0][0]:  # two ends
        return None
    return (said[-1][1] - said[0][1]) * 1000 / (said[-1][0] - said[0][0])
