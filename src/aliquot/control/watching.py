"""Looks at the cards again and again, and brings about what follows: verdicts are `core.health`'s.

Who uses more memory than he was granted for longer than is tolerated is ended, and nobody else. What foreign
processes take is not offered; broken cards take no new work. Where a look fails, on one card or on all, what
was seen last counts for a while and is then unknown: nobody is ended for what was not seen just now, and what
is offered is the ledger's alone once it is unknown.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from aliquot.control.card_views import Excess
from aliquot.core.errors import DriverError
from aliquot.core.events import CardsCrowded, CardsFaulty, Event
from aliquot.core.health import (
    FATAL_XIDS,
    LOST,
    Fault,
    Held,
    Over,
    Reading,
    close_exclusive,
    find_faults,
    find_over,
    find_taken,
    still_over,
)
from aliquot.core.ids import CardId, JobId, NodeId
from aliquot.core.records import Frozen, NodeRecord

REASON: Final = "MemoryLimit"
"""Why a job was ended that used more memory of a card than it was granted."""


class Pace(NamedTuple):
    """How often to look, for how long a look counts, and how long an excess is tolerated; milliseconds."""

    interval_ms: int = 2_000
    stale_ms: int = 10_000
    tolerance_ms: int = 10_000


class Eyes(Protocol):
    """What can be known of this machine's cards. Used by one thread."""

    def look(self, at: int) -> Sequence[Reading]:
        """Every card now, its processes with their jobs. Raises DriverError."""
        ...

    def listen(self, timeout_ms: int) -> Sequence[tuple[CardId, int | None]]:
        """Critical errors (Xids, None: it stopped answering) since the last call; waits for one until then.

        Raises DriverError, at once.
        """
        ...

    def unusable(self) -> Mapping[CardId, Fault]:
        """Cards that nobody may use as they are set now, and why."""
        ...

    def exclusive(self) -> Sequence[CardId]:
        """Cards that let in one process only."""
        ...


