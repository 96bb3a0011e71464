"""Cards as people see them: what is granted of each, what is free, and who else is on it.

Memory is MiB, compute thousandths of a card, times are milliseconds of the Unix epoch. None is unknown.
"""

from __future__ import annotations

import msgspec


class CardUse(msgspec.Struct, frozen=True):
    """One job on a card."""

    job: str
    user: str
    compute_milli: int
    memory_mib: int
    used_mib: int | None = None  # by its processes, as last seen
    over_since_ms: int | None = None  # since when that is more than it was granted, while it is tolerated


class Excess(msgspec.Struct, frozen=True):
    """A job uses more memory of a card than it was granted. If it still does at `until_ms`, it is ended."""

    card: str
    used_mib: int
    granted_mib: int
    since_ms: int
    until_ms: int


class Foreigner(msgspec.Struct, frozen=True):
    """A process on a card that belongs to no job, or to one that holds nothing of that card: `job`."""

    pid: int
    user: str = ""
    memory_mib: int | None = None
    job: str = ""


class TakenCard(msgspec.Struct, frozen=True):
    """What of a card is not offered though nobody was granted it, and who has it as far as that is known.

    `fault`: why it takes no work at all, such as `it does not answer`; "" where it works.
    `foreign` are processes of no job that holds some of it; without any, jobs use more than they were
    granted, or the card lets in one process only and has one.
    """

    node: str
    index: int
    uuid: str
    memory_mib: int
    compute_milli: int
    foreign: tuple[Foreigner, ...] = ()
    fault: str = ""


class CardView(msgspec.Struct, frozen=True):
    """One card, what is granted of it and how it is used. `state`: ok, drained, faulty, away or gone.

    `fault`: of one that is faulty, why in a word: prohibited, mig, mig unknown, lost or such as xid 79; ""
    where nobody has looked yet. One that is gone is granted and not in its node any more: it has no index,
    and its size is unknown. What is free is what is offered: not granted, nor taken by others, and nothing
    of a card that takes no work. `used_mib` and what follows are as last
    seen, None where that is too long ago or was not told.
    """

    node: str
    index: int | None
    uuid: str
    model: str
    pci: str
    numa: int | None
    memory_mib: int | None
    state: str
    free_compute_milli: int
    free_memory_mib: int
    jobs: tuple[CardUse, ...] = ()
    used_mib: int | None = None
    busy_percent: int | None = None
    foreign: tuple[Foreigner, ...] | None = None
    fault: str = ""
