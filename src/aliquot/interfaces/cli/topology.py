"""`aliquot topology FILE|-`: a printed topology matrix as understood, for a person or as JSON.

It shows and concludes nothing of its own: every line comes from `core.topology`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from aliquot.control.words import counted
from aliquot.core.errors import AliquotError, SpecError
from aliquot.core.topology import peers
from aliquot.core.topology.caveats import off_fabric
from aliquot.core.topology.links import MEANING, Link
from aliquot.core.topology.matrix import ParsedTopology, parse_matrix
from aliquot.core.topology.peers import PeerAccess, parse_peers
from aliquot.core.topology.sets import largest_linked_set
from aliquot.core.topology.sheet import is_peer_matrix
from aliquot.core.topology.wiring import Fabric, Wiring, cards_of, islands, nearest_nics
from aliquot.interfaces.cli.screen import Screen

_T = TypeVar("_T")

BAD_INPUT = 2  # exit code

_FABRIC = {
    Fabric.NONE: "no NVLink",
    Fabric.UNIFORM: "NVLink, uniform: every pair with the same count",
    Fabric.UNEVEN: "NVLink between every pair, counts differ",
    Fabric.PARTIAL: "NVLink between some pairs",
    Fabric.UNKNOWN: "NVLink unknown: the text does not show it",
}


def show_topology(path_or_dash: str, as_json: bool) -> int:
    """Read a file (`-`: standard input) and print the machine; 0, or 2 with one line on standard error."""
    try:
        text = _read_text(path_or_dash)
        parsed = parse_peers(text) if is_peer_matrix(text) else parse_matrix(text)
    except AliquotError as error:
        Screen(stderr=True).print(f"error: {error}", style="red", markup=False, soft_wrap=True)
        return BAD_INPUT
    console = Screen()
    if as_json:
        console.out(json.dumps(to_json(parsed), indent=2, ensure_ascii=False), highlight=False)
    else:
        console.print(render(parsed))
    return 0


def render(parsed: ParsedTopology | PeerAccess) -> RenderableType:
    """The machine as tables, warnings last."""
    if isinstance(parsed, PeerAccess):
        return _peer_table(parsed)
    wiring = parsed.wiring
    parts: list[RenderableType] = [
        Text(
            f"{counted(wiring.n, 'card')}, {counted(len(wiring.nics), 'NIC')}. {_FABRIC[wiring.fabric]}",
            style="bold",
        ),
        _card_table(parsed),
    ]
    if any(wiring.links):
        parts.append(_link_table(parsed))
    if wiring.switches:
        parts.append(_switch_table(parsed))
    if _legend(wiring):
        parts.append(_legend(wiring))
    parts += [Text(f"warning: {caveat.text}", style="yellow") for caveat in parsed.caveats]
    return Group(*parts)


def to_json(parsed: ParsedTopology | PeerAccess) -> dict[str, Any]:
    """The same as plain values. Unknown is null, levels are words of the driver's legend."""
    if isinstance(parsed, PeerAccess):
        return _peers_to_json(parsed)
    wiring, names = parsed.wiring, parsed.cards
    return {
        "kind": "links",
        "cards": [_card_to_json(parsed, card) for card in range(wiring.n)],
        "nics": [
            {"name": nic.name, "device": nic.device, "levels": _by_card(names, nic.levels)}
            for nic in wiring.nics
        ],
        "nvlink": {
            "known": wiring.nvlink_known,
            "fabric": wiring.fabric.value,
            "islands": [_named(names, mask) for mask in islands(wiring)] if wiring.nvlink_known else None,
            "largestLinkedSet": _named(names, largest_linked_set(wiring, wiring.every)),
            "offFabric": _named(names, off_fabric(wiring)),
            "counts": [list(row) for row in _square(wiring, wiring.links)] if wiring.nvlink_known else None,
        },
        "levels": [[_word(level) for level in row] for row in _square(wiring, wiring.levels)],
        "pcieSwitches": [
            {
                "level": switch.level.name,
                "cards": _named(names, switch.cards),
                "nics": [wiring.nics[nic].name for nic in switch.nics],
            }
            for switch in wiring.switches
        ],
        "localityGroups": [_named(names, mask) for mask in _domains(wiring)],
        "rowsMissing": list(parsed.rows_missing),
        "rowsDamaged": list(parsed.rows_damaged),
        "damaged": parsed.damaged,
        "warnings": [{"kind": caveat.kind.value, "text": caveat.text} for caveat in parsed.caveats],
    }


def _read_text(path_or_dash: str) -> str:
    try:
        if path_or_dash == "-":
            return sys.stdin.read()
        return Path(path_or_dash).read_text(encoding="utf-8")
    except OSError as error:
        raise SpecError(
            f"{path_or_dash} cannot be read: {error.strerror}",
            field="topology",
            value=path_or_dash,
            hint="a file, or - for standard input",
        ) from error
    except UnicodeDecodeError as error:
        raise SpecError(
            f"{path_or_dash} is not text",
            field="topology",
            value=path_or_dash,
            hint="what `nvidia-smi topo -m` prints",
        ) from error


