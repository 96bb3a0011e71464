"""What a machine's inventory says, as values: cards, slices, processes, notices, and whether it could look.

Shared by the real and the simulated inventory. None is "not reported": never 0, never "none". A detection is
one of three things, so "could not look" can never be taken for "no cards".
"""

from __future__ import annotations

from enum import Enum
from typing import Protocol

import msgspec

from aliquot.core.ids import CardId
from aliquot.core.inventory import CardModel, Node


class ComputeMode(Enum):
    """Who may use a card. The values are the driver's."""

    DEFAULT = 0
    EXCLUSIVE_THREAD = 1  # drivers of long ago; counts as exclusive
    PROHIBITED = 2  # no CUDA at all: no capacity
    EXCLUSIVE_PROCESS = 3  # one process, unless MPS serves the card


class ProcessKind(Enum):
    """What a process does on a card."""

    COMPUTE = "compute"
    GRAPHICS = "graphics"
    MPS = "mps"  # a client of the MPS server


class CardProcess(msgspec.Struct, frozen=True):
    """A process on a card. `gi`, `ci` name the slice it runs in, None on a whole card."""

    pid: int
    kind: ProcessKind
    memory_mib: int | None
    gi: int | None = None
    ci: int | None = None
    sm_percent: int | None = None


class MigDevice(msgspec.Struct, frozen=True):
    """A slice that CUDA can use. Identity is the UUID: its position changes when another slice is made."""

    uuid: str
    gi: int
    ci: int
    profile: str | None
    memory_mib: int | None
    sm_count: int | None
    compute_slices: int | None


class GpuInstance(msgspec.Struct, frozen=True):
    """A cut of a card, with or without compute instances: it takes `size` memory units from `start`."""

    id: int
    profile: int  # the driver's profile id: 19, 14, 9, ...
    start: int
    size: int


class MigState(msgspec.Struct, frozen=True):
    """MIG mode of a card that has it. `pending` differs while a reset is due; `instances` None: unknown."""

    enabled: bool
    pending: bool
    devices: tuple[MigDevice, ...] = ()
    instances: tuple[GpuInstance, ...] | None = ()


class CardReading(msgspec.Struct, frozen=True):
    """One card as read. `memory_mib` is the total; None where it has no memory of its own (`unified`).

    `mig` None is a card that cannot be cut, where `mig_known`; `processes` None is unknown, () is nobody.
    """

    index: int
    uuid: CardId
    name: str
    model: CardModel
    pci: str
    memory_mib: int | None
    reserved_mib: int | None = None
    unified: bool = False
    numa: int | None = None
    minor: int | None = None
    serial: str | None = None
    capability: tuple[int, int] | None = None
    compute_mode: ComputeMode | None = None
    persistence: bool | None = None
    mig: MigState | None = None
    mig_known: bool = True
    processes: tuple[CardProcess, ...] | None = None


class NoticeKind(Enum):
    """What a notice is about."""

    CARD_UNREADABLE = "card-unreadable"  # counted by the driver, but its identity or memory cannot be read
    CARD_MISSING = "card-missing"  # on the bus, not with the driver
    CARDS_LEFT_OUT = "cards-left-out"  # more than one node can hold
    FACT_UNKNOWN = "fact-unknown"  # one fact of a card
    MODEL_UNKNOWN = "model-unknown"
    UNIFIED_MEMORY = "unified-memory"
    RESERVED_UNKNOWN = "reserved-unknown"
    NOT_USABLE = "not-usable"  # prohibited, or cut into nothing
    RESET_DUE = "reset-due"
    WIRING_UNKNOWN = "wiring-unknown"
    LINKS_UNEVEN = "links-uneven"
    FABRIC = "fabric"
    NIC_UNREADABLE = "nic-unreadable"
    HOST_UNKNOWN = "host-unknown"


class Notice(msgspec.Struct, frozen=True):
    """One sentence for a person, with a kind for a program; `card` is a UUID or bus address, "" for none."""

    kind: NoticeKind
    text: str
    card: str = ""


class Found(msgspec.Struct, frozen=True):
    """The machine and its cards. `cards` are in the order of `node.cards`; `lost` counts those unreadable."""

    node: Node
    cards: tuple[CardReading, ...]
    notices: tuple[Notice, ...] = ()
    driver: str = ""
    cuda: str = ""
    lost: int = 0

    @property
    def not_whole(self) -> tuple[CardId, ...]:
        """Cards that no job may get as a whole now: prohibited, cut or about to be, or nobody knows."""
        return tuple(card.uuid for card in self.cards if not usable_whole(card))


def usable_whole(card: CardReading) -> bool:
    """Whether a CUDA program may be given the whole card."""
    if card.compute_mode is ComputeMode.PROHIBITED or not card.mig_known:
        return False
    return card.mig is None or not (card.mig.enabled or card.mig.pending)


class Absent(msgspec.Struct, frozen=True):
    """There is neither a driver nor a card: a machine without GPUs, known to be one."""

    reason: str


class Failed(msgspec.Struct, frozen=True):
    """Nobody knows what is there. Not the same as no cards; what was known before stays in force."""

    reason: str
    retry_after_ms: int | None = None  # None: trying again will not help


Detection = Found | Absent | Failed


class CardSample(msgspec.Struct, frozen=True):
    """One card at one moment. Percents as the driver says; None is not reported. `lost`: no answer."""

    uuid: CardId
    used_mib: int | None = None  # without what the driver keeps for itself
    gpu_percent: int | None = None
    memory_percent: int | None = None
    processes: tuple[CardProcess, ...] | None = None
    lost: bool = False


class Sample(msgspec.Struct, frozen=True):
    """All cards that an inventory knows, looked at once; `at` is the caller's time in milliseconds."""

    at: int
    cards: tuple[CardSample, ...]


class CardFault(msgspec.Struct, frozen=True):
    """An Xid of a card, or of one slice of it. `xid` None: the card stopped answering without saying why."""

    card: CardId
    xid: int | None
    gi: int | None = None
    ci: int | None = None


class Watch(Protocol):
    """A listener for critical errors. Each has every event that came after it was made."""

    @property
    def unwatched(self) -> tuple[CardId, ...]:
        """Cards that cannot be listened to."""
        ...

    def wait(self, timeout_ms: int) -> tuple[CardFault, ...]:
        """Faults since the last call, at once if any, else within `timeout_ms`; () if none came."""
        ...

    def close(self) -> None:
        """Stop listening."""
        ...


class Inventory(Protocol):
    """What a kind of cards offers the engine: look once, then watch."""

    def detect(self) -> Detection:
        """What is there now. Never raises for a machine in trouble: that is a Failed."""
        ...

    def sample(self, at: int) -> Sample:
        """How the cards of the last detection are used now. Raises DriverError where nothing answers."""
        ...

    def set_compute_mode(self, card: CardId, expected: ComputeMode, wanted: ComputeMode) -> None:
        """Change who may use a card, if it is as expected; already as wanted is fine. Raises DriverError."""
        ...

    def watch(self) -> Watch:
        """Listen to the cards of the last detection from now on. Raises DriverError."""
        ...

    def close(self) -> None:
        """Let go of the driver; further calls open it again."""
        ...
