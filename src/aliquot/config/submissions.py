"""Jobs to run for real: documents of kind Job with a command, and the `spec` of a submission as core jobs.

A document says in one `spec` what is asked for and what is run; a submission keeps them apart, and here they
are taken apart. The words for cards, cpu, queue and so on are those of every other job document.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from aliquot.config.arrays import read_array
from aliquot.config.documents import API_VERSION
from aliquot.config.fields import Field, Table, read_fields
from aliquot.config.jobs import read_job
from aliquot.config.places import point_at
from aliquot.config.queues import known_queues, priorities_of
from aliquot.config.readers import one_of, text
from aliquot.config.requests import Known
from aliquot.config.shelf import ModelNames, Shelf
from aliquot.config.source import read_items
from aliquot.config.spoken import item_of
from aliquot.config.tree import Item, nearest
from aliquot.config.waits import KEYS, read_waits
from aliquot.control.live import Written
from aliquot.control.views import Submission
from aliquot.core.errors import AliquotError, DocumentError, SpecError
from aliquot.core.ids import JobId
from aliquot.core.jobs import After, Bound, Job
from aliquot.core.settings import Settings

NOT_LIVE: Final = (
    "replicas",
    "submit",
    "run",
    "patience",
    "busy",
    "throughput",
    "linked",
    "movable",
    "scatter",
    "user",
    "stop",
    "idleAfter",
)
NOT_YET: Final = {
    "limit": "say `time`: the service ends the job then",
}
LONGEST: Final = 200  # characters of a name or a key
_HOW: Final = ("command", "cwd", "env", "umask", "time", "grace", "warn", "warnBefore", "retries")
_BESIDE: Final = (*_HOW, "name", "key")  # what a submission says beside its spec
_ENVELOPE: Final[Table] = {
    "apiVersion": Field(one_of([API_VERSION]), required=True),
    "kind": Field(one_of(["Job"]), required=True),
    "metadata": Field(lambda item: item, required=True),
    "spec": Field(lambda item: item, required=True),
}
_RIGHT: Final = {
    "command": "a list such as [python, train.py], or one line for the shell",
    "cwd": "a folder, such as runs/a",
    "env": 'names and values, such as {SEED: "7"}',
    "time": "such as 4h",
    "grace": "such as 30s",
    "warn": "a signal, such as USR1",
    "warnBefore": "such as 2m",
    "retries": "a whole number, 0 or more",
}
_METADATA: Final[Table] = {"name": Field(text, required=True), "labels": Field(lambda item: item.fields())}


def read_submissions(paths: Sequence[Path]) -> list[Written]:
    """The jobs of documents whose `spec` has a `command`, a list or a line for the shell.

    In the order of the files, but whoever waits for another comes after it; what it waits for is a job of
    these documents by name, or the id of a job that was submitted before. Raises DocumentError.
    """
    items = read_items(paths)
    for item in items:
        _submission(item)  # what is wrong is said in the order of the files
    return [Written(_submission(item), partial(_said_of, item)) for item in _in_order(items)]


def read_live_jobs(
    asked: Submission,
    shelf: Shelf,
    settings: Settings,
    *,
    now_ms: int,
    known_ids: Container[str] | None = None,
) -> tuple[tuple[Job, ...], tuple[int, ...]]:
    """What a submission asks of the machine: one job, or one for each of its array, without ids or times.

    With them the indices of the array, if it is one. Never movable: a process can't be moved. `startBy` and
    `finishBy` count from `now_ms`; `after` and `afterOk` name ids among `known_ids` (None: whoever accepts it
    looks). The array's name is the submission's: whoever accepts it gives it a name that no other array has.
    Raises SpecError that names the field.
    """
    _check_words(asked)
    _refuse(asked, NOT_LIVE, "has no meaning for a job that runs for real")
    for key in _BESIDE:
        _refuse(asked, (key,), "stands beside spec and not in it", f"write {key!r} next to 'command'")
    for key, why in NOT_YET.items():
        _refuse(asked, (key,), "is not run by this service", why)
    spec = item_of(asked.spec, "spec")
    there = known_queues(settings.queues)
    queue = spec.get("queue")
    if queue is not None and there and queue.text not in there:
        queue.fail(f"unknown queue {queue.text!r}", nearest(queue.scalar(), there))
    known = Known({unit.name: unit for unit in settings.slices}, ModelNames(shelf))
    priorities = priorities_of(settings.queues)
    after: list[After] = []
    for item, when in read_waits(spec):
        if known_ids is not None and item.scalar() not in known_ids:
            item.fail(f"there is no job {item.text!r} to wait for", "the id of a job, as submit prints it")
        after.append(After(JobId(item.scalar()), when))
    offers = read_job(asked.name or "job", spec, known, priorities)
    array = spec.get("array")
    indices = () if array is None else read_array("", array)[1]
    jobs = tuple(
        replace(
            offer.job,
            movable=False,
            scatter=False,
            after=tuple(after),
            bound=_from_now(offer.job.bound, now_ms),
        )
        for offer in offers
    )
    return jobs, indices


def _check_words(asked: Submission) -> None:
    """Names are shown to everyone: none may fill or command another's terminal."""
    for field, word in (("name", asked.name), ("key", asked.key)):
        if len(word) > LONGEST or not word.isprintable():
            raise SpecError(
                "is too long, or has characters that cannot be printed", field=field, value=word[:LONGEST],
                hint=f"at most {LONGEST} printable characters",
            )  # fmt: skip  # two lines read better than four


