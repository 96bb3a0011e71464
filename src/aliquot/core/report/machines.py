"""The machines as the meter sees them: what is up, booked, idle, scattered and stranded, and for how long.

Follows the world's rules: a lost node or a vanished card counts neither as booked nor as capacity until it is
back. Only the node an event touches is looked at, never the whole site.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from aliquot.core.columns import MAX_CARDS
from aliquot.core.grants import Placement
from aliquot.core.ids import CardId, NodeId
from aliquot.core.inventory import CardModel, Node, Profile, accepts
from aliquot.core.jobs import Request
from aliquot.core.report.gauges import Gauge, Sums
from aliquot.core.report.needs import Frontier, host_frontier, is_stranded
from aliquot.core.slices import resolve_ask
from aliquot.core.units import FULL

CardWatch = Callable[[CardId, int, int, int], None]
"""Told (card, change of booked milli-cards, change of milli-cards that are up, at)."""


class Share:
    """What one class of jobs holds and does: milli-cards booked, busy, and of unknown activity."""

    __slots__ = ("booked", "busy", "dark")

    def __init__(self, at: int) -> None:
        self.booked, self.busy, self.dark = Gauge(at), Gauge(at), Gauge(at)


class Hold:
    """What one member of an attempt holds and does. `share` is its class's part of the sums."""

    __slots__ = (
        "asked_mib",
        "busy",
        "cards",
        "cpu",
        "host",
        "live",
        "mib",
        "milli",
        "node",
        "share",
        "surplus",
    )

    def __init__(self, placement: Placement, share: Share) -> None:
        self.node = placement.node
        self.cards = placement.cards
        self.milli = placement.vector.compute
        self.mib = placement.vector.memory
        self.cpu = placement.cpu
        self.host = placement.host
        self.share = share
        self.busy: int | None = 0  # milli of SM activity on each of its cards; None: unknown
        self.asked_mib = self.mib
        self.surplus = 0
        self.live: tuple[CardId, ...] | None = None  # the cards that are there; None: its node is away


class Kind:
    """Nodes with the same cards: how many of them have how many free cards."""

    __slots__ = ("accepted", "free", "frontier", "models", "nodes_with")

    def __init__(self, models: tuple[CardModel, ...], frontier: Frontier) -> None:
        self.models = models
        self.frontier = frontier
        self.free = 0
        self.nodes_with = [0] * (MAX_CARDS + 1)
        self.accepted: dict[Profile, bool] = {}

    def serves(self, profile: Profile) -> bool:
        """Whether at least one of the cards is of the kind asked for."""
        known = self.accepted.get(profile)
        if known is None:
            known = self.accepted[profile] = any(accepts(profile, model) for model in self.models)
        return known


class Machine:
    """One node: what is on it and how it counts now."""

    __slots__ = (
        "cpu", "crowded", "drained", "faulty", "free", "holds", "host", "idle", "kind", "node", "present",
        "shut", "stranded", "up",
    )  # fmt: skip  # one list, not one name a line

    def __init__(self, node: Node, kind: Kind) -> None:
        self.drained = False
        self.holds: dict[Hold, None] = {}
        self.idle = self.free = self.stranded = 0
        self.report(node, kind)

    def report(self, node: Node, kind: Kind) -> None:
        """Take over what the node now says of itself; nothing is counted yet."""
        self.node = node
        self.kind = kind
        self.up = False
        self.faulty: frozenset[CardId] = frozenset()
        self.crowded: frozenset[CardId] = frozenset()  # taken by what nobody was granted
        self.shut: frozenset[CardId] = frozenset()  # both: not open to work
        self.present = frozenset(card.uuid for card in node.cards)
        self.cpu = node.cpu_milli
        self.host = node.host_mib


