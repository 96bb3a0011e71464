"""What a job waits for: the end of others, and room in its own array.

A graph of edges `job after on`; pure functions say what is held, and what one end releases or dooms. A job
whose `after-ok` cannot come true any more is doomed: it will never start, and its end counts as a failure
for those behind it, so doom runs down `after-ok` edges while plain `after` edges are released.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from aliquot.core.errors import SpecError
from aliquot.core.ids import JobId
from aliquot.core.jobs import Array, When


class Edge(NamedTuple):
    """`job` waits until `on` has ended so."""

    job: JobId
    on: JobId
    when: When = When.ENDED


class Release(NamedTuple):
    """What one end does: jobs with nothing left to wait for, and jobs that can never start; by id."""

    freed: tuple[JobId, ...]
    doomed: tuple[JobId, ...]


def check_edges(edges: Iterable[Edge], known: Iterable[JobId]) -> None:
    """SpecError where a job waits for one that is not there, or for itself by way of others (all named)."""
    after: dict[JobId, list[JobId]] = {}
    there = set(known)
    for edge in edges:
        if edge.on not in there:
            raise SpecError(
                f"job {edge.job!r} waits for {edge.on!r}, which is not there",
                field=f"jobs[{edge.job}].{edge.when.value}",
                value=edge.on,
                hint="a job that was submitted before or stands in the same document",
            )
        after.setdefault(edge.job, []).append(edge.on)
    circle = find_cycle(after)
    if circle:
        raise SpecError(
            f"jobs wait for each other: {' after '.join(circle)}",
            field=f"jobs[{circle[0]}]",
            value=circle[1],
            hint="take one of these edges away",
        )


def find_cycle(after: Mapping[JobId, Iterable[JobId]]) -> tuple[JobId, ...]:
    """The first circle in the order of `after`, such as (a, b, a); empty where there is none."""
    done: set[JobId] = set()
    for start in after:
        path: dict[JobId, None] = {}
        stack = [(start, iter(after[start]))] if start not in done else []
        path[start] = None
        while stack:
            job, others = stack[-1]
            other = next(others, None)
            if other is None:
                done.add(job)
                del path[job]
                stack.pop()
            elif other in path:
                walk = list(path)
                return (*walk[walk.index(other) :], other)
            elif other not in done:
                path[other] = None
                stack.append((other, iter(after.get(other, ()))))
    return ()


def held(edges: Iterable[Edge], over: Mapping[JobId, bool]) -> dict[JobId, tuple[Edge, ...]]:
    """The edges that still hold each job; `over` tells of ended jobs whether they succeeded.

    An edge that can no longer come true holds for ever. Jobs that nothing holds are left out.
    """
    holding: dict[JobId, tuple[Edge, ...]] = {}
    for edge in edges:
        if not _met(edge, over):
            holding[edge.job] = (*holding.get(edge.job, ()), edge)
    return holding


def release(edges: Iterable[Edge], over: Mapping[JobId, bool], ended: JobId, *, succeeded: bool) -> Release:
    """What the end of `ended` changes, given what was over before it."""
    behind: dict[JobId, list[Edge]] = {}
    mine: dict[JobId, list[Edge]] = {}
    for edge in edges:
        behind.setdefault(edge.on, []).append(edge)
        mine.setdefault(edge.job, []).append(edge)
    now = {**over, ended: succeeded}
    doomed: list[JobId] = []
    touched: dict[JobId, None] = {}
    ends = [ended]
    while ends:
        gone = ends.pop()
        for edge in behind.get(gone, ()):
            if edge.job in now:
                continue
            touched[edge.job] = None
            if edge.when is When.SUCCEEDED and not now[gone]:
                now[edge.job] = False
                doomed.append(edge.job)
                ends.append(edge.job)
    freed = [job for job in touched if job not in now and all(_met(edge, now) for edge in mine[job])]
    return Release(tuple(sorted(freed)), tuple(sorted(doomed)))


def openings(array: Array, under_way: int) -> int:
    """How many more jobs of `array` may start while `under_way` hold something; never below 0."""
    width = array.size if array.width is None else min(array.width, array.size)
    return max(0, width - under_way)


def check_array(array: Array, where: str) -> None:
    """SpecError for an array of nothing or of no width."""
    for name, value in (("size", array.size), ("width", array.width)):
        if value is not None and value < 1:
            raise SpecError(
                f"{name} {value} is too small", field=f"{where}.{name}", value=value, hint="1 or more"
            )


def check_minimum(minimum: int | None, replicas: int, where: str) -> int:
    """How many members of a gang have to start together: all where nothing is said.

    SpecError for a minimum of 0, below 0, or above the members there are.
    """
    if minimum is None:
        return replicas
    if not 1 <= minimum <= replicas:
        raise SpecError(
            f"minimum {minimum} of {replicas} members",
            field=f"{where}.minimum",
            value=minimum,
            hint=f"1 to {replicas}, or leave it out for all",
        )
    return minimum


def _met(edge: Edge, over: Mapping[JobId, bool]) -> bool:
    return edge.on in over and (edge.when is When.ENDED or over[edge.on])
