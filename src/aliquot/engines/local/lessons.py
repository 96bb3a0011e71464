"""What was learnt beside the events: with each snapshot all of it, and guesses that were said since.

Nothing that waits or runs depends on it. Guesses are written in the commit that comes next, since they are
not worth a flush of their own; what cannot be read is learnt anew.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final

from aliquot.control.experience import Pupil
from aliquot.core.events import Event
from aliquot.core.world import World
from aliquot.engines.local.schema import checksum, is_whole

_LINE: Final = b"\n"
Read = Callable[[str, tuple[object, ...]], list[tuple[Any, ...]]]


class Lessons:
    """`note` from any thread; the rest by whoever writes the journal. `read`: rows, as far as can be read."""

    def __init__(self, read: Read, say: Callable[[str], object]) -> None:
        self._read, self._say = read, say
        self._noted: deque[bytes] = deque()
        self._taken = 0

    def note(self, guesses: bytes) -> None:
        """To be written before the next events."""
        self._noted.append(guesses)

    def take(self, seq: int) -> list[tuple[int, int, bytes]]:
        """What was noted, as a row of the table of guesses; none where there is nothing."""
        self._taken = len(self._noted)
        if not self._taken:
            return []
        body = _LINE.join(self._noted[at] for at in range(self._taken))
        return [(seq, checksum(seq, body), body)]

    def written(self) -> None:
        """What was taken last is on the disk, or in what was learnt."""
        for _ in range(self._taken):
            self._noted.popleft()
        self._taken = 0

    def teach(self, pupil: Pupil, world: World, seq: int, batches: Iterable[tuple[int, list[Event]]]) -> None:
        """Fold `batches` into `world`, which is a snapshot after batch `seq`, and have `pupil` follow it."""
        kept = self._whole("SELECT seq, crc, body FROM learnt WHERE seq = ?", seq)
        if not pupil.recall(kept.get(seq), world) or (seq and self._is_broken(seq, kept)):
            self._say("what was learnt of run times and starts cannot be read; it is learnt anew")
        guesses = self._whole("SELECT seq, crc, body FROM guesses WHERE seq > ?", seq)
        for at, events in batches:
            for line in guesses.get(at, b"").split(_LINE):
                if line:
                    pupil.hear(line)
            world.apply_all(events)
            pupil.see(events, world)

    def _is_broken(self, seq: int, kept: dict[int, bytes]) -> bool:
        return not kept and bool(self._read("SELECT seq FROM learnt WHERE seq = ?", (seq,)))

    def _whole(self, query: str, seq: int) -> dict[int, bytes]:
        rows = self._read(query, (seq,))
        return {at: body for at, crc, body in rows if is_whole(at, crc, body)}
