"""Reads the peer-access matrix (`nvidia-smi topo -p2p r`): which cards may read each other's memory.

Being near is not being allowed: consumer cards sit under one host bridge and still refuse. Only the printed
status decides; an unreadable one is unknown, which blocks nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from aliquot.core.errors import SpecError
from aliquot.core.topology.sheet import read_sheet
from aliquot.core.topology.wiring import MAX_CARDS

MEANING: Final = {
    "X": "itself",
    "OK": "allowed",
    "CNS": "chipset not supported",
    "GNS": "GPU not supported",
    "TNS": "topology not supported",
    "NS": "not supported",
    "DR": "disabled by a driver setting",
    "U": "unknown",
}


@dataclass(frozen=True)
class PeerAccess:
    """`status[a][b]`: the printed word for card a reaching card b, "U" where it could not be read."""

    cards: tuple[str, ...]
    status: tuple[tuple[str, ...], ...]

    def allowed(self, a: int, b: int) -> bool | None:
        """Whether card `a` may reach card `b`; None where nobody knows."""
        word = self.status[a][b]
        return None if word == "U" else word in {"OK", "X"}


def parse_peers(text: str) -> PeerAccess:
    """The printed matrix. Raises SpecError where there is none or no row of it can be read."""
    sheet = read_sheet(text, peers=True)
    rows = {row.name: row.cells for row in sheet.rows if row.cells}
    if not rows or len(sheet.columns) > MAX_CARDS:
        raise SpecError(
            f"a peer-access matrix of {len(sheet.columns)} cards with {len(rows)} readable rows",
            field="topology",
            value=len(rows),
            hint=f"one row per card, at most {MAX_CARDS} cards",
        )
    lost = ("U",) * len(sheet.columns)
    return PeerAccess(sheet.columns, tuple(rows.get(name, lost) for name in sheet.columns))
