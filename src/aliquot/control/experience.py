"""What looking ahead has learnt, as bytes and back, so that a restart knows what was known before.

Two kinds. `Experience` is all of it, kept with a snapshot of the world. `Guessed` is one guess that was said
of a job as it came: it depends on how much time there was and so cannot be worked out again, and is kept
beside the events. What else was learnt follows from the events behind the snapshot.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from aliquot.core.events import Event
from aliquot.core.ids import JobId
from aliquot.core.queueing.neighbours import NeighboursImage
from aliquot.core.queueing.outlook import Interval, OutlookImage, Sight, VerifiedImage
from aliquot.core.world import World


class Under(msgspec.Struct, frozen=True):
    """A job under way since `since` (ms), of which `told_ms` was said; None: nothing."""

    told_ms: int | None
    since: int


class Guessed(msgspec.Struct, frozen=True):
    """At `at` (ms) a waiting job was seen like that, and this was said of its wait."""

    job: JobId
    sight: Sight
    interval: Interval | None
    at: int


class Experience(msgspec.Struct, frozen=True):
    """All that is known. `said`: of who waits, the wait that was said, and when."""

    truth: dict[int, list[int]] = {}
    neighbours: NeighboursImage = NeighboursImage()
    outlook: OutlookImage = OutlookImage()
    verified: VerifiedImage = VerifiedImage()
    said: list[tuple[JobId, Interval | None, int]] = []
    runs: dict[JobId, Under] = {}
    is_blind: bool = False


class Pupil(Protocol):
    """Who learns beside the world, and begins again from a record: `recall` once, then the rest in order."""

    def recall(self, experience: bytes | None, world: World) -> bool:
        """Know what was kept with `world`; None: nothing was. False where it cannot be read."""
        ...

    def hear(self, guesses: bytes) -> None:
        """Guesses that were said before the next events."""
        ...

    def see(self, events: Sequence[Event], world: World) -> None:
        """Learn from what has happened."""
        ...


_EXPERIENCE = msgspec.json.Decoder(Experience)
_GUESSES = msgspec.json.Decoder(list[Guessed])


def encode_experience(experience: Experience) -> bytes:
    """`experience` as JSON."""
    return msgspec.json.encode(experience)


def decode_experience(body: bytes) -> Experience | None:
    """What `body` says; None where it cannot be read."""
    try:
        return _EXPERIENCE.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def encode_guesses(guesses: Sequence[Guessed]) -> bytes:
    """`guesses` as a JSON list."""
    return msgspec.json.encode(guesses)


def decode_guesses(body: bytes) -> list[Guessed]:
    """The guesses of `body`; none where it cannot be read."""
    try:
        return _GUESSES.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return []
