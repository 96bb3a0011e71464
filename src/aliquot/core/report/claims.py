"""What each queue is entitled to, uses and wants: the integrals behind quotas met, borrowing and Jain.

Charged is what was asked, as in `queueing`. A queue wants what it uses and what its waiting jobs ask for; a
job that waits for others to end asks for nothing yet. Where there are quotas a queue is entitled to its
nominal, else to its part of all cards by weight among the queues that have jobs. A change costs one walk up
the queue's path, never one over all queues; only when nodes change are all entitlements looked at.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from aliquot.core.accounts import ask_of
from aliquot.core.grants import Placement
from aliquot.core.ids import NodeId
from aliquot.core.inventory import CardModel, Node, accepts
from aliquot.core.jobs import Job, Request
from aliquot.core.pace import as_granted
from aliquot.core.queueing.quota import Charge
from aliquot.core.queueing.tree import OWN, ROOT, UNBOUNDED, QueueTree, grow_tree, home_of
from aliquot.core.queues import CARDS, COMPUTE, MEMORY, MONEY, Measure, Queue, Resource, quotas_of
from aliquot.core.records import Asked
from aliquot.core.report.gauges import Gauge
from aliquot.core.settings import Settings
from aliquot.core.units import FULL


class ClaimReading(msgspec.Struct, frozen=True):
    """One queue and resource over the window: integrals in the unit of the resource times ms.

    `met`: of what it used, what was its own. `due`: the lesser of what it wanted and is entitled to.
    `over_ms`: for how long it used more than it may, borrowing included; nothing brings that about but quotas
    and capacity that fall below what runs.
    """

    resource: Resource
    entitled: int  # at the end
    used: int
    wanted: int
    met: int
    due: int
    over_ms: int = 0


class QueueReading(msgspec.Struct, frozen=True):
    """One queue; `names` are the queues of the jobs that count here. `inner`: other queues are below it."""

    name: str
    inner: bool
    stated: bool  # whether it has quotas of its own
    names: tuple[str, ...]
    claims: tuple[ClaimReading, ...]


class Claim:
    """One queue in one resource: usage, what waiting jobs ask, entitlement, and their integrals."""

    __slots__ = ("due", "entitled", "met", "most", "over", "since", "usage", "used", "waiting", "wanted")

    def __init__(self, at: int) -> None:
        self.entitled = self.usage = self.waiting = 0
        self.most = UNBOUNDED  # that it may use, borrowing included
        self.used = self.wanted = self.met = self.due = self.over = 0
        self.since = at

    def settle(self, at: int) -> None:
        """Bring the integrals to `at`, which is not before the last time."""
        span = at - self.since
        if span:
            usage, entitled = self.usage, self.entitled
            wanted = usage + self.waiting
            self.used += usage * span
            self.wanted += wanted * span
            self.met += min(usage, entitled) * span
            self.due += min(wanted, entitled) * span
            self.over += span if usage > self.most else 0
            self.since = at

    def until(self, resource: Resource, at: int) -> ClaimReading:
        """The integrals up to `at`; nothing changes."""
        span, usage, entitled = at - self.since, self.usage, self.entitled
        wanted = usage + self.waiting
        return ClaimReading(
            resource,
            entitled,
            self.used + usage * span,
            self.wanted + wanted * span,
            self.met + min(usage, entitled) * span,
            self.due + min(wanted, entitled) * span,
            self.over + (span if usage > self.most else 0),
        )


class Ticket(NamedTuple):
    """What a job is charged for, on the claims of its queue and all above; `holds`, or waits for it."""

    rows: tuple[list[Claim], ...]
    charge: Charge
    holds: bool


class Claims:
    """The claims of all queues. Without `settings`, or queues in them, the queues are those jobs name."""

    def __init__(self, settings: Settings | None, names: Iterable[str], at: int) -> None:
        written = settings.queues if settings is not None else ()
        self._written = {queue.name: queue for queue in written}
        self._rates = settings.rates if settings is not None else None
        self._named = tuple(dict.fromkeys(quota.resource for queue in written for quota in quotas_of(queue)))
        self._resources: tuple[Resource, ...] = self._named or (CARDS,)
        self._names: dict[str, int | None] = dict.fromkeys(sorted(set(names)))
        self._up: dict[NodeId, Node] = {}
        self._seen: dict[NodeId, Node] = {}
        self._models: dict[CardModel, None] = {}
        self._rows: dict[str, list[Claim]] = {}
        self._start = at
        self._stale: int | None = at
        self._short = Gauge(at)  # 1 while the pool has less than the nominals below it add up to
        self._charges: dict[tuple[Asked, ...], Charge] = {}
        self._held: dict[tuple[tuple[Request, ...], tuple[CardModel | None, ...]], tuple[Asked, ...]] = {}
        self._asked: dict[tuple[Request, ...], tuple[Asked, ...]] = {}
        self._paths: dict[str, tuple[list[Claim], ...]] = {}
        self._tree: QueueTree = grow_tree((), {})

    @property
    def stated(self) -> bool:
        """Whether any queue has a quota."""
        return bool(self._named)

    # --- machines --------------------------------------------------------------------------------------

    def join(self, node: Node, at: int) -> None:
        """A node is there, with what it now reports."""
        self._change(at)
        self._up[node.id] = self._seen[node.id] = node
        known = len(self._models)
        self._models.update(dict.fromkeys(card.model for card in node.cards))
        if len(self._models) != known:
            self._asked.clear()

    def lose(self, node: NodeId, at: int) -> None:
        """A node stopped answering."""
        self._change(at)
        self._up.pop(node, None)

    # --- jobs ------------------------------------------------------------------------------------------

    def want(self, job: Job, at: int) -> Ticket:
        """`job` waits for nothing but its turn and room: its queue wants what it asks for."""
        return self._open(job, self._wish(job), False, at)

    def hold(self, job: Job, placements: tuple[Placement, ...], at: int) -> Ticket:
        """`job` holds `placements`."""
        models = self._models_of(placements[: len(job.members)])
        job = as_granted(job, placements)
        key = (job.members, tuple(models))
        asked = self._held.get(key)
        if asked is None:
            asked = self._held[key] = ask_of(job.members, tuple(models))
        return self._open(job, asked, True, at)

    def drop(self, ticket: Ticket, at: int) -> None:
        """What `ticket` stands for is over."""
        self._freshen(at)
        _shift(ticket, -1, at)

    def read(self, at: int) -> tuple[QueueReading, ...]:
        """Every queue with jobs, and every written one with quotas; parents first, then by name.

        None where there is but one queue and no quota: nothing is divided then.
        """
        self._freshen(at)
        if not self.stated and len(self._names) < 2:
            return ()
        tree = self._tree
        own: dict[int, list[str]] = {}
        for name in self._names:
            for node in tree.paths[home_of(tree, name)]:
                own.setdefault(node, []).append(name)
        readings = []
        for node, name in enumerate(tree.names[1:], 1):
            below = tuple(own.get(node, ()))
            inner = bool(tree.children[node])
            queue = self._written.get(name)
            stated = queue is not None and bool(quotas_of(queue))
            if stated or (below and (not inner or name in self._written)):
                slots = tree.named[node] if self.stated else (0,)
                row = self._rows[name]
                claims = tuple(row[slot].until(tree.resources[slot], at) for slot in slots)
                readings.append(QueueReading(name, inner, stated, below, claims))
        return tuple(readings)

    @property
    def names(self) -> tuple[str, ...]:
        """The queues that jobs name."""
        return tuple(self._names)

    def overpromised_ms(self, at: int) -> int | None:
        """For how long up to `at` the pool had less than its queues' nominals; None without quotas."""
        self._freshen(at)
        return self._short.until(at) if self.stated else None

    # --- entitlements ----------------------------------------------------------------------------------

    def _change(self, at: int) -> None:
        """Nodes change at `at`; several in one instant are looked at once."""
        if self._stale is not None and self._stale < at:
            self._grow(self._stale)
        self._stale = at

    def _freshen(self, at: int) -> None:
        if self._stale is not None:
            self._grow(min(self._stale, at))

    def _grow(self, at: int) -> None:
        """Compile the tree for the cards there are, and give every claim its entitlement from `at` on."""
        self._stale = None
        capacity = self._capacity()
        if self._written:
            tree = grow_tree(self._written.values(), capacity)
        else:
            tree = grow_tree([Queue(name) for name in self._names if _is_name(name)], capacity)
        self._tree = tree
        self._short.put(int(bool(tree.scarce)), at)
        split = None if self.stated else self._split(tree, capacity[CARDS])
        for node, name in enumerate(tree.names):
            row = self._rows.get(name)
            if row is None:
                row = self._rows[name] = [Claim(self._start) for _ in tree.resources]
            entitled = tree.entitled[node] if split is None else (split[node],)
            mosts = map(sum, zip(tree.entitled[node], tree.headroom[node], strict=True))
            for claim, amount, most in zip(row, entitled, mosts, strict=True):
                if claim.entitled != amount or claim.most != most:
                    claim.settle(at)
                    claim.entitled, claim.most = amount, most
        rows = self._rows
        self._paths = {
            name: tuple(rows[tree.names[node]] for node in tree.paths[home_of(tree, name)][:-1])
            for name in self._names
        }

    def _capacity(self) -> dict[Resource, int]:
        """What all nodes that answer have of the resources looked at; left out where a rate is unknown."""
        cards: dict[CardModel, int] = {}
        for node in self._up.values():
            for card in node.cards:
                cards[card.model] = cards.get(card.model, 0) + 1
        asked = tuple(
            Asked(model.name, FULL * count, model.usable_mib * count) for model, count in cards.items()
        )
        amounts = self._amounts(asked)
        unknown = {
            resource for resource, table in self._tables() if any(part.model not in table for part in asked)
        }
        return {resource: amounts.get(resource, 0) for resource in self._resources if resource not in unknown}

    def _split(self, tree: QueueTree, cards: int) -> list[int]:
        """All cards by weight, level by level, among the queues that have jobs at or below them."""
        active = {node for name in self._names for node in tree.paths[home_of(tree, name)]}
        share = [0] * len(tree.names)
        share[ROOT] = cards
        for node, below in enumerate(tree.children):
            who = [child for child in below if child in active]
            weights = [tree.weight[child] for child in who]
            if not any(weights):
                weights = [1] * len(who)
            for child, weight in zip(who, weights, strict=True):
                share[child] = share[node] * weight // sum(weights)
        return share

    # --- charges ---------------------------------------------------------------------------------------

    def _open(self, job: Job, asked: tuple[Asked, ...], holds: bool, at: int) -> Ticket:
        if job.queue not in self._names:
            self._names[job.queue] = None
            self._change(at)
        self._freshen(at)
        charge = self._charges.get(asked)
        if charge is None:
            charge = self._charges[asked] = self._charge(asked)
        ticket = Ticket(self._paths[job.queue], charge, holds)
        _shift(ticket, 1, at)
        return ticket

    def _wish(self, job: Job) -> tuple[Asked, ...]:
        """What `job` would be charged on the first models known that take its members; () where none do."""
        asked = self._asked.get(job.members)
        if asked is None:
            models = [
                next(
                    (model for model in self._models if request.cards and accepts(request.profile, model)),
                    None,
                )
                for request in job.members
            ]
            asked = self._asked[job.members] = ask_of(job.members, tuple(models))
        return asked

    def _models_of(self, placements: tuple[Placement, ...]) -> list[CardModel | None]:
        """The model each member got; a scattered job's parts are charged as its one member."""
        models: list[CardModel | None] = []
        for place in placements:
            node, card = self._seen.get(place.node), place.cards[0] if place.cards else None
            cards = node.cards if node is not None else ()
            models.append(next((one.model for one in cards if one.uuid == card), None))
        return models

    def _charge(self, asked: tuple[Asked, ...]) -> Charge:
        amounts, slot = self._amounts(asked), {name: at for at, name in enumerate(self._tree.resources)}
        return tuple(
            (slot[resource], amount) for resource, amount in amounts.items() if amount and resource in slot
        )

    def _amounts(self, asked: Iterable[Asked]) -> dict[Resource, int]:
        """The rule of `charging.amounts_of`, by model: what has no rate is left out."""
        amounts: dict[Resource, int] = {}
        tables = self._tables()
        for part in asked:
            for resource, amount in (
                (CARDS, part.milli),
                (Resource(Measure.CARDS, part.model), part.milli),
                (MEMORY, part.mib),
                *(
                    (resource, -(-part.milli * table.get(part.model, 0) // FULL))
                    for resource, table in tables
                ),
            ):
                amounts[resource] = amounts.get(resource, 0) + amount
        return amounts

    def _tables(self) -> list[tuple[Resource, dict[str, int]]]:
        if self._rates is None:
            return []
        return [(COMPUTE, dict(self._rates.compute_milli)), (MONEY, dict(self._rates.cents_a_month))]


def _shift(ticket: Ticket, sign: int, at: int) -> None:
    for row in ticket.rows:
        for slot, amount in ticket.charge:
            claim = row[slot]
            claim.settle(at)
            if ticket.holds:
                claim.usage += sign * amount
            else:
                claim.waiting += sign * amount


def _is_name(name: str) -> bool:
    """Whether `name` can be a queue of a tree; jobs of others count as jobs of the pool itself."""
    parts = name.split("/")
    return all(part.strip() == part and part not in {"", OWN} for part in parts)
