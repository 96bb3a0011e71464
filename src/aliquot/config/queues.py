"""Queues of documents: who may ask for how much, of what, and what is lent and borrowed.

A limit is a number, `0`, the word `unlimited`, or not there at all; the four stay different. A plain number
where a quota stands is its nominal.

    quota:
      cards: 16                        # of any model
      gpuMemory: {nominal: 320GB, borrowing: 0}
    quota:
      cards:
        any: {nominal: 16, maximum: 24}
        H100-SXM5-80GB: {nominal: 8, lending: 0}
      compute: 12                      # cards of the reference model, by the site's `rates`
      money: {nominal: 20000, borrowing: unlimited}     # a month, by the site's `rates`
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NoReturn

from aliquot.config.fields import Field, Reader, Table, read_fields
from aliquot.config.readers import (
    choice,
    moment,
    money,
    path_name,
    quota_memory,
    thousandths,
    whole,
)
from aliquot.config.shelf import ModelNames
from aliquot.config.tree import Item
from aliquot.core.errors import DocumentError, SpecError
from aliquot.core.inventory import Node
from aliquot.core.queueing.tree import grow_tree, overpromised
from aliquot.core.queues import (
    CARDS,
    MEMORY,
    POOL,
    UNLIMITED,
    Discipline,
    Limit,
    Measure,
    Queue,
    Quota,
    Resource,
    ancestors_by_path,
    check_queues,
    priority_of,
    quotas_of,
)
from aliquot.core.settings import Rates
from aliquot.core.units import FULL, format_memory

ANY: Final = "any"
NO_LIMIT: Final = "unlimited"


def queue_name(item: Item) -> str:
    """The path of a queue; `""` in quotes is the pool itself."""
    return POOL if item.text == "" and not item.plain else path_name(item)


def _limit(amount: Reader) -> Reader:
    """A reader of `unlimited` or an amount."""

    def read(item: Item) -> Limit:
        word = item.scalar()
        if word == NO_LIMIT:
            return UNLIMITED
        if word.isalpha() or word.startswith("."):
            item.fail(f"{word!r} is not a limit", f"an amount or {NO_LIMIT}; leave it out to say nothing")
        found: int = amount(item)
        return found

    return read


def limits_of(amount: Reader) -> Table:
    """The table of one quota whose amounts are read by `amount`."""
    return {word: Field(_limit(amount)) for word in ("nominal", "borrowing", "lending", "maximum")}


LIMITS: Final[Table] = limits_of(thousandths)
AMOUNTS: Final[Mapping[str, tuple[Measure, Reader]]] = {
    "cards": (Measure.CARDS, thousandths),
    "gpuMemory": (Measure.MEMORY, quota_memory),
    "compute": (Measure.COMPUTE, thousandths),
    "money": (Measure.MONEY, money),
}
QUOTA: Final[Table] = {word: Field(lambda item: item) for word in AMOUNTS}
QUEUE: Final[Table] = {
    "parent": Field(queue_name),
    "priority": Field(whole),
    "weight": Field(thousandths),
    "discipline": Field(choice(Discipline)),
    "gpuMemory": Field(quota_memory, "nominal_mib"),
    "quota": Field(lambda item: item, "quotas"),
    "budget": Field(lambda item: item),
}
BUDGET: Final[Table] = {
    "money": Field(money, "budget_cents", required=True),
    "stop": Field(moment, "spent_grace_ms"),
}
LISTED: Final[Table] = {"name": Field(queue_name, required=True), **QUEUE}


def read_queue(name: str, item: Item, names: ModelNames) -> Queue:
    """The queue `name` of a map of its fields."""
    return _queue(name, read_fields(item, QUEUE), names)


def read_listed(item: Item, names: ModelNames) -> Queue:
    """A queue of a list, with its name among its fields."""
    values = read_fields(item, LISTED)
    return _queue(values.pop("name"), values, names)


def _queue(name: str, values: dict[str, Any], names: ModelNames) -> Queue:
    quotas: Item | None = values.pop("quotas", None)
    values |= _read_budget(values.pop("budget", None))
    return Queue(name, quotas=() if quotas is None else _read_quotas(quotas, names), **values)


def _read_budget(item: Item | None) -> dict[str, Any]:
    """`budget: 1000` is money for each calendar month; a map also says what happens once it is used."""
    if item is None:
        return {}
    return {"budget_cents": money(item)} if item.text is not None else read_fields(item, BUDGET)


def _read_quotas(item: Item, names: ModelNames) -> tuple[Quota, ...]:
    found: list[Quota] = []
    for word, child in read_fields(item, QUOTA).items():
        measure, amount = AMOUNTS[word]
        if measure is Measure.CARDS and child.entries and not _says_limits(child):
            found += _by_model(child, amount, names)
        else:
            found.append(_read_quota(child, Resource(measure), amount))
    if not found:
        item.fail("a quota that says nothing", f"one of {', '.join(AMOUNTS)}, or leave it out")
    return tuple(found)


def _says_limits(item: Item) -> bool:
    """Whether a map of cards has limits, not models, as its keys; one limit among them is enough."""
    return any(key in LIMITS for key, _ in item.fields())


def _by_model(item: Item, amount: Reader, names: ModelNames) -> list[Quota]:
    """Quotas of cards by model; `any` counts cards of every model."""
    found: dict[str, Quota] = {}
    for key, child in item.fields():
        model = "" if key == ANY else _model(key, child, names)
        if model in found:
            child.fail(f"a second quota of {model}", "keep one")
        found[model] = _read_quota(child, Resource(Measure.CARDS, model), amount)
    return list(found.values())


def _model(key: str, child: Item, names: ModelNames) -> str:
    named = Item(child.file, child.line, child.path, text=key)
    model = names.find(named)
    if model is None:
        child.fail(
            f"unknown GPU model {key!r}", f"{names.hint(key)} `{ANY}` counts all; limits: {', '.join(LIMITS)}"
        )
    return model.name


def _read_quota(item: Item, resource: Resource, amount: Reader) -> Quota:
    """A quota from a plain number, its nominal, or a map of limits."""
    if item.entries is None:
        return Quota(resource, nominal=_limit(amount)(item))
    values = read_fields(item, limits_of(amount))
    if not values:
        item.fail("a quota that says nothing", f"one of {', '.join(LIMITS)}, or leave it out")
    quota = Quota(resource, **values)
    if isinstance(quota.nominal, int) and isinstance(quota.maximum, int) and quota.maximum < quota.nominal:
        written, most = item.get("nominal") or item, item.get("maximum") or item
        most.fail(f"maximum {most.text} is below nominal {written.text}", f"{written.text} or more")
    if isinstance(quota.nominal, int) and isinstance(quota.lending, int) and quota.lending > quota.nominal:
        own, lent = item.get("nominal") or item, item.get("lending") or item
        lent.fail(f"lending {lent.text} is above nominal {own.text}", f"{own.text} or less, or leave it out")
    return quota


# --- all of them together ------------------------------------------------------------------------------


def check_together(queues: Sequence[tuple[Queue, Item]]) -> None:
    """Fail where a queue or the tree that all make is wrong: at the queue, or the field of it, that is."""
    items = {queue.name: item for queue, item in queues}
    try:
        check_queues(queue for queue, _ in queues)
        grow_tree([queue for queue, _ in queues], {})
    except SpecError as error:
        _blame(items, error)


def known_queues(queues: Iterable[Queue]) -> list[str]:
    """The queues jobs may name: those written down, and those above them."""
    found: dict[str, None] = {}
    for queue in queues:
        found |= dict.fromkeys(name for name in (queue.name, *ancestors_by_path(queue.name)) if name != POOL)
    return sorted(found)


def priorities_of(queues: Iterable[Queue]) -> dict[str, int]:
    """The priority of jobs that name none, by each queue they may name."""
    written = {queue.name: queue for queue in queues}
    return {name: priority_of(name, written) for name in (*known_queues(written.values()), POOL)}


def queue_notes(queues: Sequence[Queue], nodes: Sequence[Node], rates: Rates) -> list[str]:
    """What to know of the quotas: more promised than there is, and what is not counted for want of rates."""
    named = {quota.resource for queue in queues for quota in quotas_of(queue) if quota.resource.model}
    none = dict.fromkeys(named, 0) if nodes else {}  # a model that no machine has: promises of it are empty
    over = overpromised(grow_tree(queues, none | _capacity(nodes)))
    parts = ", ".join(_amount(resource, amount) for resource, amount in over.items())
    notes = [f"queues are promised more than the pool has: {parts} too much"] if parts else []
    limited = {quota.resource.measure for queue in queues for quota in quotas_of(queue)}
    has_budgets = any(queue.budget_cents is not None for queue in queues)
    models = sorted({card.model.name for node in nodes for card in node.cards})
    prices = rates.cents_a_month
    for what, is_used, table in (
        ("quotas of compute", Measure.COMPUTE in limited, rates.compute_milli),
        ("quotas of money", Measure.MONEY in limited, prices),
        ("budgets", has_budgets, prices),
    ):
        unrated = [model for model in models if model not in dict(table)]
        if is_used and unrated:
            said = f"{what} do not count cards of {', '.join(unrated)}"
            notes.append(f"{said}: the cluster's `rates` do not say what one is worth")
    return notes


def _blame(items: Mapping[str, Item], error: SpecError) -> NoReturn:
    match = re.match(r"queues\[(.*?)\]\.?(.*)", error.field)
    item = items.get(match[1]) if match else None
    if match is None or item is None:
        name = error.value if isinstance(error.value, str) and error.value in items else next(iter(items))
        item, rest = items[name], ""
    else:
        rest = match[2]
    part = _dig(item, rest)
    raise DocumentError(
        error.message,
        file=part.file,
        line=part.line,
        field=f"{part.path}: {error.field}" if part.path else error.field,
        value=error.value,
        hint=error.hint or "keep one",
    ) from error


def _dig(item: Item, rest: str) -> Item:
    """The deepest entry of a queue's `item` that the core's words for a field lead to."""
    what, _, limit = rest.rpartition(".")
    measure, _, model = what.partition(" ")
    spelled = next((word for word, (kind, _) in AMOUNTS.items() if kind.value == measure), measure)
    path = [limit] if not what else ["quota", spelled, *([model] if model else []), limit]
    at = item
    for word in path:
        below = at.get(word)
        if below is None:
            break
        at = below
    if at is item:
        at = item.get(spelled) or item.get("gpu_memory") or item
    return at


def _capacity(nodes: Sequence[Node]) -> dict[Resource, int]:
    """What the pool has of what can be counted without rates."""
    found: dict[Resource, int] = {}
    for node in nodes:
        for card in node.cards:
            for resource, amount in (
                (CARDS, FULL),
                (Resource(Measure.CARDS, card.model.name), FULL),
                (MEMORY, card.model.usable_mib),
            ):
                found[resource] = found.get(resource, 0) + amount
    return found


def _amount(resource: Resource, amount: int) -> str:
    if resource.measure is Measure.MEMORY:
        return f"{format_memory(amount)} of GPU memory"
    return f"{amount / FULL:g} of {resource}"
