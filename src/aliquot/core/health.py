"""What was measured of cards, and what follows: who is over his grant, what is taken by nobody's grant, what
is broken. Pure verdicts; whoever samples and whoever acts on them are elsewhere.

None is unknown. Of what is unknown nothing follows: nobody is ended for it, and the ledger alone decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from aliquot.core.ids import CardId, JobId
from aliquot.core.units import FULL

FATAL_XIDS: Final = frozenset(
    {46, 48, 62, 64, 74, 79, 95, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158, 166, 167, 169, 171, 172}
)
"""Critical errors after which the card must be reset or its machine rebooted. The vendor's table lists many
more that are a program's own fault (13, 31, 43, ...) or need nothing: those leave the card in use."""

STEP_MIB: Final = 256  # what is taken is told in such steps, so that a breath of a process is no news
STEP_MILLI: Final = 50


class Process(msgspec.Struct, frozen=True):
    """A process on a card. `job` None: it belongs to nothing that was granted here."""

    pid: int
    memory_mib: int | None = None
    sm_percent: int | None = None
    job: JobId | None = None


class Reading(msgspec.Struct, frozen=True):
    """One card at one moment. `processes` None is unknown, () is nobody; `lost`: it does not answer.

    `used_mib`: in use on the whole card, without what the driver keeps for itself.
    """

    card: CardId
    used_mib: int | None = None
    busy_percent: int | None = None
    processes: tuple[Process, ...] | None = None
    lost: bool = False


class Fault(NamedTuple):
    """Why a card takes no work: a word for tables, such as `lost` or `xid 79`, and what a sentence says.

    `xid`: the error that is the reason; None: another reason.
    """

    word: str
    text: str
    xid: int | None = None


LOST: Final = Fault("lost", "it does not answer")


class Held(NamedTuple):
    """What one job holds of one card."""

    job: JobId
    card: CardId
    memory_mib: int
    compute_milli: int
    whole: bool


class Over(NamedTuple):
    """A job's processes on `card` use more memory than all it holds there."""

    job: JobId
    card: CardId
    used_mib: int
    granted_mib: int


class Taken(NamedTuple):
    """What is taken of a card beyond all grants: by foreign processes, and by jobs above what they hold."""

    card: CardId
    compute_milli: int
    memory_mib: int


def find_over(readings: Iterable[Reading], held: Iterable[Held]) -> list[Over]:
    """Jobs above their memory now, in order. Who holds a whole card is never over it."""
    granted = _granted(held)
    found = []
    for reading in readings:
        for job, used in sorted(_used_by_job(reading).items()):
            hold = granted.get((job, reading.card))
            if hold is not None and not hold.whole and used > hold.memory_mib:
                found.append(Over(job, reading.card, used, hold.memory_mib))
    return found


def still_over(
    since: Mapping[tuple[JobId, CardId], int], over: Sequence[Over], now: int, tolerance_ms: int
) -> tuple[dict[tuple[JobId, CardId], int], list[Over]]:
    """Since when each job is over, and those that have been for longer than the tolerance.

    Who came down in between begins anew: with a tolerance of 5,000 ms a job seen over at 0, 2,000, 4,000 and
    6,000 is one of them at 6,000; one that was below at 4,000 is not.
    """
    kept = {(one.job, one.card): since.get((one.job, one.card), now) for one in over}
    return kept, [one for one in over if now - kept[one.job, one.card] > tolerance_ms]


def find_taken(
    readings: Iterable[Reading], held: Iterable[Held], full_mib: Mapping[CardId, int]
) -> list[Taken]:
    """What is taken beyond the grants of each card, rounded up; only cards of which something is.

    Offered then is the capacity less, for each job, the larger of what it holds and what it uses, less what
    foreign processes use. Memory in use that no process accounts for counts as foreign. A card that somebody
    foreign is on offers no whole card any more, however little he uses.
    """
    granted = _granted(held)
    found = []
    for reading in readings:
        if reading.lost or reading.processes is None:
            continue
        own = _used_by_job(reading)
        foreign = [process for process in reading.processes if _hold(granted, process, reading) is None]
        memory = sum(process.memory_mib or 0 for process in foreign)
        # what jobs use above their grants
        for job, used in own.items():
            hold = granted.get((job, reading.card))
            memory += 0 if hold is None else max(0, used - hold.memory_mib)
        memory = max(memory, _unaccounted(reading, own) if foreign or not own else memory)
        compute = sum(process.sm_percent or 0 for process in foreign) * 10
        if not foreign and memory < STEP_MIB:
            continue
        taken_mib = min(-(-memory // STEP_MIB) * STEP_MIB, full_mib.get(reading.card, memory))
        taken_milli = min(-(-max(compute, 1) // STEP_MILLI) * STEP_MILLI, FULL) if foreign else 0
        found.append(Taken(reading.card, taken_milli, taken_mib))
    return found


def close_exclusive(
    taken: Iterable[Taken],
    exclusive: Iterable[CardId],
    readings: Iterable[Reading],
    held: Iterable[Held],
    full_mib: Mapping[CardId, int],
) -> list[Taken]:
    """The same, but of a card that lets in one process only, nothing is left as soon as somebody is on it."""
    in_use = {hold.card for hold in held} | {reading.card for reading in readings if reading.processes}
    closed = sorted(set(exclusive) & in_use)
    rest = [one for one in taken if one.card not in closed]
    return sorted([*rest, *(Taken(card, FULL, full_mib[card]) for card in closed if card in full_mib)])


def find_faults(
    readings: Iterable[Reading], xids: Mapping[CardId, frozenset[int]], unusable: Mapping[CardId, Fault]
) -> dict[CardId, Fault]:
    """Cards that may not be used: lost, with a fatal error since their last reset, or as they are set.

    Sorted by card; of several faults of one card the first of these.
    """
    found = dict(unusable)
    for card, seen in xids.items():
        if fatal := sorted(seen & FATAL_XIDS):
            numbers = ", ".join(map(str, fatal))
            found[card] = Fault(f"xid {fatal[0]}", f"it had Xid {numbers} and was not reset since", fatal[0])
    found |= {reading.card: LOST for reading in readings if reading.lost}
    return dict(sorted(found.items()))


def _granted(held: Iterable[Held]) -> dict[tuple[JobId, CardId], Held]:
    """What each job holds of each card in all: several members may share one."""
    total: dict[tuple[JobId, CardId], Held] = {}
    for hold in held:
        key = (hold.job, hold.card)
        known = total.get(key)
        total[key] = (
            hold
            if known is None
            else Held(
                hold.job,
                hold.card,
                hold.memory_mib + known.memory_mib,
                hold.compute_milli + known.compute_milli,
                hold.whole or known.whole,
            )
        )
    return total


def _hold(granted: Mapping[tuple[JobId, CardId], Held], process: Process, reading: Reading) -> Held | None:
    return None if process.job is None else granted.get((process.job, reading.card))


def _used_by_job(reading: Reading) -> dict[JobId, int]:
    """Memory of each job's processes, of those whose memory is known."""
    used: dict[JobId, int] = {}
    for process in reading.processes or ():
        if process.job is not None and process.memory_mib is not None:
            used[process.job] = used.get(process.job, 0) + process.memory_mib
    return used


def _unaccounted(reading: Reading, own: Mapping[JobId, int]) -> int:
    """Memory in use that is not our jobs'; 0 where the card does not say, or one of ours is unknown."""
    ours_known = all(
        process.memory_mib is not None for process in reading.processes or () if process.job is not None
    )
    if reading.used_mib is None or not ours_known:
        return 0
    return max(0, reading.used_mib - sum(own.values()))
