"""The queue tree in numbers: what each node is entitled to, keeps for itself, lends and may borrow.

A tree is compiled once per (queues, capacity) and never changes; usage lives in `queueing.quota`. Only
leaves hold jobs: a queue with children, and the pool, get a leaf `NAME/*` for jobs of their own, entitled to
what the children do not name.

Four numbers per node and resource, following from each other from the leaves up:

    entitled   what the node and all below it are promised
    shared     entitled, less what its children keep back: what it and its children draw from first
    kept       the part of shared that is not lent, so nobody above sees it
    headroom   how far above shared it may go on what others lend: borrowing, cut by the hard maximum

With entitled 10, lending 4: kept 6. The parent then has 4 of it to give away. What children keep back is
taken from their parent's `shared`, so no sum of promises is given out twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from aliquot.core.errors import SpecError
from aliquot.core.queues import (
    POOL,
    UNLIMITED,
    Discipline,
    Limit,
    Queue,
    Quota,
    Resource,
    ancestors_by_path,
    check_queues,
    find_queue,
    parent_of,
    priority_of,
    quotas_of,
    show_amount,
)

UNBOUNDED: Final = 2**62
"""More than any amount: the number that `UNLIMITED` and unknown capacities become."""

OWN: Final = "*"
ROOT: Final = 0

Row = tuple[int, ...]
"""One number per resource of the tree, in its order."""


class QueueTree(NamedTuple):
    """All queues of a pool. Node 0 is the pool; a parent stands before its children."""

    names: tuple[str, ...]
    node_of: dict[str, int]
    parent: tuple[int, ...]  # of node 0: -1
    children: tuple[tuple[int, ...], ...]
    paths: tuple[tuple[int, ...], ...]  # from the node up to the pool, both included
    resources: tuple[Resource, ...]
    slot: dict[Resource, int]
    entitled: tuple[Row, ...]
    shared: tuple[Row, ...]
    kept: tuple[Row, ...]
    headroom: tuple[Row, ...]
    reach: tuple[Row, ...]  # the most the node could ever use while all others are idle
    scarce: tuple[int, ...]  # resources of which the pool has less than the queues below it are promised
    withheld: tuple[int, ...]  # resources of which the pool may use less than there is: its nominal says so
    named: tuple[tuple[int, ...], ...]  # resources it is judged in: those it names, or all
    limited: tuple[int, ...]  # resources that somebody has a quota of
    weight: tuple[int, ...]
    priority: tuple[int, ...]
    discipline: tuple[Discipline | None, ...]


def grow_tree(queues: Iterable[Queue], capacity: Mapping[Resource, int]) -> QueueTree:
    """Compile `queues` over a pool of `capacity`; a resource the pool cannot count is unbounded there.

    Raises SpecError on what `check_queues` finds, and where children are promised more than a stated nominal
    or maximum of their parent.
    Only the pool may be promised away beyond its capacity (`overpromised`): nodes get lost.
    """
    written = {queue.name: queue for queue in queues}
    check_queues(written.values())
    names, parent = _lay_out(written)
    children: list[list[int]] = [[] for _ in names]
    for node, above in enumerate(parent[1:], 1):
        children[above].append(node)
    paths: list[tuple[int, ...]] = [(ROOT,)]
    for node, above in enumerate(parent[1:], 1):
        paths.append((node, *paths[above]))
    resources = tuple(
        sorted(
            {*capacity, *(quota.resource for queue in written.values() for quota in quotas_of(queue))},
            key=str,
        )
    )
    quotas = [_by_resource(written.get(name)) for name in names]
    columns = [_column(names, children, quotas, capacity, resource) for resource in resources]
    reach = [_reach(parent, *column) for column in columns]
    rows = [tuple(_rows(table)) for table in zip(*columns, strict=True)] or [((),) * len(names)] * 4
    return QueueTree(
        names=tuple(names),
        node_of={name: node for node, name in enumerate(names)},
        parent=tuple(parent),
        children=tuple(tuple(below) for below in children),
        paths=tuple(paths),
        resources=resources,
        slot={resource: slot for slot, resource in enumerate(resources)},
        entitled=rows[0],
        shared=rows[1],
        kept=rows[2],
        headroom=rows[3],
        reach=tuple(_rows(reach)) if reach else ((),) * len(names),
        scarce=tuple(slot for slot, column in enumerate(columns) if _is_scarce(names, children, column[0])),
        withheld=_withheld(resources, columns, capacity),
        named=_named(quotas, children, resources),
        limited=tuple(
            slot for slot, resource in enumerate(resources) if any(resource in own for own in quotas)
        ),
        weight=tuple(written[name].weight if name in written else 1000 for name in names),
        priority=tuple(priority_of(name.removesuffix(f"/{OWN}"), written) for name in names),
        discipline=tuple(_discipline(name, written) for name in names),
    )


def leaf_of(tree: QueueTree, name: str) -> int:
    """The leaf that holds jobs of the queue `name`. SpecError where there is none."""
    if name not in tree.node_of or OWN in name:
        name = find_queue(name, (known for known in tree.names if OWN not in known))
    return _own_leaf(tree, tree.node_of[name])


def home_of(tree: QueueTree, name: str) -> int:
    """As `leaf_of`, but jobs of a queue that is gone are counted at the nearest queue above that is left."""
    for candidate in (name, *ancestors_by_path(name)):
        if candidate in tree.node_of:
            return _own_leaf(tree, tree.node_of[candidate])
    return _own_leaf(tree, ROOT)


def overpromised(tree: QueueTree) -> dict[Resource, int]:
    """By how much the nominals below the pool exceed what the pool has; only what does."""
    found = {}
    for resource, slot in tree.slot.items():
        promised = sum(
            tree.entitled[child][slot] for child in tree.children[ROOT] if tree.names[child] != OWN
        )
        if promised > tree.entitled[ROOT][slot]:
            found[resource] = promised - tree.entitled[ROOT][slot]
    return found


def less(amount: int, taken: int) -> int:
    """`amount` minus `taken`; taking from UNBOUNDED leaves it unbounded."""
    return amount if amount >= UNBOUNDED else amount - taken


def _lay_out(written: Mapping[str, Queue]) -> tuple[list[str], list[int]]:
    """Names and parents, parents first: the pool, then by name, each inner node followed by its own leaf."""
    above: dict[str, str] = {}
    for name in written:
        while name != POOL and name not in above:
            above[name] = parent_of(written.get(name, Queue(name)))
            name = above[name]  # noqa: PLW2901 - the walk up starts where the loop says
    below: dict[str, list[str]] = {}
    for name in sorted(above):
        below.setdefault(above[name], []).append(name)
    names, parents = [POOL], [-1]
    at = 0
    while at < len(names):
        if names[at] in below or at == ROOT:
            own = OWN if at == ROOT else f"{names[at]}/{OWN}"
            for child in (*below.get(names[at], ()), own):
                names.append(child)
                parents.append(at)
        at += 1
    return names, parents


def _by_resource(queue: Queue | None) -> dict[Resource, Quota]:
    return {} if queue is None else {quota.resource: quota for quota in quotas_of(queue)}


Column = tuple[list[int], list[int], list[int], list[int]]


def _column(
    names: list[str],
    children: list[list[int]],
    quotas: list[dict[Resource, Quota]],
    capacity: Mapping[Resource, int],
    resource: Resource,
) -> Column:
    """(entitled, shared, kept, headroom) of every node in one resource, leaves first."""
    size = len(names)
    entitled, shared, kept, headroom = [0] * size, [0] * size, [0] * size, [0] * size
    reserved = [0] * size  # kept by the node and everything below it
    nothing = Quota(resource)
    for node in reversed(range(size)):
        quota = quotas[node].get(resource, nothing)
        promised = sum(entitled[child] for child in children[node])
        if node == ROOT:
            entitled[node] = _bound(quota.nominal, capacity.get(resource, UNBOUNDED))
        elif quota.nominal is None:
            entitled[node] = promised
        else:
            entitled[node] = _bound(quota.nominal, 0)
            if promised > entitled[node]:
                raise _too_much_below(names[node], resource, promised, entitled[node], "nominal")
        if node != ROOT and promised > _bound(quota.maximum, UNBOUNDED):
            raise _too_much_below(names[node], resource, promised, _bound(quota.maximum, 0), "maximum")
        if children[node]:
            own = children[node][-1]
            entitled[own] = max(0, less(entitled[node], promised))
            shared[own] = entitled[own]
        shared[node] = less(entitled[node], sum(reserved[child] for child in children[node]))
        lent = min(max(0, shared[node]), _bound(quota.lending, UNBOUNDED))
        kept[node] = 0 if node == ROOT else max(0, less(shared[node], lent))
        reserved[node] = min(UNBOUNDED, less(entitled[node], lent)) if lent < UNBOUNDED else 0
        headroom[node] = _headroom(quota, entitled[node])
    headroom[ROOT] = 0
    return entitled, shared, kept, headroom


def _is_scarce(names: list[str], children: list[list[int]], entitled: list[int]) -> bool:
    """Whether the pool cannot keep all its promises in one resource."""
    return sum(entitled[child] for child in children[ROOT] if names[child] != OWN) > entitled[ROOT]


def _withheld(
    resources: tuple[Resource, ...], columns: Iterable[Column], capacity: Mapping[Resource, int]
) -> tuple[int, ...]:
    """Slots in which the pool's stated nominal is below what there is."""
    there = (capacity.get(resource, UNBOUNDED) for resource in resources)
    entitled = (column[0][ROOT] for column in columns)
    return tuple(slot for slot, (own, has) in enumerate(zip(entitled, there, strict=True)) if own < has)


