"""Jobs to run for real: documents of kind Job with a command, and the `spec` of a submission as a core job.

A document says in one `spec` what is asked for and what is run; a submission keeps them apart, and here they
are taken apart. The words for cards, cpu, queue and so on are those of every other job document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from aliquot.config.documents import API_VERSION
from aliquot.config.jobs import read_job
from aliquot.config.requests import Known
from aliquot.config.shelf import ModelNames, Shelf
from aliquot.config.source import read_items
from aliquot.config.tree import Item, nearest
from aliquot.control.views import Submission
from aliquot.core.errors import SpecError
from aliquot.core.jobs import Job
from aliquot.core.settings import Settings

NOT_LIVE: Final = ("replicas", "submit", "run", "patience", "busy", "linked", "movable", "scatter")
_HOW: Final = ("command", "cwd", "env", "umask", "time", "grace", "warn", "warnBefore", "retries")


def read_submissions(paths: Sequence[Path]) -> list[Submission]:
    """The jobs of documents whose `spec` has a `command`, a list or a line for the shell.

    Raises DocumentError.
    """
    return [_submission(item) for item in read_items(paths)]


def read_live_job(asked: Submission, shelf: Shelf, settings: Settings) -> Job:
    """What a submission asks of the machine, without id or time. Never movable: a process can't be moved.

    Raises SpecError that names the field.
    """
    for key in NOT_LIVE:
        if key in asked.spec:
            message = "has no meaning for a job that runs for real"
            raise SpecError(message, field=f"spec.{key}", value=asked.spec[key], hint="leave it out")
    spec = _item(asked.spec, "spec")
    names = [queue.name for queue in settings.queues]
    queue = spec.get("queue")
    if queue is not None and names and queue.text not in names:
        queue.fail(f"unknown queue {queue.text!r}", nearest(queue.scalar(), names))
    known = Known({unit.name: unit for unit in settings.slices}, ModelNames(shelf))
    priorities = {queue.name: queue.priority for queue in settings.queues}
    (offer,) = read_job(asked.name or "job", spec, known, priorities)
    return replace(offer.job, movable=False, scatter=False)


def _submission(item: Item) -> Submission:
    version, kind = item.get("apiVersion"), item.get("kind")
    if version is None or version.text != API_VERSION:
        item.fail("no apiVersion that is known", f"apiVersion: {API_VERSION}")
    if kind is None or kind.text != "Job":
        item.fail("not a job", "kind: Job")
    metadata, spec = item.get("metadata"), item.get("spec")
    name = metadata.get("name") if metadata is not None else None
    if spec is None or name is None:
        item.fail("metadata.name or spec is missing", "metadata: {name: train}")
    said = _plain(spec)
    if not isinstance(said, dict) or "command" not in said:
        spec.fail("no command: nothing to run", "command: [python, train.py]")
    how = {key: said.pop(key) for key in _HOW if key in said}
    if isinstance(how["command"], str):
        how["command"] = ["sh", "-c", how["command"]]
    try:
        return msgspec.convert({**how, "name": name.scalar(), "spec": said}, Submission, strict=False)
    except msgspec.ValidationError as error:
        spec.fail(str(error), f"{', '.join(_HOW)} say how a job is run")


def _plain(item: Item) -> Any:
    """An item as maps, lists, texts and truth values."""
    if item.entries is not None:
        return {key: _plain(child) for key, child in item.fields()}
    if item.items is not None:
        return [_plain(child) for child in item.items]
    text = item.scalar()
    return text == "true" if item.plain and text in {"true", "false"} else text


def _item(value: object, path: str) -> Item:
    """A value from JSON as an item that belongs to no file."""
    if isinstance(value, Mapping):
        entries = ((str(key), _item(child, f"{path}.{key}")) for key, child in value.items())
        return Item("", None, path, entries=tuple(entries))
    if isinstance(value, list):
        return Item("", None, path, items=tuple(_item(child, path) for child in value))
    if value is None:
        return Item("", None, path, text="", plain=True, null=True)
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return Item("", None, path, text=text, plain=not isinstance(value, str))
