"""The machine's NVIDIA cards: detects them, keeps their handles, samples them.

Finding nothing has three shapes and they are kept apart: no card and no driver (Absent), cards that cannot be
seen (Failed), and some cards of which others are lost (Found, with notices). `root` is where the kernel's
tree is looked for, "/" but in tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aliquot.control.words import counted
from aliquot.core.errors import DriverError, PermanentError, TemporaryError
from aliquot.core.ids import CardId, NodeId
from aliquot.core.inventory import CardModel, models_by_name
from aliquot.core.topology.wiring import MAX_CARDS
from aliquot.drivers.nvml.answers import NoDriverError
from aliquot.drivers.nvml.assembly import build_node, find_missing, nothing_there, read_fabric, seat_on_host
from aliquot.drivers.nvml.binding import Nvml
from aliquot.drivers.nvml.cards import CardSource, read_card
from aliquot.drivers.nvml.devices import device_path, find_cards
from aliquot.drivers.nvml.host import Host, read_host
from aliquot.drivers.nvml.modes import change_compute_mode
from aliquot.drivers.nvml.nics import Seat, read_nics
from aliquot.drivers.nvml.readings import (
    CardReading,
    ComputeMode,
    Detection,
    Failed,
    Found,
    Notice,
    NoticeKind,
    Sample,
)
from aliquot.drivers.nvml.telemetry import sample_cards
from aliquot.drivers.nvml.watch import FaultWatch
from aliquot.drivers.nvml.wiring import read_wiring


class NvmlInventory:
    """Implements `readings.Inventory` over the installed driver. `models` are the catalogue's, by name."""

    def __init__(self, node: NodeId, models: Mapping[str, CardModel], root: Path = Path("/")) -> None:
        self._node, self._root = node, root
        self._models = models_by_name(models)
        self._nvml: Nvml | None = None
        self._handles: dict[CardId, Any] = {}

    def detect(self) -> Detection:
        """What is there now."""
        on_bus = find_cards(self._root)
        try:
            nvml = self._open()
            count = int(nvml.call("nvmlDeviceGetCount"))
            if count == 0:
                return nothing_there(on_bus, "the driver is loaded and shows none")
            return self._read(nvml, count, on_bus)
        except NoDriverError as error:
            self.close()  # a driver loaded later is opened anew
            return nothing_there(on_bus, str(error))
        except TemporaryError as error:
            return Failed(str(error), error.retry_after_ms)
        except DriverError as error:
            return Failed(str(error))

    def sample(self, at: int) -> Sample:
        """How the cards of the last detection are used. Raises DriverError if nothing can be opened."""
        return sample_cards(self._open(), self._handles, at)

    def set_compute_mode(self, card: CardId, expected: ComputeMode, wanted: ComputeMode) -> None:
        """Change who may use a card. Raises DriverError, and PermanentError for a card that was not found."""
        change_compute_mode(self._open(), self._handle(card), card, expected, wanted)

    def watch(self) -> FaultWatch:
        """Listen for critical errors of the cards of the last detection. Raises DriverError."""
        return FaultWatch(self._open(), self._handles)

    def close(self) -> None:
        """Let go of the driver."""
        if self._nvml is not None:
            self._nvml.close()
            self._nvml = None
        self._handles = {}

    def _open(self) -> Nvml:
        if self._nvml is None:
            self._nvml = Nvml()
        return self._nvml

    def _handle(self, card: CardId) -> Any:
        if card not in self._handles:
            raise PermanentError(f"{card}: not among the cards that were found")
        return self._handles[card]

    def _read(self, nvml: Nvml, count: int, on_bus: tuple[str, ...]) -> Detection:
        host = read_host(self._root)
        notices: list[Notice] = []
        cards, handles = self._read_cards(nvml, count, host, notices)
        notices += find_missing(on_bus, cards, count)
        if not cards:
            reasons = "; ".join(notice.text for notice in notices)
            return Failed(f"the driver counts {counted(count, 'card')}, of which none can be read: {reasons}")
        lost = count - len(cards)
        if len(cards) > MAX_CARDS:
            text = (
                f"{len(cards)} cards, a node holds {MAX_CARDS}: those after card {MAX_CARDS - 1} are left out"
            )
            notices.append(Notice(NoticeKind.CARDS_LEFT_OUT, text))
            cards, handles = cards[:MAX_CARDS], handles[:MAX_CARDS]
        self._handles = {card.uuid: handle for card, handle in zip(cards, handles, strict=True)}
        nics = read_nics(
            self._root, tuple(Seat(device_path(self._root, card.pci), card.numa) for card in cards)
        )
        wiring, doubts = read_wiring(nvml, handles, cards, nics)
        notices += [*doubts, *read_fabric(nvml, handles, cards)]
        return Found(
            node=build_node(self._node, host, cards, wiring),
            cards=tuple(cards),
            notices=tuple(notices),
            driver=str(nvml.ask("nvmlSystemGetDriverVersion") or ""),
            cuda=_cuda_version(nvml.ask("nvmlSystemGetCudaDriverVersion")),
            lost=lost,
        )

    def _read_cards(
        self, nvml: Nvml, count: int, host: Host, notices: list[Notice]
    ) -> tuple[list[CardReading], list[Any]]:
        """The readable cards and their handles; a notice for each of the others."""
        source = CardSource(nvml, self._root, self._models, host.host_mib)
        cards, handles = [], []
        for index in range(count):
            try:
                handle = nvml.call("nvmlDeviceGetHandleByIndex", index, card=f"card {index}")
                card, doubts = read_card(source, handle, index)
            except DriverError as error:
                notices.append(
                    Notice(NoticeKind.CARD_UNREADABLE, f"card {index} is left out: {error}", str(index))
                )
                continue
            cards.append(seat_on_host(card, host, doubts))
            handles.append(handle)
            notices += doubts
        return cards, handles


def _cuda_version(number: Any | None) -> str:
    """`13000` is 13.0."""
    return "" if number is None else f"{int(number) // 1000}.{int(number) % 1000 // 10}"