def _headroom(quota: Quota, entitled: int) -> int:
    """What may be borrowed on top: borrowing 8, nominal 10, maximum 12 give 2."""
    borrowing = _bound(quota.borrowing, UNBOUNDED)
    maximum = _bound(quota.maximum, UNBOUNDED)
    return min(borrowing, less(maximum, entitled) if maximum < UNBOUNDED else UNBOUNDED)


def _bound(limit: Limit, absent: int) -> int:
    """A limit as a number, `absent` where nothing is said."""
    if limit is None:
        return absent
    return UNBOUNDED if limit is UNLIMITED else limit


def _reach(
    parent: list[int], entitled: list[int], shared: list[int], kept: list[int], headroom: list[int]
) -> list[int]:
    reach = [max(0, entitled[ROOT])] + [0] * (len(parent) - 1)
    for node in range(1, len(parent)):
        most = min(kept[node] + reach[parent[node]], UNBOUNDED, entitled[node] + headroom[node])
        reach[node] = max(0, min(most, reach[ROOT]))
    return reach


def _named(
    quotas: list[dict[Resource, Quota]], children: list[list[int]], resources: tuple[Resource, ...]
) -> tuple[tuple[int, ...], ...]:
    """What each node is judged in: what it has quotas for, else what those below it have, else all."""
    found: list[set[int]] = [
        {slot for slot, resource in enumerate(resources) if resource in own} for own in quotas
    ]
    for node in reversed(range(len(found))):
        if not found[node]:
            found[node] = set().union(*(found[child] for child in children[node]))
    every = range(len(resources))
    return tuple(tuple(sorted(slots or every)) for slots in found)


def _discipline(name: str, written: Mapping[str, Queue]) -> Discipline | None:
    """Its own, or that of the nearest queue above that states one."""
    for candidate in (name, *ancestors_by_path(name)):
        if candidate in written and written[candidate].discipline is not None:
            return written[candidate].discipline
    return None


def _rows(columns: Iterable[list[int]]) -> list[Row]:
    return list(zip(*columns, strict=True))


def _own_leaf(tree: QueueTree, node: int) -> int:
    return tree.children[node][-1] if tree.children[node] else node


def _too_much_below(name: str, resource: Resource, promised: int, stated: int, limit: str) -> SpecError:
    asked, has = show_amount(resource, promised), show_amount(resource, stated)
    may = "it has" if limit == "nominal" else "it may never have more than"
    return SpecError(
        f"the queues below {name!r} are promised {asked} of {resource}, {may} {has}",
        field=f"queues[{name}].{resource}.{limit}",
        value=has,
        hint=f"{asked} or more, or leave it out",
    )
