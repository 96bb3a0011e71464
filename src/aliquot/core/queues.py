"""Who may ask for how much: the queues of a pool, as their owner wrote them.

A name is a path (`ai-lab/training`), any depth; what lies above a queue need not be written down. The name
`""` is the pool itself: its nominal is the pool's capacity unless stated. A limit is one of three things:
absent (`None`), a number (0 included), or `UNLIMITED`. What absent means is decided here, per limit:

    nominal     absent = 0 of its own; a queue with children has at least what they have
    borrowing   absent = unlimited, as far as others lend
    lending     absent = all
    maximum     absent = none; nominal and borrowing never lead beyond it

Nothing here is compiled or counted: `queueing.tree` makes numbers of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final, Literal

import msgspec

from aliquot.core.errors import SpecError
from aliquot.core.units import FULL, format_memory

POOL: Final = ""
"""The name of the root: the pool itself."""

FULL_WEIGHT: Final = 1000


class Discipline(Enum):
    """What a waiting job does to those behind it in its queue."""

    STRICT = "strict-fifo"  # nothing passes the first job that does not fit
    BEST_EFFORT = "best-effort"  # later jobs start where they fit


class Unlimited(Enum):
    """The limit that somebody wrote down as none. It is not the same as saying nothing."""

    UNLIMITED = "unlimited"


UNLIMITED: Final = Unlimited.UNLIMITED
Limit = int | Literal[Unlimited.UNLIMITED] | None


class Measure(Enum):
    """What a quota counts."""

    CARDS = "cards"  # milli-cards, as asked; of one model or of any
    MEMORY = "memory"  # GPU memory as asked, MiB
    COMPUTE = "compute"  # milli-cards of a reference model
    MONEY = "money"  # cents a month at the rate of what runs now


class Resource(msgspec.Struct, frozen=True):
    """One thing quotas are about. `model` narrows CARDS to cards of that model; "" is any."""

    measure: Measure
    model: str = ""

    def __str__(self) -> str:
        return f"{self.measure.value} {self.model}" if self.model else self.measure.value


MEMORY: Final = Resource(Measure.MEMORY)
CARDS: Final = Resource(Measure.CARDS)
COMPUTE: Final = Resource(Measure.COMPUTE)
MONEY: Final = Resource(Measure.MONEY)


class Quota(msgspec.Struct, frozen=True):
    """The limits of one queue in one resource, in the unit of its measure."""

    resource: Resource
    nominal: Limit = None
    borrowing: Limit = None
    lending: Limit = None
    maximum: Limit = None


class Queue(msgspec.Struct, frozen=True):
    """A queue such as `ai-lab/training`. `nominal_mib` is short for a nominal of GPU memory."""

    name: str
    priority: int | None = None  # None: that of the queue above; 0 where none says
    nominal_mib: int | None = None
    quotas: tuple[Quota, ...] = ()
    weight: int = FULL_WEIGHT  # thousandths; 0: gets beyond its nominal only what nobody else wants
    discipline: Discipline | None = None  # None: as the policy says
    parent: str | None = None  # None: the path before the last "/"
    budget_cents: int | None = None  # to be used in a calendar month; None: none is kept
    spent_grace_ms: int | None = None  # its jobs are stopped so once that is used up; None: they run on


def quotas_of(queue: Queue) -> tuple[Quota, ...]:
    """All quotas of `queue`, `nominal_mib` among them."""
    if queue.nominal_mib is None:
        return queue.quotas
    return (*queue.quotas, Quota(MEMORY, nominal=queue.nominal_mib))


def parent_of(queue: Queue) -> str:
    """The name of the queue above; the pool's where there is no other. The pool is above itself."""
    if queue.parent is not None:
        return queue.parent
    return queue.name.rpartition("/")[0]


def priority_of(name: str, written: Mapping[str, Queue]) -> int:
    """The priority of jobs of `name`: its own, else of the nearest queue above that states one, else 0.

    `written` has passed `check_queues`: nobody is above itself.
    """
    while name != POOL:
        queue = written.get(name, Queue(name))
        if queue.priority is not None:
            return queue.priority
        name = parent_of(queue)
    return written[POOL].priority or 0 if POOL in written else 0


def show_amount(resource: Resource, amount: int) -> str:
    """An amount as people write it: `4.5` (of cards), `40 GiB`, `12.50` (of money)."""
    if resource.measure is Measure.MEMORY:
        return format_memory(amount)
    return f"{amount / 100:.2f}" if resource.measure is Measure.MONEY else f"{amount / FULL:g}"


def ancestors_by_path(name: str) -> list[str]:
    """`a/b`, `a` and the pool for `a/b/c`: where a queue's jobs belong once it is gone."""
    found = []
    while name:
        name = name.rpartition("/")[0]
        found.append(name)
    return found


