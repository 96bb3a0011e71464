"""The `wiring` of a node group: a word, a few numbers, or the matrix that the machine itself printed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, NamedTuple

from aliquot.config.fields import Field, located, read_fields
from aliquot.config.readers import count, one_of, text
from aliquot.config.tree import Item
from aliquot.core.inventory import CardModel
from aliquot.core.topology import wiring as wirings
from aliquot.core.topology.links import MAX_NVLINKS, NVLINK_MBS, PCIE_MBS
from aliquot.core.topology.matrix import parse_matrix
from aliquot.core.topology.wiring import Wiring

KINDS: Final = ["nvswitch", "pcie", "unknown"]
TABLE: Final = {
    "kind": Field(one_of(KINDS)),
    "links": Field(count(1, MAX_NVLINKS)),
    "perSwitch": Field(count(1, wirings.MAX_CARDS), "per_switch"),
    "perSocket": Field(count(1, wirings.MAX_CARDS), "per_socket"),
    "gen": Field(count(min(PCIE_MBS), max(PCIE_MBS))),
    "matrix": Field(text),
    "matrixFile": Field(text, "matrix_file"),
}
# Which numbers a kind has a use for; others beside it are a mistake.
USES: Final = {
    "nvswitch": {"kind", "links", "per_switch", "per_socket", "gen"},
    "pcie": {"kind", "per_switch", "per_socket", "gen"},
    "unknown": {"kind"},
    "matrix": {"matrix", "matrix_file", "gen"},
}


class Board(NamedTuple):
    """What is known of the cards when their wiring is read."""

    cards: tuple[CardModel, ...]
    numa: int  # NUMA nodes, 0: unknown
    nvlinks: tuple[int, int] | None  # the catalogue's (links, MB/s) of the only model


def read_wiring(item: Item, board: Board) -> tuple[Wiring | None, tuple[str, ...]]:
    """The wiring (None: unknown) and remarks about it, from `nvswitch`, a map, or a printed matrix."""
    values = read_fields(item, TABLE) if item.text is None else {"kind": one_of(KINDS)(item)}
    kind = "matrix" if "matrix" in values or "matrix_file" in values else values.get("kind", "")
    if not kind:
        item.fail("does not say how the cards are joined", "kind: nvswitch, pcie or unknown; or matrix: ...")
    stray = [key for key in values if key not in USES[kind]]
    if stray:
        item.fail(f"{_spelled(stray[0])!r} has no meaning beside {kind!r}", "leave it out")
    if kind == "unknown":
        return None, ()
    if kind == "matrix":
        return _from_matrix(item, values, board)
    make = _nvswitch if kind == "nvswitch" else _pcie
    return located(item, lambda: make(item, values, board)), ()


def _nvswitch(item: Item, values: dict[str, Any], board: Board) -> Wiring:
    links, speed = board.nvlinks or (0, NVLINK_MBS)
    links = values.get("links", links)
    if not links:
        item.fail(
            "nobody says how many NVLinks join each pair of cards", "wiring: {kind: nvswitch, links: 12}"
        )
    return wirings.uniform(
        len(board.cards),
        links,
        per_socket=values.get("per_socket", _per_socket(board)),
        per_switch=values.get("per_switch", 0),
        gen=values.get("gen", 4),
        link_mbs=speed,
    )


def _pcie(item: Item, values: dict[str, Any], board: Board) -> Wiring:
    per_socket = values.get("per_socket", _per_socket(board)) or len(board.cards)
    return wirings.pcie(len(board.cards), values.get("per_switch", 1), per_socket, values.get("gen", 4))


def _per_socket(board: Board) -> int:
    """Cards evenly over the NUMA nodes; 0 where these are unknown."""
    return -(-len(board.cards) // board.numa) if board.numa else 0


def _from_matrix(item: Item, values: dict[str, Any], board: Board) -> tuple[Wiring, tuple[str, ...]]:
    if "matrix" in values and "matrix_file" in values:
        item.fail("both a matrix and a file of one", "keep one of matrix and matrixFile")
    source = item.get("matrix") or item.get("matrixFile")
    assert source is not None
    printed = source.scalar() if "matrix" in values else _read_beside(source)
    speed = board.nvlinks[1] if board.nvlinks else NVLINK_MBS
    parsed = located(source, lambda: parse_matrix(printed, gen=values.get("gen", 4), link_mbs=speed))
    if parsed.wiring.n != len(board.cards):
        source.fail(
            f"the matrix has {parsed.wiring.n} cards, the machine {len(board.cards)}",
            "one row for every card",
        )
    return parsed.wiring, tuple(caveat.text for caveat in parsed.caveats)


def _read_beside(source: Item) -> str:
    """The text of a file named relative to the document that names it."""
    file = Path(source.file).parent / source.scalar()
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise source.error(
            f"{source.scalar()!r} cannot be read", "a text file beside this document"
        ) from error


def _spelled(key: str) -> str:
    """The key as documents write it."""
    return next((word for word, field in TABLE.items() if field.into == key), key)
