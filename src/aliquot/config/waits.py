"""What jobs wait for: `after` lists jobs that have to end, `afterOk` those that have to succeed.

A name stands for everything its document makes: all replicas, all jobs of an array. One of them alone has its
own name, such as `prepare-3`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from aliquot.config.fields import Field, Table
from aliquot.config.readers import name
from aliquot.config.tree import Item, nearest
from aliquot.core.errors import SpecError
from aliquot.core.ids import JobId
from aliquot.core.jobs import After, When
from aliquot.core.queueing.deps import Edge, check_edges

MOST_EDGES: Final = 1_000_000
KEYS: Final = {"after": When.ENDED, "afterOk": When.SUCCEEDED}


def _listed(item: Item) -> tuple[Item, ...]:
    found = item.elements() if item.items is not None else (item,)
    for child in found:
        name(child)
    return found


WAITS: Final[Table] = {key: Field(_listed) for key in KEYS}


class Group(NamedTuple):
    """One job document and the jobs it makes."""

    word: str
    spec: Item
    ids: tuple[JobId, ...]


def read_waits(spec: Item) -> Iterator[tuple[Item, When]]:
    """What a job document waits for, as written; fails on a name that stands there twice."""
    seen: set[str] = set()
    for key, when in KEYS.items():
        item = spec.get(key)
        for child in () if item is None else _listed(item):
            if child.scalar() in seen:
                child.fail(f"{child.text!r} stands there twice", "keep one: afterOk says more than after")
            seen.add(child.scalar())
            yield child, when


def link_groups(groups: Sequence[Group]) -> dict[str, tuple[After, ...]]:
    """The edges of each group that has any. Fails on unknown jobs, on circles, and beyond MOST_EDGES."""
    by_word = {group.word: group for group in groups}
    owner = {id_: group.word for group in groups for id_ in group.ids}
    found: dict[str, tuple[After, ...]] = {}
    between: list[Edge] = []
    total = 0
    for group in groups:
        edges: dict[JobId, After] = {}
        for item, when in read_waits(group.spec):
            ids = _resolve(item, group.word, by_word, owner)
            edges |= {id_: After(id_, when) for id_ in ids}
            between.append(Edge(JobId(group.word), JobId(owner[ids[0]]), when))
            total += len(ids) * len(group.ids)
            if total > MOST_EDGES:
                item.fail(
                    "jobs wait for each other in too many ways", f"{MOST_EDGES} at most: put a job between"
                )
        if edges:
            found[group.word] = tuple(edges.values())
    _check_circles(by_word, between)
    return found


def _resolve(
    item: Item, waiting: str, by_word: Mapping[str, Group], owner: Mapping[JobId, str]
) -> tuple[JobId, ...]:
    word = item.scalar()
    if word not in by_word and JobId(word) not in owner:
        others = [other for other in by_word if other != waiting]
        item.fail(
            f"there is no job {word!r} to wait for", nearest(word, others) or "a job of these documents"
        )
    return by_word[word].ids if word in by_word else (JobId(word),)


def _check_circles(groups: Mapping[str, Group], between: Sequence[Edge]) -> None:
    """Fail at the first circle. Documents stand for their jobs: all jobs of one wait for the same."""
    try:
        check_edges(between, [JobId(word) for word in groups])
    except SpecError as error:
        start = next(word for word in groups if error.field.startswith(f"jobs[{word}]"))
        item = next(item for item, _ in read_waits(groups[start].spec) if _points_to(item, error, groups))
        raise item.error(error.message, error.hint) from error


def _points_to(item: Item, error: SpecError, groups: Mapping[str, Group]) -> bool:
    """Whether `item` is the edge to `error.value`, or to one of the jobs it makes."""
    word = str(error.value)
    return item.text == word or (word in groups and item.text in groups[word].ids)