class Machines:
    """All nodes. `sums` are the integrals it keeps; `waiting` is set by whoever knows the queue."""

    def __init__(self, mix: Iterable[Request], sums: Sums, at: int, watch: CardWatch | None = None) -> None:
        self.sums = sums
        self.cards: dict[CardId, Gauge] = {}
        self.mib_of: dict[CardId, int] = {}
        self.free_sets = [0] * (MAX_CARDS + 1)  # nodes by number of free cards
        self.largest = 0  # the most free cards on one node
        self._start = at
        self._mix = tuple(mix)
        self._watch = watch
        self._kinds: dict[tuple[CardModel, ...], Kind] = {}
        self._machines: dict[NodeId, Machine] = {}

    def join(self, node: Node, at: int) -> None:
        """A node is there, for the first time or again, with what it now reports."""
        machine = self._machines.get(node.id)
        if machine is None:
            machine = self._machines[node.id] = Machine(node, self._kind(node))
        else:
            self._close(machine, at)
        machine.report(node, self._kind(node))
        for card in node.cards:
            self.cards.setdefault(card.uuid, Gauge(self._start))
            self.mib_of[card.uuid] = card.model.usable_mib
        self._open(machine, at, up=True)

    def lose(self, node: NodeId, at: int) -> None:
        """A node stopped answering: its cards and what is on them no longer count."""
        if machine := self._machines.get(node):
            self._close(machine, at)
            self._open(machine, at, up=False)

    def drain(self, node: NodeId, drained: bool, at: int) -> None:
        """A node takes no new work, or takes it again."""
        if machine := self._machines.get(node):
            self._close(machine, at)
            machine.drained = drained
            self._open(machine, at, up=machine.up)

    def fault(self, node: NodeId, cards: Iterable[CardId], at: int) -> None:
        """The unhealthy cards of a node, complete."""
        if machine := self._machines.get(node):
            self._close(machine, at)
            machine.faulty = frozenset(cards)
            machine.shut = machine.faulty | machine.crowded
            self._open(machine, at, up=machine.up)

    def crowd(self, node: NodeId, cards: Iterable[CardId], at: int) -> None:
        """The cards of a node on which something runs that nobody was granted, complete."""
        if machine := self._machines.get(node):
            self._close(machine, at)
            machine.crowded = frozenset(cards)
            machine.shut = machine.faulty | machine.crowded
            self._open(machine, at, up=machine.up)

    def hold(self, hold: Hold, request: Request, at: int) -> None:
        """`hold` is booked. What it holds beyond `request` is its surplus."""
        if hold.cards:
            self._compare(hold, request)
        machine = self._machines.get(hold.node)
        if machine is None:
            return
        machine.holds[hold] = None
        if machine.up:
            idle, free = self._count(machine, hold, 1, at)
            self._note(machine, machine.idle + idle, machine.free + free, at)

    def release(self, hold: Hold, at: int) -> None:
        """`hold` is given back."""
        machine = self._machines.get(hold.node)
        if machine is None or hold not in machine.holds:
            return
        del machine.holds[hold]
        if hold.live is not None:
            idle, free = self._count(machine, hold, -1, at)
            self._note(machine, machine.idle + idle, machine.free + free, at)

    def busy(self, hold: Hold, busy: int | None, at: int) -> None:
        """From now on each card of `hold` is `busy` milli active; None: nobody knows."""
        if hold.live:
            self._work(hold, len(hold.live), -1, at)
        hold.busy = busy
        if hold.live:
            self._work(hold, len(hold.live), 1, at)

    @property
    def kinds(self) -> int:
        """How many kinds of nodes have been seen."""
        return len(self._kinds)

    def free_for(self, width: int, profile: Profile) -> tuple[int, bool]:
        """Free cards on nodes that `profile` accepts, and whether one such node has `width` of them."""
        free, fits = 0, False
        for kind in self._kinds.values():
            if kind.serves(profile):
                free += kind.free
                fits = fits or any(kind.nodes_with[width:])
        return free, fits

    def ever_fits(self, width: int, profile: Profile) -> bool:
        """Whether some known kind of node has `width` cards, free or not."""
        return any(len(kind.models) >= width and kind.serves(profile) for kind in self._kinds.values())

    # --- counting --------------------------------------------------------------------------------------

    def _kind(self, node: Node) -> Kind:
        models = tuple(card.model for card in node.cards)
        kind = self._kinds.get(models)
        if kind is None:
            kind = self._kinds[models] = Kind(models, host_frontier(self._mix, models))
        return kind

    def _compare(self, hold: Hold, request: Request) -> None:
        """What was asked for of each card, beside what is held. A whole-card ask is never in surplus."""
        usable = self.mib_of.get(hold.cards[0], hold.mib)
        if request.whole:
            hold.asked_mib = min(hold.mib, request.ask.memory_mib or hold.mib)
            return
        asked = resolve_ask(request.ask, usable)
        if asked is not None:
            hold.asked_mib = min(hold.mib, asked.memory)
            hold.surplus = max(0, hold.milli - asked.compute)

    def _close(self, machine: Machine, at: int) -> None:
        """Take all of a node out of the sums."""
        for hold in machine.holds:
            if hold.live is not None:
                self._count(machine, hold, -1, at)
        self._capacity(machine, -1, at)
        self._note(machine, 0, 0, at)

    def _open(self, machine: Machine, at: int, *, up: bool) -> None:
        """Count a node and what is still on it anew."""
        machine.up = up
        machine.cpu, machine.host = machine.node.cpu_milli, machine.node.host_mib
        self._capacity(machine, 1, at)
        if up:
            for hold in machine.holds:
                self._count(machine, hold, 1, at)
        self._recount(machine, at)

    def _capacity(self, machine: Machine, sign: int, at: int) -> None:
        node, sums = machine.node, self.sums
        milli = sign * FULL * len(node.cards)
        if not machine.up:
            sums.lost_milli.add(milli, at)
            return
        if self._watch is not None:
            for card in node.cards:
                self._watch(card.uuid, 0, sign * FULL, at)
        sums.up_milli.add(milli, at)
        sums.up_mib.add(sign * sum(card.model.usable_mib for card in node.cards), at)
        unhealthy = len(node.cards) if machine.drained else len(machine.faulty)
        if unhealthy:
            sums.closed_milli.add(sign * FULL * unhealthy, at)
        if node.price_cents_per_card is None:
            sums.unpriced_cards.add(sign * len(node.cards), at)

    def _count(self, machine: Machine, hold: Hold, sign: int, at: int) -> tuple[int, int]:
        """Add or take out one hold, with those of its cards that are there: (idle, free) cards more."""
        sums, live = self.sums, hold.live
        if live is None:
            present = machine.present
            live = hold.cards
            if not present.issuperset(live):
                live = tuple(card for card in live if card in present)
        hold.live = live if sign > 0 else None
        cards = len(live)
        machine.cpu -= sign * hold.cpu
        machine.host -= sign * hold.host
        if not cards:
            return 0, 0
        milli = sign * hold.milli
        turned = unhealthy = 0
        for card in live:
            gauge = self.cards[card]
            if not gauge.value or gauge.value == -milli:
                turned += sign
                unhealthy += sign * (card in machine.shut)
            gauge.add(milli, at)
            if self._watch is not None:
                self._watch(card, milli, 0, at)
        sums.booked_milli.add(milli * cards, at)
        sums.booked_mib.add(sign * hold.mib * cards, at)
        sums.asked_mib.add(sign * hold.asked_mib * cards, at)
        hold.share.booked.add(milli * cards, at)
        if hold.surplus:
            sums.surplus_milli.add(sign * hold.surplus * cards, at)
            price = machine.node.price_cents_per_card or 0
            sums.surplus_millicents.add(sign * hold.surplus * cards * price, at)
        self._work(hold, cards, sign, at)
        return -turned, 0 if machine.drained else unhealthy - turned

    def _work(self, hold: Hold, cards: int, sign: int, at: int) -> None:
        if hold.busy is None:
            dark = sign * hold.milli * cards
            self.sums.dark_milli.add(dark, at)
            hold.share.dark.add(dark, at)
        elif hold.busy:
            self.sums.busy_milli.add(sign * hold.busy * cards, at)
            hold.share.busy.add(sign * hold.busy * cards, at)

    def _recount(self, machine: Machine, at: int) -> None:
        """Idle and free cards of a node, looked at one by one."""
        if not machine.up:
            self._note(machine, 0, 0, at)
            return
        cards = self.cards
        idle = [card.uuid for card in machine.node.cards if not cards[card.uuid].value]
        free = 0 if machine.drained else sum(card not in machine.shut for card in idle)
        self._note(machine, len(idle), free, at)

    def _note(self, machine: Machine, idle: int, free: int, at: int) -> None:
        """Bring the counts of one node, and the sums with them, to new values."""
        sums = self.sums
        stranded = 0
        cpu, host = max(0, machine.cpu), max(0, machine.host)  # more is booked than a shrunken node has
        if free and is_stranded(machine.kind.frontier, free, cpu, host):
            stranded = free
        if idle != machine.idle:
            change = idle - machine.idle
            sums.idle_cards.add(change, at)
            if machine.node.price_cents_per_card:
                sums.idle_cents.add(change * machine.node.price_cents_per_card, at)
            machine.idle = idle
        if free != machine.free:
            kind = machine.kind
            sums.free_cards.add(free - machine.free, at)
            kind.free += free - machine.free
            self._regroup(kind, machine.free, free)
            machine.free = free
            sums.largest_cards.put(self.largest, at)
        if stranded != machine.stranded:
            sums.stranded_cards.add(stranded - machine.stranded, at)
            machine.stranded = stranded

    def _regroup(self, kind: Kind, before: int, after: int) -> None:
        """One node of `kind` has `after` free cards instead of `before`."""
        for count, sign in ((before, -1), (after, 1)):
            if count:
                kind.nodes_with[count] += sign
                self.free_sets[count] += sign
        largest = max(self.largest, after)
        while largest and not self.free_sets[largest]:
            largest -= 1
        self.largest = largest
