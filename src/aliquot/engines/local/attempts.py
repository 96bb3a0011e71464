"""One attempt of a job as a whole: what its members' lives add up to, told as events, each once."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from aliquot.control.endings import REFUSED
from aliquot.core.events import Ended, Event, Outcome, Started, StartRefused, Stopping
from aliquot.core.ids import CardId, JobId, NodeId
from aliquot.core.lifecycle import Phase
from aliquot.engines.local.members import Life, Member
from aliquot.engines.local.payload import Ending

GANG: Final = "gang"
"""Why a member is ended that did nothing wrong: another of its gang is over."""

AGAIN: Final = frozenset({"moved", "preempted", "resized", "supervisor-stopped", "superseded"})
"""Reasons that are not the job's doing: it goes back to its queue."""

FINAL: Final = frozenset({"cancelled", "time-limit", "MemoryLimit", "memory-limit"})
"""Reasons after which nothing is tried again: its owner's will, and limits that it would reach once more."""

LOST: Final = "lost"
"""Why a job is not tried again of which nobody saw how it ended."""

LOSSES: Final = 3
"""How many attempts in a row may be lost so; Slurm and Kubernetes give up what kills its keeper as well."""

SLACK_MS: Final = 10_000
"""How much later than it should a supervisor may be, before it is taken to hang."""

START_MS: Final = 60_000
LOOK_MS: Final = 1_000
LOOKS: Final = 2

_WINDING_UP: Final = frozenset({Life.STOPPING, Life.OVER, Life.ORPHANED})


