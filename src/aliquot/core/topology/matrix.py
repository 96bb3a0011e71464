"""Reads what `nvidia-smi topo -m` prints, in all its forms, into a `Wiring` and what must be known beside it.

Every pair of cards is printed twice; both must agree, and one replaces the other where a row is lost. What
cannot be read stays unknown and is said in a caveat, or the text is refused; nothing is guessed. Two cuts
cannot be seen: in the last number of a CPU list or NUMA node that ends a row and that no other card shares.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from aliquot.core.errors import SpecError
from aliquot.core.topology.affinity import Affinity, read_affinities
from aliquot.core.topology.caveats import DAMAGE, Caveat, CaveatKind, wiring_caveats
from aliquot.core.topology.links import NVLINK_MBS, Link
from aliquot.core.topology.sheet import Row, Sheet, read_sheet
from aliquot.core.topology.wiring import MAX_CARDS, Nic, Wiring, assemble

_OLD_SYS = "SOC"
_LEVELS = {
    "X": Link.SELF,
    "PIX": Link.PIX,
    "PXB": Link.PXB,
    "PHB": Link.PHB,
    "NODE": Link.NODE,
    "SYS": Link.SYS,
    _OLD_SYS: Link.SYS,
}


@dataclass(frozen=True)
class ParsedTopology:
    """A machine as understood from its printed matrix. `cards[i]` names card i of the wiring."""

    wiring: Wiring
    cards: tuple[str, ...]
    affinities: tuple[Affinity, ...]  # per card, as printed and as read
    rows_missing: tuple[str, ...]  # devices with a column but no row
    rows_damaged: tuple[str, ...]  # devices whose row could not be trusted
    asymmetric: int  # pairs of devices printed differently both ways; they are UNKNOWN in the wiring
    sys_word: str  # "SYS", or "SOC" from an old driver
    caveats: tuple[Caveat, ...]

    @property
    def damaged(self) -> bool:
        """Whether the text was incomplete; what it left open is unknown in the wiring."""
        return any(caveat.kind in DAMAGE for caveat in self.caveats)


def parse_matrix(
    text: str, *, gen: int = 4, link_mbs: int = NVLINK_MBS, socket_mbs: int = 0
) -> ParsedTopology:
    """The machine behind the printed matrix. PCIe generation and link speeds are not printed: see `assemble`.

    Raises SpecError where there is no matrix, columns and rows do not match, or no card has a readable row.
    """
    sheet = read_sheet(text)
    cards = tuple(name for name in sheet.columns if name.startswith("GPU"))
    _check_cards(cards, sheet)
    pairs = _PairTable(sheet)
    n = len(cards)
    cells = [[pairs.between(a, b) for b in cards] for a in cards]
    affinities, doubts = read_affinities(cards, sheet)
    nvlink_known, hidden = _read_nvlink(sheet, n, cells)
    wiring = assemble(
        n,
        tuple(_level(cell) for row in cells for cell in row),
        tuple(_links(cell) for row in cells for cell in row),
        nvlink_known=nvlink_known,
        numa=tuple(affinity.numa for affinity in affinities),
        cpus=tuple(affinity.cpus for affinity in affinities),
        nics=_read_nics(sheet, cards, pairs.between),
        gen=gen,
        link_mbs=link_mbs,
        socket_mbs=socket_mbs,
    )
    missing = tuple(name for name in sheet.columns if name not in {row.name for row in sheet.rows})
    return ParsedTopology(
        wiring=wiring,
        cards=cards,
        affinities=affinities,
        rows_missing=missing,
        rows_damaged=tuple(row.name for row in sheet.rows if row.problem),
        asymmetric=len(pairs.disputed),
        sys_word=_OLD_SYS if any(_OLD_SYS in row.cells for row in sheet.rows) else "SYS",
        caveats=(
            *_sheet_caveats(sheet, missing),
            *_pair_caveats(pairs),
            *doubts,
            *hidden,
            *wiring_caveats(wiring, cards),
        ),
    )


class _PairTable:
    """Both printings of every pair, and which of them disagree or are both lost."""

    def __init__(self, sheet: Sheet) -> None:
        self._column = {name: position for position, name in enumerate(sheet.columns)}
        self._rows = {row.name: row for row in sheet.rows}
        self.disputed: dict[tuple[str, str], tuple[str, str]] = {}
        self.lost: set[tuple[str, str]] = set()

    def between(self, a: str, b: str) -> str:
        """The word that joins two devices; "" where it is lost or disputed."""
        if a == b:
            return "X"
        a, b = sorted((a, b), key=self._column.__getitem__)
        there, back = self._printed(a, b), self._printed(b, a)
        if there and back and _LEVELS.get(there, there) != _LEVELS.get(back, back):
            self.disputed[a, b] = (there, back)
            return ""
        if not (there or back):
            self.lost.add((a, b))
        return there or back

    def _printed(self, row: str, column: str) -> str:
        found: Row | None = self._rows.get(row)
        return found.cells[self._column[column]] if found and found.cells else ""


def _check_cards(cards: tuple[str, ...], sheet: Sheet) -> None:
    if len(cards) > MAX_CARDS:
        raise SpecError(
            f"a machine of {len(cards)} cards",
            field="topology",
            value=len(cards),
            hint=f"at most {MAX_CARDS} cards are understood",
        )
    if not any(row.cells for row in sheet.rows if row.name in cards):
        raise SpecError(
            f"the header names {len(cards)} cards, but no row of a card can be read",
            field="topology",
            value=cards[0],
            hint="one row per card, as wide as the header",
        )


def _level(cell: str) -> Link:
    if not cell:
        return Link.UNKNOWN
    return Link.NV if cell.startswith("NV") else _LEVELS[cell]


def _links(cell: str) -> int:
    return int(cell[2:]) if cell.startswith("NV") else 0


def _read_nvlink(sheet: Sheet, n: int, cells: list[list[str]]) -> tuple[bool, list[Caveat]]:
    """Whether a pair without NV cell has no NVLink: only if the form of the output would have shown it.

    The `-mp` form leaves NVLink out of cells and legend alike; without a legend the two forms look the same.
    """
    shown = any(cell.startswith("NV") for row in cells for cell in row)
    if n == 1 or shown or "NV#" in sheet.legend:
        return True, []
    why = "the legend does not list it (as with -mp)" if sheet.legend else "there is no legend to say so"
    text = f"whether there is NVLink is unknown: no cell shows it and {why}"
    return False, [Caveat(CaveatKind.NVLINK_UNKNOWN, text)]


def _read_nics(sheet: Sheet, cards: tuple[str, ...], between: Callable[[str, str], str]) -> tuple[Nic, ...]:
    return tuple(
        Nic(name, sheet.devices.get(name, name), tuple(_level(between(card, name)) for card in cards))
        for name in sheet.columns
        if name not in cards
    )


def _sheet_caveats(sheet: Sheet, missing: tuple[str, ...]) -> list[Caveat]:
    found = []
    if sheet.header_cut:
        found.append(Caveat(CaveatKind.HEADER_CUT, "the header is cut: columns at its end may be missing"))
    if missing:
        text = f"no row for {', '.join(missing)}: read from the rows of the others where they tell"
        found.append(Caveat(CaveatKind.ROW_MISSING, text))
    found += [
        Caveat(CaveatKind.ROW_DAMAGED, f"line {row.line}: the row of {row.name} is left out: {row.problem}")
        for row in sheet.rows
        if row.problem
    ]
    if sheet.ignored:
        lines = ", ".join(str(line) for line in sheet.ignored)
        found.append(Caveat(CaveatKind.LINE_IGNORED, f"line {lines}: not a row of the matrix, left out"))
    return found


def _pair_caveats(pairs: _PairTable) -> list[Caveat]:
    found = [
        Caveat(CaveatKind.PAIR_UNKNOWN, f"{a} and {b}: {there} one way, {back} the other; taken as unknown")
        for (a, b), (there, back) in sorted(pairs.disputed.items())
    ]
    if pairs.lost:
        named = ", ".join(f"{a}-{b}" for a, b in sorted(pairs.lost)[:4])
        more = f" and {len(pairs.lost) - 4} more" if len(pairs.lost) > 4 else ""
        found.append(Caveat(CaveatKind.PAIR_UNKNOWN, f"how {named}{more} are joined could not be read"))
    return found
