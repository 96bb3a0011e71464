"""A job document into offers: one for each replica, with what only its engine may know beside the job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from aliquot.config.arrays import read_array
from aliquot.config.elastic import read_elastic
from aliquot.config.fields import Field, Table, read_fields
from aliquot.config.groups import SITED, check_sites, read_members_and_groups
from aliquot.config.members import ASKED, GANG, read_minimum
from aliquot.config.readers import (
    choice,
    count,
    duration,
    flag,
    level,
    moment,
    name,
    path_name,
    share,
    throughput,
    whole,
)
from aliquot.config.requests import Known
from aliquot.config.together import read_together
from aliquot.config.tree import Item
from aliquot.config.waits import WAITS
from aliquot.core.ids import JobId
from aliquot.core.jobs import Array, Bound, Job, Link, Request, Stage, Stop
from aliquot.core.together import Together
from aliquot.core.workload import Offer

MOST_REPLICAS: Final = 1_000_000

JOB: Final[Table] = {
    "replicas": Field(count(1, MOST_REPLICAS)),
    "array": Field(lambda item: item),
    "priority": Field(whole),
    "queue": Field(path_name),
    "user": Field(name),
    "stage": Field(choice(Stage)),
    "submit": Field(moment, "submitted_ms"),
    "run": Field(duration, "work_ms"),
    "estimate": Field(duration, "estimate_ms"),
    "limit": Field(duration, "limit_ms"),
    "patience": Field(duration, "patience_ms"),
    "idleAfter": Field(duration, "idle_after_ms"),
    "busy": Field(level, "busy_milli"),
    "throughput": Field(throughput, "gflops"),
    "linked": Field(flag),
    "movable": Field(flag),
    "scatter": Field(flag),
    "spread": Field(flag),
    "spot": Field(flag),
    "checkpoint": Field(duration, "checkpoint_ms"),
    "restart": Field(moment, "restart_ms"),
    "stop": Field(moment, "stop_ms"),
    "preemptible": Field(flag),
    "startBy": Field(duration, "start_by_ms"),
    "finishBy": Field(duration, "finish_by_ms"),
    "speedFloor": Field(share, "speed_floor_milli"),
    "elastic": Field(lambda item: item),
    "together": Field(lambda item: item),
    **WAITS,
    **GANG,
    **SITED,
    **ASKED,
}
OF_JOB: Final = (
    "priority",
    "queue",
    "user",
    "stage",
    "estimate_ms",
    "limit_ms",
    "movable",
    "scatter",
    "spread",
    "spot",
)
OF_STOP: Final = ("checkpoint_ms", "restart_ms", "stop_ms", "preemptible")
OF_OFFER: Final = ("work_ms", "patience_ms", "busy_milli", "idle_after_ms", "gflops", "linked")


def read_job(word: str, spec: Item, known: Known, priorities: dict[str, int]) -> tuple[Offer, ...]:
    """The offers of the job called `word`: itself, or `word-0` and so on for replicas and arrays.

    A job without a priority has that of its queue. Whoever requires NVLink depends on links unless it says
    otherwise. `seq` is 0 and `after` empty here: both are known only when all jobs are read.
    """
    values = read_fields(spec, JOB)
    members, groups = read_members_and_groups(spec, values, known)
    array, indices = _read_array(word, values)
    copies = values.get("replicas") if array is None else array.size
    beside = {key: values[key] for key in OF_OFFER if key in values}
    beside.setdefault("linked", any(member.link is Link.REQUIRED for member in members))
    minimum = read_minimum(spec, values, len(members))
    job = Job(
        id=JobId(word),
        members=members,
        submitted_ms=values.get("submitted_ms", 0),
        seq=0,
        replica_of="" if copies is None else word,
        minimum=minimum,
        groups=groups,
        wish=values.get("wish"),
        array=array,
        elastic=read_elastic(values["elastic"], members, minimum) if "elastic" in values else None,
        together=_read_together(values, members),
        stop=Stop(**{key: values[key] for key in OF_STOP if key in values}),
        bound=_read_bound(spec, values),
        **_own(values, priorities),
    )
    _check_job(spec, job)
    if copies is None:
        return (Offer(job=job, **beside),)
    ids = (JobId(f"{word}-{at}") for at in indices or range(copies))
    return tuple(Offer(job=replace(job, id=id_), **beside) for id_ in ids)


def _own(values: dict[str, Any], priorities: dict[str, int]) -> dict[str, Any]:
    own: dict[str, Any] = {key: values[key] for key in OF_JOB if key in values}
    own.setdefault("priority", priorities.get(own.get("queue", ""), 0))
    return own


def _read_array(word: str, values: dict[str, Any]) -> tuple[Array | None, tuple[int, ...]]:
    item: Item | None = values.get("array")
    if item is None:
        return None, ()
    if "replicas" in values:
        item.fail("both an array and replicas", "keep one: an array has a width limit, replicas have none")
    return read_array(word, item)


def _read_together(values: dict[str, Any], members: Sequence[Request]) -> Together | None:
    if "together" not in values:
        return None
    elastic, scatter = "elastic" in values, values.get("scatter", False)
    return read_together(values["together"], members, elastic=elastic, scatter=scatter)


def _read_bound(spec: Item, values: dict[str, Any]) -> Bound:
    """What the job asks to be promised: times count from its submission."""
    submitted: int = values.get("submitted_ms", 0)
    start, finish = values.get("start_by_ms"), values.get("finish_by_ms")
    if start is not None and finish is not None and finish <= start:
        (spec.get("finishBy") or spec).fail("has to finish before it has to start", "later than startBy")
    return Bound(
        start_by_ms=None if start is None else submitted + start,
        finish_by_ms=None if finish is None else submitted + finish,
        speed_floor_milli=values.get("speed_floor_milli"),
    )


def _check_job(spec: Item, job: Job) -> None:
    check_sites(spec, job)
    cards = sum(member.cards for member in job.members)
    for key in ("busy", "throughput", "linked", "scatter"):
        item = spec.get(key)
        if item is not None and not cards and item.text != "false":
            item.fail(f"{key!r} has no meaning without cards", "leave it out, or add gpu")
    if job.scatter and len(job.members) > 1:
        (spec.get("scatter") or spec).fail("a gang is on several nodes as it is", "leave it out")
    if job.spread and len(job.members) == 1 and not job.replica_of:
        (spec.get("spread") or spec).fail(
            "one member on one node cannot be spread", "add members or replicas, or leave it out"
        )