class Watch:
    """A thread that looks. `tell` hands on events, `end` ends an attempt of a job for a reason."""

    def __init__(
        self,
        eyes: Eyes,
        node: NodeId,
        frozen: Callable[[], Frozen],
        now: Callable[[], int],
        tell: Callable[[Event], object],
        end: Callable[[JobId, int, str], object],
        pace: Pace = Pace(),  # noqa: B008  # a value
        say: Callable[[str], object] = lambda text: None,
    ) -> None:
        self._eyes, self._node, self._frozen, self._now = eyes, node, frozen, now
        self._tell, self._end, self.pace, self._say = tell, end, pace, say
        self._lost: set[CardId] = set()
        self._since: Mapping[tuple[JobId, CardId], int] = {}
        self._over: tuple[Over, ...] = ()
        self._xids: dict[CardId, frozenset[int]] = {}
        self._seen: tuple[int, tuple[Reading, ...]] = (0, ())
        self._faults: Mapping[CardId, Fault] = {}
        self._known: dict[CardId, tuple[int, Reading]] = {}  # the last of each card that told its processes
        self._ended: set[tuple[JobId, int]] = set()
        self._stumbled: set[str] = set()
        self._stop, self._hurry = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="aliquot-watch", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, and wait for it; but not for a driver that does not answer."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(_LEAVE_S)

    def readings(self) -> dict[CardId, Reading]:
        """The last look, by card; empty where it is too long ago to count."""
        at, readings = self._seen
        return {} if self._now() - at > self.pace.stale_ms else {one.card: one for one in readings}

    def faults(self) -> Mapping[CardId, Fault]:
        """Why cards take no work, as of the last look that saw any."""
        return self._faults

    def excesses(self) -> dict[JobId, tuple[Excess, ...]]:
        """Who uses more memory of which cards than he was granted, as of a look that counts still."""
        at, since, wait = self._seen[0], self._since, self.pace.tolerance_ms
        found: dict[JobId, tuple[Excess, ...]] = {}
        for one in self._over if self._now() - at <= self.pace.stale_ms else ():
            began = since.get((one.job, one.card), at)
            excess = Excess(one.card, one.used_mib, one.granted_mib, began, began + wait)
            found[one.job] = (*found.get(one.job, ()), excess)
        return found

    def is_out(self, card: CardId) -> bool:
        """Whether a card takes no work, for whatever it has."""
        is_faulty = any(card in record.faulty for record in self._frozen().nodes.values())
        return is_faulty or card in self._faults or bool(self._xids.get(card, frozenset()) & FATAL_XIDS)

    def pardon(self, card: CardId) -> Fault | None:
        """Somebody says that a card is well again: what it did before counts no more; from any thread.

        What keeps it out all the same, if anything.
        """
        fault = self._faults.get(card)
        known = self._xids.pop(card, frozenset()) & FATAL_XIDS
        if known:
            self._say(f"{card} takes work again after Xid {_listed(known)}: somebody says that it is well")
        self._hurry.set()
        return fault if fault is not None and fault.xid is None else None

    def look(self) -> None:
        """One look and what follows."""
        world = self._frozen()
        record = world.nodes.get(self._node)
        if record is None:
            return
        now = self._now()
        held = held_of(world, self._node)
        try:
            readings = tuple(self._eyes.look(now))
        except DriverError:
            self._offer(record, [Reading(card.uuid) for card in record.node.cards], held, now)
            self._since, self._over = {}, ()
            return
        self._seen = (now, readings)
        self._note_resets(readings)
        there = {card.uuid for card in record.node.cards}
        faults = find_faults(readings, self._xids, self._eyes.unusable())
        self._tell_faults(record, {card: fault for card, fault in faults.items() if card in there})
        self._offer(record, readings, held, now)
        self._end_over(world, find_over(readings, held), now)

    def _tell_faults(self, record: NodeRecord, faults: Mapping[CardId, Fault]) -> None:
        """Record which cards take no work, and say of each what is new; Xids are said as they are heard."""
        before, self._faults = self._faults, faults
        if faults.keys() != record.faulty:
            self._tell(CardsFaulty(0, self._node, tuple(faults)))
        for at, card in enumerate(one.uuid for one in record.node.cards):
            fault, was = faults.get(card), before.get(card)
            name = f"card {at} ({card}) of {self._node}"
            if fault is not None and fault != was and fault.xid is None:
                self._say(f"{name} takes no work: {fault.text}")
            elif fault is None and was is not None and was != LOST and was.xid is None:
                self._say(f"{name} takes work again")

    def _offer(self, record: NodeRecord, seen: Sequence[Reading], held: Sequence[Held], now: int) -> None:
        """Tell what of each card is taken beyond its grants, where that is another amount than before."""
        readings = [self._recall(reading, now) for reading in seen]
        full = {card.uuid: card.model.usable_mib for card in record.node.cards}
        taken = close_exclusive(
            find_taken(readings, held, full), self._eyes.exclusive(), readings, held, full
        )
        if tuple(taken) != record.crowd:
            self._tell(CardsCrowded(0, self._node, tuple((one[0], one[1], one[2]) for one in taken)))

    def _recall(self, reading: Reading, now: int) -> Reading:
        """A reading, or where it does not tell who is on the card, the last that did, while it counts."""
        if reading.processes is not None or reading.lost:
            self._known[reading.card] = (now, reading)
        at, known = self._known.get(reading.card, (now, reading))
        return known if now - at <= self.pace.stale_ms else reading

    def _end_over(self, world: Frozen, over: Sequence[Over], now: int) -> None:
        self._since, due = still_over(self._since, over, now, self.pace.tolerance_ms)
        self._over = tuple(over)
        for one in due:
            record = world.jobs.get(one.job)
            if record is not None and (one.job, record.attempt) not in self._ended:
                self._ended.add((one.job, record.attempt))
                self._end(one.job, record.attempt, REASON)
        self._ended = {key for key in self._ended if key[0] in world.jobs}

    def _note_resets(self, readings: Sequence[Reading]) -> None:
        """A card that was lost and answers again has been reset: it begins anew."""
        lost = {reading.card for reading in readings if reading.lost}
        for card in sorted(self._lost - lost):
            known = self._xids.pop(card, frozenset()) & FATAL_XIDS
            after = f" after Xid {_listed(known)}" if known else ""
            self._say(f"{card} was lost and answers again{after}: it counts as reset and takes work")
        self._lost = lost

    def _run(self) -> None:
        while not self._stop.is_set():
            self._hurry.clear()
            try:
                self.look()
            except Exception as error:  # whatever it is, this look must not be the last
                self._stumble(error)
            end = self._now() + self.pace.interval_ms
            while not self._stop.is_set() and not self._hurry.is_set() and (left := end - self._now()) > 0:
                if self._hear(min(left, _PATIENCE_MS)):
                    break

    def _stumble(self, error: Exception) -> None:
        """A mistake of ours, or an answer that no driver should give; said once for each kind."""
        what = f"{type(error).__name__}: {error}"
        if what not in self._stumbled:
            self._stumbled.add(what)
            self._say(f"a look at the cards failed ({what}); they are looked at again, and jobs go on")

    def _hear(self, timeout_ms: int) -> bool:
        """Listen; True where something was heard that wants a look at once."""
        try:
            faults = self._eyes.listen(timeout_ms)
        except DriverError:
            self._stop.wait(timeout_ms / 1000)
            return False
        for card, xid in faults:
            if xid is not None:
                known = self._xids.get(card, frozenset())
                self._xids[card] = known | {xid}
                if xid in FATAL_XIDS - known:
                    self._say(
                        f"{card} had Xid {xid} and takes no new work until it is reset, or until"
                        f" 'aliquot undrain {card}' says that it is well"
                    )
        return bool(faults)


_PATIENCE_MS: Final = 250  # how long `stop` may have to wait, where the driver answers
_LEAVE_S: Final = 2.0


def _listed(xids: frozenset[int]) -> str:
    return ", ".join(map(str, sorted(xids)))


def held_of(world: Frozen, node: NodeId) -> list[Held]:
    """What each job holds of each card of `node`."""
    return [
        Held(job, card, place.vector.memory, place.vector.compute, place.whole)
        for job, grants in world.grants.items()
        for place in (grant.placement for grant in grants)
        if place.node == node
        for card in place.cards
    ]