class Attempt:
    """Attempt `number` of `job`. `reason`: why the engine ends it, empty while it does not.

    `phase`: as far as the world knows already, so that a restarted service tells nothing twice.
    """

    def __init__(
        self, job: JobId, number: int, members: list[Member], retries: int, phase: Phase = Phase.STARTING
    ) -> None:
        self.job, self.number, self.members, self.retries = job, number, members, retries
        self.reason = ""
        self.time_ms: int | None = None  # how long it may run
        self.stop_ms = 0  # how long its end may take
        self.late_ms: int | None = None  # from when on it should have been over
        self.cards: frozenset[CardId] = frozenset()
        self.losses = 0  # attempts in a row just before it of which nobody saw how they ended
        self.node: NodeId | None = None  # where it was told to start
        self.is_last_refusal = False  # whether nothing follows if this one is refused
        self.port: int | None = None  # on which its members may meet
        self.lapses: list[str] = []  # limits that its cgroups did not take
        self._has_told_start = phase is not Phase.STARTING
        self._has_told_stop = phase is Phase.STOPPING
        self._looks = 0  # at its being late

    def stop(self, reason: str, *, verb: str = "stop", before: str = "", grace_ms: int = 0) -> None:
        """End every member that lives, within `grace_ms` or what its job says. The first reason stays."""
        if not self.reason:
            self.reason, self.late_ms, self._looks = reason, None, 0
            self.stop_ms = max(self.stop_ms, grace_ms)
        for member in self.members:
            if member.life is Life.NEW:
                member.bury()
            else:
                member.order(f"{before}{verb} {reason}")

    def judge(self, now: int, since_boot: int) -> list[Event]:
        """What has become true since the last call. A gang that lost a member is ended.

        `since_boot`: milliseconds that no setting of the clock changes, as those of `late_ms`.
        """
        told: list[Event] = []
        if not self._has_told_start and self._has_started():
            self._has_told_start, self.late_ms = True, None
            told.append(Started(now, self.job, self.number))
        if self.is_over:
            return [*told, self._verdict(now)]
        if not self.reason and any(_has_failed(member) for member in self.members):
            self.stop(GANG)
        if not self._has_told_stop and all(member.life in _WINDING_UP for member in self.members):
            self._has_told_stop = True
            told.append(Stopping(now, self.job, self.number))
        if self.late_ms is None:
            self.late_ms = self._late_from(since_boot)
        return told

    def end_late(self, now: int) -> str:
        """It should have been over, or begun, by `now`: what to say of that, or "".

        Not at the first look, since the whole machine may have slept. Supervisors that hang are killed.
        """
        self._looks += 1
        self.late_ms = now + LOOK_MS
        if self._looks < LOOKS:
            return ""
        if self.is_begun_late:
            self._looks, self.late_ms = 0, now + START_MS
            return f"{self.job} attempt {self.number}: nothing has begun it for {START_MS // 1000} s"
        self.reason = self.reason or "time-limit"
        for member in self.members:
            member.end_supervisor()
        hangs = f"{self.job} attempt {self.number}: its supervisor hangs, and is killed"
        return hangs if self._looks == LOOKS else ""

    @property
    def is_begun_late(self) -> bool:
        """Whether it has yet to begin, and nobody has ended it."""
        return not self._has_told_start and not self.reason

    def _late_from(self, now: int) -> int | None:
        if self.reason:
            return now + self.stop_ms + SLACK_MS
        if not self._has_told_start:
            return now + START_MS
        return None if self.time_ms is None else now + self.time_ms + self.stop_ms + SLACK_MS

    @property
    def is_over(self) -> bool:
        """Whether nothing of any member is left."""
        return all(member.life is Life.OVER for member in self.members)

    @property
    def needs_ticks(self) -> bool:
        """Whether some member has something to try again soon."""
        return any(member.needs_ticks for member in self.members)

    def _has_started(self) -> bool:
        started = [member.was_started for member in self.members]
        return any(started) and all(
            was_started or member.life is Life.OVER
            for was_started, member in zip(started, self.members, strict=True)
        )

    def _verdict(self, now: int) -> Event:
        """How the attempt went, once it is over."""
        if not self._has_run and self.reason in {"", GANG}:
            endings = [member.ending for member in self.members]
            refusals = [ending.text for ending in endings if ending is not None and ending.how == REFUSED]
            if refusals or all(ending is None for ending in endings):
                why = refusals[0] if refusals else "its supervisor could not start"
                if not self.is_last_refusal:
                    return StartRefused(now, self.job, self.number, why)
                return Ended(now, self.job, self.number, Outcome.FAILED)
        outcome = self._outcome()
        return Ended(now, self.job, self.number, outcome, unseen=outcome is Outcome.LOST and self._is_unseen)

    @property
    def endings(self) -> list[Ending | None]:
        """How each member ended; where nothing recorded that and nothing follows, why."""
        found = [member.ending for member in self.members]
        if not self._has_run and self.is_last_refusal:
            return [replace(one or Ending(REFUSED), reason=REFUSED) for one in found]
        if not self._has_run or self._outcome() is not Outcome.FAILED:
            return found
        why = LOST if self.reason in {"", GANG} else self.reason
        return [ending or Ending("unseen", reason=why) for ending in found]

    @property
    def _has_run(self) -> bool:
        """Also if it was told to run and nothing of it is left, as after a power cut: that is no refusal."""
        return self._has_told_start or any(member.was_started for member in self.members)

    @property
    def _is_unseen(self) -> bool:
        """Whether it was lost in front of us, not with the machine, so that nobody knows how it went."""
        return self.reason in {"", GANG} and any(_was_lost(member) for member in self.members)

    def _outcome(self) -> Outcome:
        endings = [member.ending for member in self.members]
        whole = [ending for ending in endings if ending is not None]
        if whole and all(ending is not None and ending.is_success for ending in endings):
            return Outcome.SUCCEEDED
        if self.reason not in {"", GANG}:
            return Outcome.LOST if self.reason in AGAIN else Outcome.FAILED
        if self._is_unseen and self.losses + 1 >= LOSSES:
            return Outcome.FAILED
        own = [ending for ending in whole if ending.reason != GANG]
        if len(whole) < len(endings) or not own:
            return Outcome.LOST  # a supervisor was killed: nobody knows how the work went
        if any(ending.reason in AGAIN or ending.how == REFUSED for ending in own):
            return Outcome.LOST
        may_retry = self.number <= self.retries and not any(ending.reason in FINAL for ending in own)
        return Outcome.LOST if may_retry else Outcome.FAILED


def _has_failed(member: Member) -> bool:
    """Whether it is over and did not succeed."""
    return member.life is Life.OVER and not (member.ending is not None and member.ending.is_success)


def _was_lost(member: Member) -> bool:
    """Whether somebody killed or stopped its supervisor, or the host refused it when others had begun."""
    ending = member.ending
    is_known = ending is not None and ending.reason != "supervisor-stopped" and ending.how != REFUSED
    return member.was_seen_to_end and not is_known