def check_queues(queues: Iterable[Queue]) -> None:
    """Raise SpecError, naming queue, value and what would be right, on the first thing that is wrong.

    Checks each queue by itself (name, weight, quotas), duplicates, unknown parents and cycles. What children
    ask of a parent is checked where the sums are made, in `queueing.tree`.
    """
    known: dict[str, Queue] = {}
    for queue in queues:
        _check_name(queue)
        if queue.name in known:
            raise SpecError(f"queue {queue.name!r} is there twice", field="queues", value=queue.name)
        _check_numbers(queue)
        known[queue.name] = queue
    for queue in known.values():
        _check_parent(queue, known)
    _check_cycles(known)


def find_queue(name: str, known: Iterable[str]) -> str:
    """`name` if it is among `known` (the pool always is); else SpecError with what there is."""
    names = sorted(known_name for known_name in known if known_name != POOL)
    if name == POOL or name in names:
        return name
    raise SpecError(f"there is no queue {name!r}", field="queue", value=name, hint=_one_of(names))


def _one_of(names: list[str], most: int = 12) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"one of {', '.join(names[:most])}{more}" if names else "no queue is known"


def _check_name(queue: Queue) -> None:
    if queue.name == POOL:
        return
    if any(part.strip() != part or part in {"", "*"} for part in queue.name.split("/")):
        raise SpecError(
            f"{queue.name!r} is not the name of a queue",
            field="queues.name",
            value=queue.name,
            hint="parts joined by single slashes, such as ai-lab/training",
        )


def _check_numbers(queue: Queue) -> None:
    where = f"queues[{queue.name}]"
    if queue.weight < 0:
        raise SpecError(
            f"weight {queue.weight} is negative",
            field=f"{where}.weight",
            value=queue.weight,
            hint="0 or more",
        )
    seen = set()
    for quota in quotas_of(queue):
        if quota.resource in seen:
            raise SpecError(f"two quotas for {quota.resource}", field=where, value=str(quota.resource))
        seen.add(quota.resource)
        if queue.name == POOL:
            _check_pool(quota, f"{where}.{quota.resource}")
        _check_quota(quota, f"{where}.{quota.resource}")


def _check_pool(quota: Quota, where: str) -> None:
    """The pool has a nominal and nobody above it: any other limit of it would be read and never obeyed."""
    for name in ("borrowing", "lending", "maximum"):
        limit = getattr(quota, name)
        if limit is not None:
            word = limit.value if isinstance(limit, Unlimited) else show_amount(quota.resource, limit)
            raise SpecError(
                f"the pool itself has no {name}, as there is nobody above it",
                field=f"{where}.{name}",
                value=word,
                hint="its nominal is all that may be used; leave the rest out",
            )


def _check_quota(quota: Quota, where: str) -> None:
    for name in ("nominal", "borrowing", "lending", "maximum"):
        limit = getattr(quota, name)
        if isinstance(limit, int) and limit < 0:
            raise SpecError(
                f"{name} {limit} is negative", field=f"{where}.{name}", value=limit, hint="0 or more"
            )
    if quota.nominal is UNLIMITED:
        raise SpecError(
            "a nominal quota is a promise and cannot be unlimited",
            field=f"{where}.nominal",
            value="unlimited",
            hint="give a number; leave borrowing out to let the queue take whatever is free",
        )
    if isinstance(quota.maximum, int) and isinstance(quota.nominal, int) and quota.maximum < quota.nominal:
        raise SpecError(
            f"maximum {quota.maximum} is below nominal {quota.nominal}",
            field=f"{where}.maximum",
            value=quota.maximum,
            hint=f"{quota.nominal} or more",
        )


def _check_parent(queue: Queue, known: Mapping[str, Queue]) -> None:
    if queue.parent in {None, POOL} or queue.parent in known:
        return
    raise SpecError(
        f"queue {queue.name!r} names a parent that is not there: {queue.parent!r}",
        field=f"queues[{queue.name}].parent",
        value=queue.parent,
        hint=f"declare it, leave parent out, or {_one_of(sorted(known))}",
    )


def _check_cycles(known: Mapping[str, Queue]) -> None:
    fine = {POOL}
    for start in known:
        walk: list[str] = []
        name = start
        while name not in fine:
            if name in walk:
                circle = [*walk[walk.index(name) :], name]
                raise SpecError(
                    f"queues are above themselves: {' < '.join(circle)}",
                    field=f"queues[{name}].parent",
                    value=circle[1],
                    hint="one of them needs another parent",
                )
            walk.append(name)
            name = parent_of(known.get(name, Queue(name)))
        fine.update(walk)
