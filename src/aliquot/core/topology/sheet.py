"""The printed matrix as it stands: columns, rows of cells, what follows the cells, legends. No conclusions.

The driver separates columns by tabs; copies of its output have lost them, doubled them, or turned them into
spaces, and carry colour codes. White space is therefore never trusted: cells are recognised by their words,
of which none begins another (only `NV1` begins `NV18`; such a cut is caught where pairs are compared), so
words that ran together come apart again in one way only. A row that does not come out exactly is damaged
and gives nothing; a sheet whose columns are in doubt is refused. Nothing is ever shifted.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from aliquot.core.errors import SpecError
from aliquot.core.topology.links import MAX_NVLINKS

LINK_WORDS = ("X", "PIX", "PXB", "PHB", "NODE", "SYS", "SOC")
PEER_WORDS = ("X", "OK", "CNS", "GNS", "TNS", "NS", "DR", "U")
TAIL_COLUMNS = (
    "CPU Affinity",
    "NUMA Affinity",
    "GPU NUMA ID",
)  # always in this order, old drivers print fewer

_COLOUR = re.compile(r"(?:\x1b\[|\x9b)[0-9;:?]*[ -/]*[@-~]|\[\d{1,3}(?:;\d{1,3})*m")
_INVISIBLE = str.maketrans(dict.fromkeys("\ufeff\u200b\x00"))
_LINK_CELL = re.compile(rf"\s*(NV\d{{1,3}}|{'|'.join(LINK_WORDS)})")
_PEER_CELL = re.compile(rf"\s*({'|'.join(PEER_WORDS)})")
_FIRST_NAME = re.compile(r"GPU\d+")
_FIRST_ROW = re.compile(rf"GPU\d+\s*(?:NV\d|{'|'.join(sorted({*LINK_WORDS, *PEER_WORDS}))})")
_TAIL = tuple(re.compile(name.replace(" ", r"\s*")) for name in TAIL_COLUMNS)
_CUT_TAIL = re.compile(r"(?:\s|^)(?:CPU|NUMA|Affinity|GPU(?!\d))")
_LEGEND = re.compile(r"\s*(NV#|[A-Z]+)\s*=\s")
_NIC_LEGEND = re.compile(r"\s*(NIC\d+)\s*:\s*(\S+)\s*$")
_HEADING = re.compile(r"\s*(?:NIC\s+)?Legend\s*:?\s*$")
_GLUED = re.compile(r"(?:GPU\d+|NIC\d+|mlx\d+_\d+)+")
_NAME = re.compile(r"GPU\d+|NIC\d+|mlx\d+_\d+")
_ANY_NAME = re.compile(r"(?=.*\d)[A-Za-z][\w.:-]*")


class Row(NamedTuple):
    """One device's line; a doubtful cell is "". Without cells, `problem` says why the line is not trusted."""

    line: int  # from 1
    name: str
    cells: tuple[str, ...]
    tail: tuple[str, ...]  # what follows the cells, one per tail column, or empty
    problem: str


class Sheet(NamedTuple):
    """A matrix as printed, top to bottom."""

    columns: tuple[str, ...]
    tail: tuple[str, ...]  # those of TAIL_COLUMNS that the header names
    header_cut: bool
    rows: tuple[Row, ...]
    legend: frozenset[str]  # words that the legend explains; empty without a legend
    devices: dict[str, str]  # NIC0 -> mlx5_0
    ignored: tuple[int, ...]  # lines between header and legend that are no row


def read_sheet(text: str, *, peers: bool = False) -> Sheet:
    """Take the printed text apart. Raises SpecError where columns and rows do not belong together.

    `peers` reads the peer-access matrix, whose cells are other words.
    """
    lines = _COLOUR.sub("", text).translate(_INVISIBLE).splitlines()
    at, columns, tail, cut = _find_header(lines)
    rows: list[Row] = []
    legend, devices, ignored = set(), {}, []
    for number, line in enumerate(lines[at + 1 :], at + 2):
        if explained := _LEGEND.match(line):
            legend.add(explained[1])
        elif mapped := _NIC_LEGEND.match(line):
            devices[mapped[1]] = mapped[2]
        elif row := _read_row(number, line, columns, tail, _PEER_CELL if peers else _LINK_CELL):
            rows.append(row)
        elif line.strip() and not _HEADING.match(line) and not legend:
            ignored.append(number)
    _check_rows(rows)
    return Sheet(columns, tail, cut, tuple(rows), frozenset(legend), devices, tuple(ignored))


def is_peer_matrix(text: str) -> bool:
    """Whether the text is a peer-access matrix (`topo -p2p`) rather than a link matrix."""
    plain = _COLOUR.sub("", text)
    if re.search(r"^\s*OK\s*=", plain, re.MULTILINE):
        return True
    cells = re.findall(r"(?<![\w#])(?:NV\d+|[A-Z]{1,4})(?!\w)", plain)
    ours = set(PEER_WORDS) - {"X"}
    return any(cell in ours for cell in cells) and not any(
        cell in LINK_WORDS[1:] or cell.startswith("NV") for cell in cells
    )


