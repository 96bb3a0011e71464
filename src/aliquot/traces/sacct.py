"""Slurm's accounting as `sacct --parsable2` prints it: one line a job, its steps below it.

Fields that must be there: JobID, Submit, one of AllocTRES and ReqTRES, and Elapsed (or ElapsedRaw) or both
Start and End. Used where present: Timelimit (or TimelimitRaw, minutes), State, Partition, Account, User,
Priority, NNodes. Steps (`123.batch`, `123.0`) are part of their job and passed over; the tasks of an array
(`123_4`) and the components of a mixed job (`123+1`) are jobs; the rest of an array that never started
(`123_[5-9]`) has no run time and is left out. A job that was requeued stands there several times with
`--duplicates`: each time is a job of its own, `123#2`.

The time limit is what its owner said of its run time, and ends it, as in Slurm; a job that ran on beyond it
and ended in another way had leave to, and has no limit here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NoReturn, TypeVar

from msgspec.structs import replace

from aliquot.core.errors import DocumentError, SpecError
from aliquot.core.units import FULL
from aliquot.traces.history import Past, Table
from aliquot.traces.moments import ISO, parse_clock, parse_duration, parse_time
from aliquot.traces.tables import Row, broken_cell, read_lines

ValueT = TypeVar("ValueT")
COMMAND: Final = (
    "sacct --allusers --parsable2 --format=JobID,Submit,Start,End,Elapsed,Timelimit,State,AllocTRES,ReqTRES,"
    "Partition,Account,User,Priority"
)
UNKNOWN: Final = frozenset({"", "unknown", "none", "n/a", "(null)"})
NO_LIMIT: Final = frozenset({"unlimited", "partition_limit"})
QUEUE_FIELDS: Final[Mapping[str, str]] = {"partition": "Partition", "account": "Account", "user": "User"}
MOST_CARDS: Final = 1_000_000
NOT_STARTED: Final = "that never started"
STILL_RUNS: Final = "still running when the list was made, so with a run time that is unknown"
NO_CARD: Final = "with no card"
NO_SUBMIT: Final = "without a submit time"
NO_TIME: Final = "without a run time"
_JOB: Final = re.compile(r"\d+(?:\+\d+)?(?:_(?:\d+|\[[\d,:%-]+\]))?", re.ASCII)
_RUNNING: Final = frozenset(
    {"RUNNING", "SUSPENDED", "COMPLETING", "STOPPED", "SIGNALING", "STAGE_OUT", "CONFIGURING"}
)

_ENDED_BY_LIMIT: Final = frozenset({"TIMEOUT", ""})
"""Who ran longer than its limit and ended in another way was not ended at it: it had leave to run on."""


def read_sacct(path: Path, queue_by: str = "partition") -> Table:
    """The jobs of `path`. `queue_by`: fields that name the queue, such as partition or account/user."""
    levels = _levels(queue_by)
    jobs: list[Past] = []
    left_out: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    checked = False
    for line, row in read_lines(path, "|", quoted=False):
        if not checked:
            _check_fields(path, row, levels)
            checked = True
        found = _Line(path, line, row).job(levels)
        if found is None:
            continue
        if isinstance(found, str):
            left_out[found] += 1
            continue
        seen[found.id] += 1
        if seen[found.id] > 1:
            found = replace(found, id=f"{found.id}#{seen[found.id]}")
        jobs.append(found)
    again = sum(count - 1 for count in seen.values() if count > 1)
    notes = (
        [f"{again:,} jobs are there more than once, as requeued ones are: each time counts"] if again else []
    )
    return Table(path.stem, str(path), tuple(jobs), tuple(left_out.items()), tuple(notes))


def read_cards(tres: str) -> tuple[int, str | None, int | None] | None:
    """(cards, their model, nodes) of a TRES list such as `cpu=8,gres/gpu:a100=2,gres/gpu=2,node=1`.

    Other than `gres/gpu` and `gres/gpu:MODEL` nothing counts as a card. The model is None where none or
    several are named; nodes is None where the list does not say. None: the list itself is no list of TRES.
    """
    total: int | None = None
    typed: dict[str, int] = {}
    nodes: int | None = None
    for part in tres.split(","):
        name, equals, amount = part.strip().partition("=")
        if not equals or not name:
            return None
        kind, _, model = name.partition(":")
        if kind not in {"gres/gpu", "node"}:
            continue
        if not (amount.isascii() and amount.isdecimal() and int(amount) <= MOST_CARDS):
            return None
        if kind == "node":
            nodes = int(amount)
        elif model:
            typed[model] = typed.get(model, 0) + int(amount)
        else:
            total = int(amount)
    named = [model for model, count in typed.items() if count]
    cards = sum(typed.values()) if total is None else total
    return cards, named[0] if len(named) == 1 else None, nodes


def _levels(queue_by: str) -> tuple[str, ...]:
    parts = queue_by.split("/")
    for part in parts:
        if part not in QUEUE_FIELDS:
            raise SpecError(
                f"{part!r} is no field that names a queue",
                field="--queue-by",
                value=queue_by,
                hint=f"{', '.join(QUEUE_FIELDS)}, or several joined by slashes such as account/user",
            )
    return tuple(QUEUE_FIELDS[part] for part in parts)


def _check_fields(path: Path, row: Row, levels: tuple[str, ...]) -> None:
    missing = [field for field in ("JobID", "Submit", *levels) if field not in row]
    if not ({"AllocTRES", "ReqTRES"} & row.keys()):
        missing.append("AllocTRES")
    if not ({"Elapsed", "ElapsedRaw"} & row.keys() or {"Start", "End"} <= row.keys()):
        missing.append("Elapsed")
    if missing:
        raise DocumentError(
            f"no field {missing[0]}", file=str(path), line=1, field=missing[0], hint=f"made by {COMMAND}"
        )


class _Line:
    """One line, read field by field."""

    def __init__(self, path: Path, line: int, row: Row) -> None:
        self._path, self._line, self._row = path, line, row

    def job(self, levels: tuple[str, ...]) -> Past | str | None:
        """The job, or why it cannot be replayed; None for a step."""
        name = self._row["JobID"].strip()
        head, dot, _ = name.partition(".")
        if _JOB.fullmatch(head) is None:
            self._fail("JobID", "a job such as 123, 123_4 or 123+1, or a step of one such as 123.batch")
        if dot:
            return None
        submitted = self._time("Submit")
        if submitted is None:
            return NO_SUBMIT
        started = self._time("Start")
        ran = self._ran(started)
        state = self._row.get("State", "").strip().partition(" ")[0].upper().rstrip("+")
        if "[" in name or state == "PENDING" or (not ran and started is None):
            return NOT_STARTED
        if state in _RUNNING:
            return STILL_RUNS
        cards, model, nodes = self._cards()
        if not cards:
            return NO_CARD
        if ran is None:
            return NO_TIME
        if started is not None and started < submitted:
            self._fail("Start", f"no earlier than Submit, {self._row['Submit'].strip()}")
        limit = self._limit()
        return Past(
            id=name,
            line=self._line,
            submitted_ms=submitted,
            ran_ms=ran,
            cards_milli=cards * FULL,
            started_ms=started,
            nodes=nodes,
            model=model,
            queue="/".join(self._row[level].strip().replace("/", "-") or "unknown" for level in levels),
            user=self._row.get("User", "").strip() or None,
            priority=self._read("Priority", _whole, "a whole number"),
            estimate_ms=limit,
            limit_ms=limit if limit is None or ran <= limit or state in _ENDED_BY_LIMIT else None,
        )

    def _ran(self, started: int | None) -> int | None:
        """ms; None where it is unknown."""
        ended = self._time("End")
        if started is not None and ended is not None and ended < started:
            self._fail("End", f"no earlier than Start, {self._row['Start'].strip()}")
        ran = self._read("ElapsedRaw", lambda text: parse_duration(text, "seconds"))
        if ran is None:
            ran = self._read("Elapsed", parse_clock)
        if ran is None and started is not None and ended is not None:
            ran = ended - started
        return ran

    def _limit(self) -> int | None:
        """The time limit, ms; None where there is none, or it is unknown: both tell the planner nothing."""
        for field, parse in (("TimelimitRaw", _minutes), ("Timelimit", parse_clock)):
            if self._row.get(field, "").strip().casefold() not in NO_LIMIT:
                limit = self._read(field, parse)
                if limit:
                    return limit
        return None

    def _cards(self) -> tuple[int, str | None, int | None]:
        """What it had, or where that is empty (some states) what it asked for; nodes as asked, where said."""
        found = {}
        for field in ("AllocTRES", "ReqTRES"):
            text = self._row.get(field, "").strip()
            if text.casefold() not in UNKNOWN:
                read = read_cards(text)
                if read is None:
                    self._fail(field, "a list such as cpu=8,gres/gpu:a100=2,node=1")
                found[field] = read
        nothing = (0, None, None)
        had, asked = found.get("AllocTRES", nothing), found.get("ReqTRES", nothing)
        cards, model, nodes = had if had[0] else asked
        nodes = asked[2] or nodes or self._read("NNodes", _whole, "a whole number")
        return cards, asked[1] if asked[0] else model, nodes

    def _time(self, field: str) -> int | None:
        def parse(text: str) -> int:
            return parse_time(text, "seconds" if text.isdecimal() else ISO)

        return self._read(field, parse)

    def _read(self, field: str, parse: Callable[[str], ValueT], right: str = "") -> ValueT | None:
        text = self._row.get(field, "").strip()
        if text.casefold() in UNKNOWN:
            return None
        try:
            return parse(text)
        except ValueError as problem:
            raise broken_cell(self._path, self._line, field, text, right or str(problem)) from None

    def _fail(self, field: str, right: str) -> NoReturn:
        raise broken_cell(self._path, self._line, field, self._row[field].strip(), right)


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise ValueError(text)
    return int(text)


def _minutes(text: str) -> int:
    return parse_duration(text, "minutes")