def _card_table(parsed: ParsedTopology) -> Table:
    wiring = parsed.wiring
    table = Table(
        "Card", "NUMA", "CPUs", "Nearest cards", "Nearest NICs", title="Cards", title_justify="left"
    )
    for card, name in enumerate(parsed.cards):
        affinity = parsed.affinities[card]
        level, near = nearest_nics(wiring, card)
        nics = ", ".join(_nic_name(wiring, nic) for nic in near)
        table.add_row(
            name,
            affinity.numa_text or "unknown",
            affinity.cpu_text or "unknown",
            _nearest_cards(parsed, card),
            f"{level.name}: {nics}" if near else "none",
        )
    return table


def _nearest_cards(parsed: ParsedTopology, card: int) -> str:
    wiring = parsed.wiring
    others = [other for other in range(wiring.n) if other != card]
    best = min((wiring.level(card, other) for other in others), default=Link.UNKNOWN)
    if best is Link.UNKNOWN:
        return "unknown" if others else "none"
    near = [other for other in others if wiring.level(card, other) is best]
    if len(near) == len(others) > 1:
        return f"{_link_word(best)}: all"
    return f"{_link_word(best)}: {', '.join(parsed.cards[other] for other in near)}"


def _link_word(level: Link) -> str:
    return "NVLink" if level is Link.NV else level.name


def _legend(wiring: Wiring) -> Text:
    used = {level for nic in wiring.nics for level in nic.levels} | set(wiring.levels)
    words = [f"{level.name}: {MEANING[level]}" for level in sorted(used) if Link.PIX <= level <= Link.SYS]
    return Text("; ".join(words), style="dim")


def _link_table(parsed: ParsedTopology) -> Table:
    wiring, names = parsed.wiring, parsed.cards
    table = Table("Group", "Cards", "NVLinks per pair", title="NVLink groups", title_justify="left")
    for number, mask in enumerate(islands(wiring)):
        inside = cards_of(mask)
        counts = sorted({wiring.nvlinks(a, b) for a in inside for b in inside if a < b})
        words = ", ".join(str(count) if count else "none" for count in counts) or "none"
        table.add_row(str(number), ", ".join(_named(names, mask)), words)
    return table


def _switch_table(parsed: ParsedTopology) -> Table:
    wiring = parsed.wiring
    table = Table("Level", "Cards", "NICs", title="PCIe switches", title_justify="left")
    for switch in wiring.switches:
        table.add_row(
            switch.level.name,
            ", ".join(_named(parsed.cards, switch.cards)),
            ", ".join(_nic_name(wiring, nic) for nic in switch.nics),
        )
    return table


def _peer_table(access: PeerAccess) -> Table:
    table = Table("", *access.cards, title="Peer access", title_justify="left")
    for name, row in zip(access.cards, access.status, strict=True):
        table.add_row(name, *(peers.MEANING[word] for word in row))
    return table


def _card_to_json(parsed: ParsedTopology, card: int) -> dict[str, Any]:
    wiring, affinity = parsed.wiring, parsed.affinities[card]
    level, near = nearest_nics(wiring, card)
    return {
        "name": parsed.cards[card],
        "numa": affinity.numa,
        "numaAsPrinted": affinity.numa_text or None,
        "cpus": affinity.cpu_text or None,
        "memoryNuma": affinity.memory_numa,
        "nearestNics": [wiring.nics[nic].name for nic in near],
        "nearestNicLevel": _word(level),
    }


def _peers_to_json(access: PeerAccess) -> dict[str, Any]:
    cards = range(len(access.cards))
    return {
        "kind": "peer-access",
        "cards": list(access.cards),
        "status": [list(row) for row in access.status],
        "allowed": [[access.allowed(a, b) for b in cards] for a in cards],
    }


def _word(level: Link) -> str | None:
    if level is Link.UNKNOWN:
        return None
    return "X" if level is Link.SELF else level.name


def _by_card(names: Iterable[str], levels: Iterable[Link]) -> dict[str, str | None]:
    return {name: _word(level) for name, level in zip(names, levels, strict=True)}


def _named(names: tuple[str, ...], mask: int) -> list[str]:
    return [names[card] for card in cards_of(mask)]


def _nic_name(wiring: Wiring, position: int) -> str:
    nic = wiring.nics[position]
    return nic.name if nic.name == nic.device else f"{nic.name} ({nic.device})"


def _square(wiring: Wiring, flat: tuple[_T, ...]) -> list[tuple[_T, ...]]:
    return [flat[row * wiring.n : (row + 1) * wiring.n] for row in range(wiring.n)]


def _domains(wiring: Wiring) -> list[int]:
    labels = sorted({label for label in wiring.domains if label >= 0})
    return [sum(1 << c for c in range(wiring.n) if wiring.domains[c] == label) for label in labels]