def _find_header(lines: list[str]) -> tuple[int, tuple[str, ...], tuple[str, ...], bool]:
    for at, line in enumerate(lines):
        text = line.strip()
        if not _FIRST_NAME.match(text):
            continue
        if _FIRST_ROW.match(text):
            break
        names, tail, cut = _read_header(text)
        return at, _check_columns(names, at + 1), tail, cut
    raise SpecError(
        "no header line that names GPU columns was found",
        field="topology",
        value=next((line for line in lines if line.strip()), ""),
        hint="the whole output of `nvidia-smi topo -m`, from its first line on",
    )


def _read_header(line: str) -> tuple[list[str], tuple[str, ...], bool]:
    """Column names, tail columns, and whether the header stops in the middle."""
    tail, rest, end = [], line, len(line)
    for name, pattern in zip(TAIL_COLUMNS, _TAIL, strict=True):
        if found := pattern.search(rest):
            tail.append(name)
            end = min(end, found.start())
            rest = rest[: found.start()] + "\t" * (found.end() - found.start()) + rest[found.end() :]
    names, cut = [], bool(_CUT_TAIL.search(rest)) or not tail
    for word in line[:end].split():
        if _GLUED.fullmatch(word):
            names += _NAME.findall(word)
        elif _ANY_NAME.fullmatch(word):
            names.append(word)
        else:
            return names, (), True
    return names, tuple(tail), cut or tuple(tail) != TAIL_COLUMNS[: len(tail)]


def _check_columns(names: list[str], line: int) -> tuple[str, ...]:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SpecError(
            f"line {line} names {', '.join(twice)} twice: the header is damaged",
            field="topology", value=twice[0], hint="paste the output again, unwrapped and uncut",
        )  # fmt: skip
    return tuple(names)


def _read_row(
    number: int, line: str, columns: tuple[str, ...], tail: tuple[str, ...], cell: re.Pattern[str]
) -> Row | None:
    text = line.strip()
    name = max(
        (c for c in columns if text.startswith(c) and not text[len(c) : len(c) + 1].isdigit()),
        key=len,
        default="",
    )
    if not name:
        _refuse_unknown_row(number, text, cell)
        return None
    cells, rest, sound = _read_cells(text[len(name) :], len(columns), cell)
    if cell.match(rest) and len(cells) == len(columns):
        raise SpecError(
            f"line {number}: {name} has more cells than the header has columns ({len(columns)})",
            field="topology", value=text, hint="the header has lost a column: paste the output again",
        )  # fmt: skip
    if not sound or len(cells) < len(columns):
        return Row(number, name, (), (), f"{len(cells)} of {len(columns)} cells can be read")
    if [c for c in range(len(cells)) if cells[c] == "X"] != [columns.index(name)]:
        return Row(number, name, (), (), "its own place (X) is not in its own column")
    if tail and not rest.strip() and cells[-1].startswith("NV"):
        cells[-1] = ""  # the line may have been cut inside this very word
    values = tuple(rest.replace("N/A", " N/A ").split())
    return Row(number, name, tuple(cells), values if len(values) == len(tail) else (), "")


def _read_cells(text: str, count: int, cell: re.Pattern[str]) -> tuple[list[str], str, bool]:
    """Up to `count` cells, what follows them, and whether the last cell ended where a cell may end."""
    cells: list[str] = []
    at = 0
    while len(cells) < count and (found := cell.match(text, at)):
        if found[1].startswith("NV") and int(found[1][2:]) > MAX_NVLINKS:
            return cells, text[at:], False
        cells.append(found[1])
        at = found.end()
    glued = bool(cells) and cells[-1].startswith("NV") and text[at : at + 1] in {",", "-"}
    return cells, text[at:], not glued


def _refuse_unknown_row(number: int, text: str, cell: re.Pattern[str]) -> None:
    """A line like a row of a device that the header lacks means that columns are missing."""
    label = re.match(r"(GPU\d+|NIC\d+|mlx\d+_\d+|\S+?)(?=\s)", text)
    if label and _ANY_NAME.fullmatch(label[1]) and cell.match(text, label.end()):
        raise SpecError(
            f"line {number}: {label[1]} has a row but no column: the header is cut or damaged",
            field="topology", value=label[1], hint="paste the output again, unwrapped and uncut",
        )  # fmt: skip


def _check_rows(rows: list[Row]) -> None:
    names = [row.name for row in rows]
    for row in rows:
        if names.count(row.name) > 1:
            raise SpecError(
                f"line {row.line}: {row.name} has two rows", field="topology", value=row.name,
                hint="one matrix at a time",
            )  # fmt: skip
