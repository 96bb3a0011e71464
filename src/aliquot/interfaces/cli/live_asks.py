"""What a person wrote on the command line as a submission."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from aliquot.control.errors import BatchError
from aliquot.control.live import Remote, Written
from aliquot.control.speech import is_text
from aliquot.control.views import Accepted, JobSummary, Submission
from aliquot.core.errors import SpecError
from aliquot.interfaces.cli.plain import say
from aliquot.reporting import CHANNEL, report

NOT_PASSED: Final = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
PATIENCE_S: Final = 1.0  # of whoever submits, to be told when it starts
FEW: Final = 10  # documents; of more only those with bounds are worth the wait
BOUNDS: Final = frozenset({"startBy", "finishBy", "speedFloor"})  # fields of a job that ask for a promise


class RunAsk(NamedTuple):
    """The options of `run`, as written."""

    gpus: int
    memory: str | None
    compute: str | None
    cpu: str | None
    host_memory: str | None
    queue: str | None
    priority: int | None
    time: str | None
    retries: int
    name: str
    env: Sequence[str]
    key: str = ""
    array: str | None = None
    members: int = 1
    widths: str | None = None
    speeds: str | None = None
    serial: str | None = None


def submission(
    command: Sequence[str], asked: RunAsk, environment: Mapping[str, str], folder: Path
) -> Submission:
    """The job of `run`. Raises SpecError."""
    gpu = {"count": asked.gpus, "memory": asked.memory, "compute": asked.compute} if asked.gpus else None
    if gpu is None and (asked.memory or asked.compute):
        raise SpecError("a slice of no card", field="--gpus", value=0, hint="--gpus 1, or no --memory")
    spec: dict[str, Any] = {
        "gpu": None if gpu is None else {key: value for key, value in gpu.items() if value is not None},
        # a job without cards must ask for something
        "cpu": asked.cpu if asked.gpus or asked.cpu or asked.host_memory else "1",
        "memory": asked.host_memory,
        "queue": asked.queue,
        "priority": asked.priority,
        "array": asked.array,
        "members": asked.members if asked.members > 1 else None,
        "elastic": _elastic(asked),
    }
    return Submission(
        command=tuple(command),
        spec={key: value for key, value in spec.items() if value is not None},
        name=asked.name or Path(command[0]).name,
        cwd=str(folder),
        env={**_passed(environment), **dict(_pair(text) for text in asked.env)},
        time=asked.time,
        retries=asked.retries,
        key=asked.key,
    )


def _elastic(asked: RunAsk) -> dict[str, Any] | None:
    """The widths of an elastic job as a document has them."""
    if asked.widths is None:
        for name, value in (("--speeds", asked.speeds), ("--serial", asked.serial)):
            if value is not None:
                raise SpecError("speeds of no widths", field=name, value=value, hint="--widths 1,2,4")
        return None
    lists = {"widths": asked.widths.split(",")}
    if asked.speeds is not None:
        lists["speeds"] = asked.speeds.split(",")
    return {**lists, **({} if asked.serial is None else {"serial": asked.serial})}


def submit_written(
    remote: Remote, written: Sequence[Written], environment: Mapping[str, str], folder: Path
) -> list[Accepted]:
    """Submit the jobs of documents, all or none. Raises what is wrong with one of them, with its place."""
    asked = [in_this_folder(job.asked, environment, folder) for job in written]
    is_told = len(asked) <= FEW or any(BOUNDS & job.spec.keys() for job in asked)
    try:
        return remote.submit_all_and_see(asked, patience=PATIENCE_S if is_told else 0)
    except BatchError as error:
        raise written[error.at].at(error.error) from error


def in_this_folder(asked: Submission, environment: Mapping[str, str], folder: Path) -> Submission:
    """A job of a document, with the shell's environment under its own and its folder below this one."""
    cwd = folder / (asked.cwd if asked.cwd != "/" else "")
    return replace(asked, cwd=str(cwd), env={**_passed(environment), **asked.env})


def tasks_of(remote: Remote, id_: str) -> list[JobSummary] | None:
    """The jobs of the array `id_`; None where it is none."""
    if not id_.isdigit():
        return None
    rows = remote.jobs(array=id_)
    return None if [row.id for row in rows] == [id_] else rows


def send_report(step: str | None, tokens: str | None, flops: str | None, *, checkpoint: bool) -> str:
    """Report from inside a job; "" or why that was not possible."""
    if CHANNEL not in os.environ:
        return f"this is no job of Aliquot ({CHANNEL} is not set)"
    try:
        said = (_count(step, "--step"), _count(tokens, "--tokens"))
        operations = None if flops is None else float(flops)
    except ValueError as error:
        return str(error)
    if report(step=said[0], tokens=said[1], flops=operations, checkpoint=checkpoint):
        return ""
    return "the service does not listen"


def _count(text: str | None, name: str) -> int | None:
    if text is None:
        return None
    try:
        count = int(text)
    except ValueError:
        count = -1
    if count < 0:
        raise ValueError(f"{name} {text}: a whole number is right, 0 or more")
    return count


def _passed(environment: Mapping[str, str]) -> dict[str, str]:
    """Without what Aliquot says itself, which a job in a job would inherit, and without what is no text."""
    own = {
        name: value
        for name, value in environment.items()
        if name not in NOT_PASSED and not name.startswith("ALIQUOT_")
    }
    passed = {name: value for name, value in own.items() if is_text(name + value)}
    for name in own.keys() - passed.keys():
        say(f"variable {name} is not passed on: it has bytes that are no text in UTF-8")
    return passed


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise SpecError(f"{text!r} is no variable", field="--env", value=text, hint="NAME=VALUE")
    return name, value
