"""How one machine is wired: level and NVLink count of every pair of cards, NUMA nodes, NICs, shared edges.

A value, hashable, equal when the wiring is equal: nodes of one shape share it. It holds no state: what is
booked on an edge and which cards are free live in the world. Whether links exist is read, never inferred from
a card's model: `nvlink_known` is False where the source does not show NVLink, and nothing may then conclude
that there is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from aliquot.core.errors import SpecError
from aliquot.core.topology.cpus import Ranges
from aliquot.core.topology.edges import Edge, Switch, components, derive_edges, find_switches
from aliquot.core.topology.links import NVLINK_MBS, SOCKET_MBS, Link, level_mbs, pcie_mbs

MAX_CARDS: Final = 16


class Fabric(Enum):
    """What the NVLinks of a machine make together."""

    NONE = "none"
    UNIFORM = "uniform"  # every pair linked, all with the same count
    UNEVEN = "uneven"  # every pair linked, counts differ
    PARTIAL = "partial"  # some pairs linked
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Nic:
    """A network card; `levels[card]` is how near it is to each card."""

    name: str  # as the columns name it
    device: str  # as the system names it; the same where no legend says otherwise
    levels: tuple[Link, ...]


@dataclass(frozen=True)
class Wiring:
    """The wiring of one machine of `n` cards (1 to 16). `levels`, `links`: flat, [a * n + b], symmetric.

    `numa[card]` is None where the node is unknown or undetermined. `domains[card]` numbers from 0 the groups
    of cards that share a NUMA node (or, where nobody says, CPUs, or anything nearer than SYS); -1 is unknown.
    `blocked[card]` is the mask of cards it may not reach directly (no peer access). `edges` has at most
    `edges.MAX_EDGES`; position e is column e of the world's traffic.
    """

    n: int
    levels: tuple[Link, ...]
    links: tuple[int, ...]
    nvlink_known: bool
    numa: tuple[int | None, ...]
    cpus: tuple[Ranges | None, ...]
    domains: tuple[int, ...]
    nics: tuple[Nic, ...]
    switches: tuple[Switch, ...]
    edges: tuple[Edge, ...]
    gen: int
    link_mbs: int  # one NVLink, one way
    socket_mbs: int
    blocked: tuple[int, ...]
    _hash: int = field(init=False, repr=False, compare=False, default=0)

    def __post_init__(self) -> None:
        shared = tuple((edge.capacity, edge.cards) for edge in self.edges)
        numbers = (self.levels, self.links, self.nvlink_known, self.domains, shared, self.blocked)
        object.__setattr__(self, "_hash", hash(numbers))

    def __hash__(self) -> int:
        """Asked for at every cached question, so computed once; of numbers only, so every process agrees."""
        return self._hash

    def level(self, a: int, b: int) -> Link:
        """How far apart cards `a` and `b` are."""
        return self.levels[a * self.n + b]

    def nvlinks(self, a: int, b: int) -> int:
        """NVLinks between two cards; 0 says "none" only where `nvlink_known` and the level is known."""
        return self.links[a * self.n + b]

    def bandwidth(self, a: int, b: int) -> int:
        """Estimated MB/s between two cards, one way; 0 where unknown. Without peer access data goes twice."""
        if self.nvlinks(a, b):
            return self.nvlinks(a, b) * self.link_mbs
        direct = level_mbs(self.level(a, b), self.gen, self.socket_mbs)
        return direct // 2 if self.blocked[a] >> b & 1 else direct

    @property
    def every(self) -> int:
        """The mask of all cards."""
        return (1 << self.n) - 1

    @property
    def fabric(self) -> Fabric:
        """What the NVLinks make together, as read."""
        if not self.nvlink_known:
            return Fabric.UNKNOWN
        counts = {self.nvlinks(a, b) for a in range(self.n) for b in range(a)}
        if not any(counts):
            return Fabric.NONE
        if 0 in counts:
            return Fabric.PARTIAL
        return Fabric.UNIFORM if len(counts) == 1 else Fabric.UNEVEN


def uniform(
    n: int, links: int, *, per_socket: int = 0, per_switch: int = 0, gen: int = 4, link_mbs: int = NVLINK_MBS
) -> Wiring:
    """`n` cards, `links` NVLinks between every pair (NVSwitch); 0 per socket or switch: nobody said."""
    _check_group(per_socket, "per_socket", least=0)
    _check_group(per_switch, "per_switch", least=0)
    levels = tuple(Link.SELF if a == b else Link.NV for a in range(n) for b in range(n))
    return assemble(
        n,
        levels,
        tuple(0 if level is Link.SELF else links for level in levels),
        numa=tuple(card // per_socket if per_socket else None for card in range(n)),
        switches=_regular_switches(n, per_switch),
        gen=gen,
        link_mbs=link_mbs,
    )


def pcie(n: int, per_switch: int, per_socket: int, gen: int = 4) -> Wiring:
    """`n` cards, no NVLink: PIX inside a switch, NODE inside a socket, SYS across. 1 per switch: none."""
    _check_group(per_switch, "per_switch", least=1)
    _check_group(per_socket, "per_socket", least=1)

    def meet(a: int, b: int) -> Link:
        if a == b:
            return Link.SELF
        if a // per_socket != b // per_socket:
            return Link.SYS
        return Link.PIX if a // per_switch == b // per_switch else Link.NODE

    levels = tuple(meet(a, b) for a in range(n) for b in range(n))
    return assemble(n, levels, (0,) * (n * n), numa=tuple(card // per_socket for card in range(n)), gen=gen)


def unknown(n: int) -> Wiring:
    """`n` cards of which nobody said how they are wired."""
    levels = tuple(Link.SELF if a == b else Link.UNKNOWN for a in range(n) for b in range(n))
    return assemble(n, levels, (0,) * (n * n), nvlink_known=n == 1)


def assemble(
    n: int,
    levels: tuple[Link, ...],
    links: tuple[int, ...],
    *,
    nvlink_known: bool = True,
    numa: tuple[int | None, ...] = (),
    cpus: tuple[Ranges | None, ...] = (),
    nics: tuple[Nic, ...] = (),
    switches: tuple[Switch, ...] | None = None,
    gen: int = 4,
    link_mbs: int = NVLINK_MBS,
    socket_mbs: int = 0,
    blocked: tuple[int, ...] = (),
) -> Wiring:
    """Check the tables and derive what follows from them: domains, switches (unless given) and edges.

    `socket_mbs` 0 takes the usual speed for the PCIe generation. Raises SpecError for a card count outside
    1..16, tables of another size, an asymmetric pair, or an unknown generation.
    """
    _check_tables(n, levels, links)
    numa, cpus = numa or (None,) * n, cpus or (None,) * n
    uplink = pcie_mbs(gen)
    between = socket_mbs or SOCKET_MBS[gen]
    domains = _find_domains(n, levels, numa, cpus)
    if switches is None:
        switches = find_switches(
            n, len(nics), lambda a, b: levels[a * n + b], lambda nic, card: nics[nic].levels[card]
        )
    names = [nic.name for nic in nics]
    return Wiring(
        n=n,
        levels=levels,
        links=links,
        nvlink_known=nvlink_known,
        numa=numa,
        cpus=cpus,
        domains=domains,
        nics=nics,
        switches=switches,
        edges=derive_edges(switches, domains, names, uplink, between),
        gen=gen,
        link_mbs=link_mbs,
        socket_mbs=between,
        blocked=blocked or (0,) * n,
    )


def nearest_nics(wiring: Wiring, card: int) -> tuple[Link, tuple[int, ...]]:
    """The best level at which `card` meets a NIC, and the NICs it meets there; (UNKNOWN, ()) without NICs.

    At `links.NEAR` or better a NIC reads the card's memory without passing the CPU.
    """
    known = [(nic.levels[card], position) for position, nic in enumerate(wiring.nics)]
    best = min((level for level, _ in known), default=Link.UNKNOWN)
    if best is Link.UNKNOWN:
        return Link.UNKNOWN, ()
    return best, tuple(position for level, position in known if level is best)


def islands(wiring: Wiring) -> tuple[int, ...]:
    """Masks of cards connected through NVLink, a lone card by itself, by first card.

    Connected is less than linked: in a cube mesh all eight are one island though most pairs have no link.
    """
    n = wiring.n
    joined = [(a, b) for a in range(n) for b in range(a + 1, n) if wiring.nvlinks(a, b)]
    return tuple(sum(1 << card for card in group) for group in components(n, joined))


def cards_of(mask: int) -> tuple[int, ...]:
    """Positions of the set bits, ascending."""
    return tuple(card for card in range(mask.bit_length()) if mask >> card & 1)


def _find_domains(
    n: int, levels: Sequence[Link], numa: Sequence[int | None], cpus: Sequence[Ranges | None]
) -> tuple[int, ...]:
    """Number locality groups by the best evidence there is: NUMA nodes, else CPU lists, else distance.

    One CPU list for all cards says nothing: a container's own cpuset looks the same from every card. Distance
    says nothing where a pair's PCIe level is hidden behind NVLink or unknown.
    """
    if any(node is not None for node in numa):
        return _number(numa)
    if len({ranges for ranges in cpus if ranges is not None}) > 1:
        return _number(cpus)
    if any(level in {Link.NV, Link.UNKNOWN} for level in levels):
        return (-1,) * n
    met = [(a, b) for a in range(n) for b in range(a + 1, n) if levels[a * n + b] is not Link.SYS]
    groups = components(n, met)
    return tuple(next(i for i, group in enumerate(groups) if card in group) for card in range(n))


def _number(evidence: Sequence[int | Ranges | None]) -> tuple[int, ...]:
    order = [value for value in dict.fromkeys(evidence) if value is not None]
    return tuple(-1 if value is None else order.index(value) for value in evidence)


def _regular_switches(n: int, per_switch: int) -> tuple[Switch, ...]:
    if per_switch < 2:
        return ()
    below, every = (1 << per_switch) - 1, (1 << n) - 1
    return tuple(Switch(Link.PIX, below << first & every) for first in range(0, n, per_switch))


def _check_group(size: int, name: str, least: int) -> None:
    if size < least:
        raise SpecError(f"{size} cards in a group", field=name, value=size, hint=f"{least} or more")


def _check_tables(n: int, levels: Sequence[Link], links: Sequence[int]) -> None:
    if not 1 <= n <= MAX_CARDS:
        raise SpecError(f"a machine of {n} cards", field="cards", value=n, hint=f"1 to {MAX_CARDS}")
    if len(levels) != n * n or len(links) != n * n:
        raise SpecError(
            f"pair tables of {len(levels)} and {len(links)} entries for {n} cards",
            field="levels",
            value=len(levels),
            hint=f"{n * n} entries each",
        )
    for a in range(n):
        for b in range(a + 1):
            here, there = a * n + b, b * n + a
            if levels[here] is not levels[there] or links[here] != links[there]:
                raise SpecError(
                    f"cards {b} and {a} are {levels[there].name} one way and {levels[here].name} the other",
                    field="levels",
                    value=levels[here].name,
                    hint="a wiring is the same both ways",
                )
            if (links[here] > 0) != (levels[here] is Link.NV) or (a == b) != (levels[here] is Link.SELF):
                raise SpecError(
                    f"cards {b} and {a} are {levels[here].name} with {links[here]} NVLinks",
                    field="links",
                    value=links[here],
                    hint="NV with at least one link, others with none",
                )