def _refuse(asked: Submission, keys: Sequence[str], message: str, hint: str = "leave it out") -> None:
    for key in keys:
        if asked.spec.get(key) is not None:
            raise SpecError(message, field=f"spec.{key}", value=asked.spec[key], hint=hint)


def _from_now(bound: Bound, now_ms: int) -> Bound:
    start, finish = bound.start_by_ms, bound.finish_by_ms
    return replace(
        bound,
        start_by_ms=None if start is None else start + now_ms,
        finish_by_ms=None if finish is None else finish + now_ms,
    )


def _in_order(items: Sequence[Item]) -> list[Item]:
    """As they stand, each after those it waits for; fails where they wait for each other."""
    names = [_name_of(item) for item in items]
    waits = [_waits_of(item) for item in items]
    ordered: list[int] = []
    left, unwritten = list(range(len(items))), Counter(names)
    while left:
        late = []
        for at in left:
            if any(unwritten[wait.text] for wait in waits[at]):
                late.append(at)
            else:
                ordered.append(at)
                unwritten[names[at]] -= 1
        if late == left:
            first = waits[left[0]][0]
            first.fail("jobs wait for each other", "take one of these edges away")
        left = late
    return [items[at] for at in ordered]


def _name_of(item: Item) -> str | None:
    metadata = item.get("metadata") if item.entries is not None else None
    name = metadata.get("name") if metadata is not None and metadata.entries is not None else None
    return None if name is None else name.text


def _waits_of(item: Item) -> list[Item]:
    spec = item.get("spec") if item.entries is not None else None
    if spec is None or spec.entries is None or not any(spec.get(key) for key in KEYS):
        return []
    return [wait for wait, _ in read_waits(spec)]


def _submission(item: Item) -> Submission:
    envelope = read_fields(item, _ENVELOPE)
    spec: Item = envelope["spec"]
    name: str = read_fields(envelope["metadata"], _METADATA)["name"]
    said = {key: _plain(child) for key, child in spec.fields()}
    if "command" not in said:
        spec.fail("no command: nothing to run", "command: [python, train.py]")
    how: dict[str, Any] = {key: said.pop(key) for key in _HOW if key in said}
    if "umask" in how:
        how["umask"] = _octal(spec)
    if isinstance(how["command"], str):
        how["command"] = ["sh", "-c", how["command"]]
    try:
        return msgspec.convert({**how, "name": name, "spec": said}, Submission, strict=False)
    except msgspec.ValidationError as error:
        raise _not_converted(item, str(error)) from error


def _not_converted(item: Item, said: str) -> DocumentError:
    """`Expected `int`, got `str` - at `$.retries`` of the job that `item` is."""
    message, _, at = said.partition(" - at ")
    path = at.strip("`").removeprefix("$.").removesuffix("[...]")
    hint = _RIGHT.get(path.partition("[")[0], "")
    return _said_of(item, SpecError(message.replace("`", ""), field=path, hint=hint))


def _said_of(item: Item, error: AliquotError) -> DocumentError:
    """What is wrong with the submission that `item` is, in the words of its document."""
    field = error.field if isinstance(error, SpecError) else ""
    first = field.partition(".")[0].partition("[")[0]
    path = f"spec.{field}" if first in _HOW else {"name": "metadata.name"}.get(field, field)
    said = point_at(item, path, error)
    if said.line is None:  # a JSON document
        said.file = f"{said.file}, job {_name_of(item)!r}"
        said.args = (said.describe(),)
    return said


def _octal(spec: Item) -> int:
    """A umask as a shell has it."""
    umask = spec.get("umask")
    assert umask is not None
    if not re.fullmatch(r"0?[0-7]{3}", umask.scalar()):
        umask.fail(f"{umask.text!r} is not a umask", "three octal digits, such as 022")
    return int(umask.scalar(), 8)


def _plain(item: Item) -> Any:
    """An item as maps, lists, texts and truth values."""
    if item.entries is not None:
        return {key: _plain(child) for key, child in item.fields()}
    if item.items is not None:
        return [_plain(child) for child in item.items]
    text = item.scalar()
    return text == "true" if item.plain and text in {"true", "false"} else text
