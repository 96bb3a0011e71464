"""Jobs of the local engine, between what people submit and what a supervisor is told.

Apart from `bootstrap_local`, which puts the service together.
"""

from __future__ import annotations

import os
import pwd
import signal
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from aliquot.catalog import HardwareCatalog
from aliquot.config.submissions import read_live_jobs
from aliquot.control.arrays import body_id
from aliquot.control.kept import decode_kept
from aliquot.control.parts import Wanted
from aliquot.control.views import WARN_BEFORE, Caller, Exit, Submission
from aliquot.core.errors import SpecError
from aliquot.core.ids import JobId
from aliquot.core.jobs import Job, Request
from aliquot.core.settings import Settings
from aliquot.core.units import format_ms, parse_duration
from aliquot.engines.local.journal import SqliteJournal
from aliquot.engines.local.leftovers import attempt_of
from aliquot.engines.local.payload import (
    Ending,
    Limits,
    Output,
    Payload,
    Stop,
    User,
    check_payload,
    decode_endings,
    decode_payload,
    encode_payload,
)

KEEP_KIB: Final = 256 << 10  # of output in one file
LONGEST_STOP_MS: Final = 3_600_000  # of a warning, and of a grace: a job that is to end does end
LONGEST_MS: Final = 10 * 365 * 86_400_000
KNOWN_S: Final = 60  # how long a user's groups are not asked for again


def read_submission(
    catalog: HardwareCatalog, now: Callable[[], int], asked: Submission, caller: Caller, settings: Settings
) -> Wanted:
    """Jobs without ids, and the local engine's payload as JSON. Raises SpecError that names the field."""
    jobs, indices = read_live_jobs(asked, catalog, settings, now_ms=now())
    payload = check_payload(_payload(asked, caller, jobs[0]))
    own: dict[str, Any] = {"user": user_name(caller.uid)}
    if payload.time_ms is not None:
        own["limit_ms"] = payload.time_ms
    return Wanted(tuple(replace(job, **own) for job in jobs), encode_payload(payload), indices)


def payload_of(journal: SqliteJournal, job: JobId) -> Payload | None:
    """What `job` runs; None where that is not on record, or cannot be read."""
    body = journal.payload(body_id(job))
    kept = None if body is None else decode_kept(body)
    try:
        return None if kept is None else decode_payload(bytes(kept.payload))
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def exits_of(journal: SqliteJournal, job: JobId, attempt: int) -> tuple[Exit | None, ...]:
    """How the members of an attempt that is over ended; () where that is not on record, or cannot be read."""
    body = journal.ending(job, attempt)
    try:
        return () if body is None else tuple(_exit(ending) for ending in decode_endings(body))
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ()


def _exit(ending: Ending | None) -> Exit | None:
    if ending is None:
        return None
    return Exit(
        how=ending.how,
        status=ending.status,
        reason=ending.reason,
        text=ending.text,
        wall_ms=ending.wall_ms,
        user_ms=ending.user_ms,
        system_ms=ending.system_ms,
        max_rss_kib=ending.max_rss_kib,
        lost_bytes=ending.lost_bytes,
        signal=ending.signal,
        ended_ms=ending.at_ms,
    )


def job_of(attempts: Path, pid: int) -> JobId | None:
    """The job that a process belongs to, by the folder of attempts it was started from."""
    held = attempt_of(attempts, pid)
    return None if held is None else held.job


def user_of_pid(pid: int) -> str:
    """Whose process it is; "" where it is gone."""
    try:
        return user_name(Path(f"/proc/{pid}").stat().st_uid)
    except OSError:
        return ""


def _signal_number(word: str) -> int:
    name = word.upper() if word.upper().startswith("SIG") else f"SIG{word.upper()}"
    found = getattr(signal, name, None)
    if not isinstance(found, signal.Signals):
        raise SpecError(f"no signal {word!r}", field="warn", value=word, hint="such as USR1")
    return int(found)


def _user_of(caller: Caller) -> User:
    """The caller with all his groups, so that a job may read what he may; looked up anew once a minute."""
    return _look_up_user(caller, int(time.monotonic()) // KNOWN_S)


@lru_cache(maxsize=256)
def _look_up_user(caller: Caller, minute: int) -> User:
    try:
        groups = tuple(os.getgrouplist(pwd.getpwuid(caller.uid).pw_name, caller.gid))
    except KeyError:
        groups = (caller.gid,)
    return User(caller.uid, caller.gid, groups)


@lru_cache(maxsize=1024)
def user_name(uid: int) -> str:
    """The name of a user, or his number where he has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def is_user(name: str) -> bool:
    """Whether a user of this machine has this name, or this number and no name."""
    try:
        pwd.getpwnam(name)
    except (KeyError, ValueError):  # a name with a NUL is nobody's
        return name.isdecimal() and user_name(int(name)) == name
    return True


def _payload(asked: Submission, caller: Caller, job: Job) -> Payload:
    limits = [_limits(request) for request in job.members]
    warn = _signal_number(asked.warn) if asked.warn else None
    return Payload(
        command=asked.command,
        env=tuple(asked.env.items()),
        cwd=asked.cwd,
        user=_user_of(caller) if os.geteuid() == 0 else None,
        umask=asked.umask,
        output=Output(keep_kib=KEEP_KIB),
        stop=Stop(
            warn,
            _warn_ms(asked),
            _bounded(asked.grace, "grace", LONGEST_STOP_MS, zero=True),
        ),
        limits=limits[0],
        member_limits=tuple(limits) if len(set(limits)) > 1 else (),
        members=len(job.members),
        widths=() if job.elastic is None else job.elastic.widths,
        time_ms=None if asked.time is None else _bounded(asked.time, "time", LONGEST_MS),
        retries=asked.retries,
    )


def _warn_ms(asked: Submission) -> int:
    """How long before TERM it is warned; raises SpecError also where there is no warning to say that of."""
    before = _bounded(asked.warn_before, "warnBefore", LONGEST_STOP_MS)
    if asked.warn:
        return before
    if asked.warn_before != WARN_BEFORE:
        raise SpecError(
            "there is no warning to be sent so long before TERM", field="warnBefore", value=asked.warn_before,
            hint="`warn`, a signal such as USR1, beside it",
        )  # fmt: skip  # one thought
    return 0


def _bounded(text: str, field: str, most: int, *, zero: bool = False) -> int:
    """Milliseconds; raises SpecError for what is no duration, and for more than `most`."""
    found = parse_duration(text, field, zero=zero)
    if found > most:
        raise SpecError(f"{text!r} is too long", field=field, value=text, hint=f"at most {format_ms(most)}")
    return found


def _limits(request: Request) -> Limits:
    return Limits(memory_mib=request.host_mib or None, cpu_milli=request.cpu_milli or None)
