"""A job document into offers: one for each replica, with what only its engine may know beside the job."""

from __future__ import annotations

from typing import Final

from aliquot.config.fields import Field, Table, read_fields
from aliquot.config.readers import (
    asked_cores,
    asked_memory,
    choice,
    count,
    duration,
    flag,
    level,
    moment,
    path_name,
    whole,
)
from aliquot.config.requests import Known, read_request
from aliquot.config.tree import Item
from aliquot.core.ids import JobId
from aliquot.core.jobs import Job, Link, Stage
from aliquot.core.workload import Offer

MOST_REPLICAS: Final = 1_000_000

JOB: Final[Table] = {
    "replicas": Field(count(1, MOST_REPLICAS)),
    "priority": Field(whole),
    "queue": Field(path_name),
    "stage": Field(choice(Stage)),
    "submit": Field(moment, "submitted_ms"),
    "run": Field(duration, "work_ms"),
    "estimate": Field(duration, "estimate_ms"),
    "patience": Field(duration, "patience_ms"),
    "busy": Field(level, "busy_milli"),
    "linked": Field(flag),
    "movable": Field(flag),
    "scatter": Field(flag),
    "cpu": Field(asked_cores, "cpu_milli"),
    "memory": Field(asked_memory, "host_mib"),
    "gpu": Field(lambda item: item),
}
OF_JOB: Final = ("priority", "queue", "stage", "estimate_ms", "movable", "scatter")
OF_OFFER: Final = ("work_ms", "patience_ms", "busy_milli", "linked")


def read_job(word: str, spec: Item, known: Known, priorities: dict[str, int]) -> tuple[Offer, ...]:
    """The offers of the job called `word`: itself, or `word-0` and so on where `replicas` is given.

    A job without a priority has that of its queue. Whoever requires NVLink depends on links unless it says
    otherwise. `seq` is 0 here: the order among all jobs is known only when all are read.
    """
    values = read_fields(spec, JOB)
    request = read_request(values.get("gpu"), values.get("cpu_milli", 0), values.get("host_mib", 0), known)
    own = {key: values[key] for key in OF_JOB if key in values}
    own.setdefault("priority", priorities.get(own.get("queue", ""), 0))
    beside = {key: values[key] for key in OF_OFFER if key in values}
    beside.setdefault("linked", request.link is Link.REQUIRED)
    _check_job(spec, values, request.cards)
    ids = [f"{word}-{at}" for at in range(values["replicas"])] if "replicas" in values else [word]
    return tuple(
        Offer(
            job=Job(
                id=JobId(id_),
                members=(request,),
                submitted_ms=values.get("submitted_ms", 0),
                seq=0,
                replica_of=word if "replicas" in values else "",
                **own,
            ),
            **beside,
        )
        for id_ in ids
    )


def _check_job(spec: Item, values: dict[str, object], cards: int) -> None:
    if not cards and not values.get("cpu_milli") and not values.get("host_mib"):
        spec.fail("asks for nothing", "add gpu, cpu or memory")
    for key in ("busy", "linked", "scatter"):
        item = spec.get(key)
        if item is not None and not cards and item.text != "false":
            item.fail(f"{key!r} has no meaning without cards", "leave it out, or add gpu")
