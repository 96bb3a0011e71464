"""Puts the service of one machine together: cards, journal, processes, loop, API."""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import time
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from aliquot import __version__
from aliquot.catalog import HardwareCatalog, load_catalog
from aliquot.config import BUILTIN
from aliquot.config.submissions import read_live_job
from aliquot.control.kept import decode_kept
from aliquot.control.live import Ready, ServeAsk
from aliquot.control.naming import not_found
from aliquot.control.parts import Parts
from aliquot.control.service import COMPACT_EVERY, Service
from aliquot.control.views import Caller, Exit, Site, Submission
from aliquot.control.watching import Pace
from aliquot.core.errors import PermanentError, SpecError
from aliquot.core.ids import GrantId, JobId, NodeId, SiteId
from aliquot.core.jobs import Job
from aliquot.core.settings import MixSource, Settings
from aliquot.core.units import parse_duration
from aliquot.drivers.eyes import CardEyes
from aliquot.drivers.nvml import Found, Inventory, NvmlInventory
from aliquot.drivers.nvml.host import read_host
from aliquot.drivers.simulated import SHAPES, Shape, SimulatedInventory, decode_shape, find_shape
from aliquot.engines.local.cgroups import Cgroups
from aliquot.engines.local.channel import Channel
from aliquot.engines.local.clock import LocalClock
from aliquot.engines.local.cluster import LocalCluster
from aliquot.engines.local.compiled import find_supervisor
from aliquot.engines.local.confining import Grounds, read_grounds
from aliquot.engines.local.errors import JournalFullError, JournalReadOnlyError
from aliquot.engines.local.journal import SnapshotKeeper, SqliteJournal
from aliquot.engines.local.launcher import Launcher, Places
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
    encode_endings,
    encode_payload,
)
from aliquot.engines.local.places import leave_runtime, make_runtime, site_name
from aliquot.interfaces.api.server import serve
from aliquot.reporting import CHANNEL

KEEP_KIB: Final = 256 << 10  # of output in one file
ATTEMPTS: Final = "attempts"
KNOWN_S: Final = 60  # how long a user's groups are not asked for again
FOR_ALL, FOR_ONE = 0o666, 0o600  # who may connect; what one may do then depends on who one is


def serve_here(
    ask: ServeAsk, state: Path, runtime: Path, socket: Path, on_ready: Callable[[Ready], None]
) -> None:
    """Be the service of this machine until told to stop. `state` outlives a reboot, `runtime` need not.

    Raises PermanentError where there are no cards to serve, JournalError where the record cannot be used,
    SpecError for what was asked wrongly.
    """
    catalog = load_catalog()
    inventory = _inventory(ask.simulate, catalog)
    found = _detect(inventory)
    policy, settings = _find_policy(ask.policy)
    clock = LocalClock()
    is_root = os.geteuid() == 0
    exports: list[tuple[str, str]] = []
    with _open_journal(state) as journal, contextlib.ExitStack() as stack:
        runtime = make_runtime(runtime, state)
        eyes = CardEyes(inventory, found, partial(_job_of, runtime / ATTEMPTS))
        launcher, notes = _make_launcher(state, runtime, journal, clock, exports, eyes)
        launcher.grounds = _grounds(found, is_real=ask.simulate is None)
        stack.callback(_leave, launcher, runtime, state)
        parts = Parts(
            machine=LocalCluster(launcher, clock),
            clock=clock,
            record=journal,
            settings=settings,
            policy=policy,
            nodes=(found.node,),
            read=partial(read_submission, catalog, settings, clock.now),
            exits=partial(_exits, journal),
            output=lambda job, attempt, member: launcher.output_of(GrantId(job, attempt, member)),
            signal=launcher.signal,
            user_name=_user_name,
            uid=os.geteuid(),
            passing=(JournalFullError, JournalReadOnlyError),
            observers=(SnapshotKeeper(journal, every=COMPACT_EVERY),),
            eyes=eyes,
            end=launcher.stop,
            user_of_pid=_user_of_pid,
            pace=_pace(ask),
        )
        service = Service(parts)
        try:
            exports += _hear_reports(stack, runtime, service)
        except OSError as error:
            notes.append(f"jobs cannot report how far they are: {error}")
        site = _describe(found, policy, [*journal.notes, *notes])
        ready = Ready(site, socket)
        serve(service, socket, site, lambda: on_ready(ready), mode=FOR_ALL if is_root else FOR_ONE)


def read_submission(
    catalog: HardwareCatalog,
    settings: Settings,
    now: Callable[[], int],
    asked: Submission,
    caller: Caller,
) -> tuple[Job, bytes]:
    """A job without id, and the local engine's payload as JSON. Raises SpecError that names the field."""
    job = read_live_job(asked, catalog, settings, now_ms=now())
    payload = check_payload(_payload(asked, caller, job))
    if job.estimate_ms is None and payload.time_ms is not None:
        job = replace(job, estimate_ms=payload.time_ms)
    return job, encode_payload(payload)


def _hear_reports(stack: contextlib.ExitStack, runtime: Path, service: Service) -> list[tuple[str, str]]:
    """Listen to what jobs report until `stack` ends; the variable that tells them where. Raises OSError."""
    is_open = service.parts.uid == 0
    channel = stack.enter_context(Channel(runtime, service.progress.note, is_open_to_all=is_open))
    return [(CHANNEL, str(channel.path))]


def _describe(found: Found, policy: str, notes: list[str]) -> Site:
    said = (*(notice.text for notice in found.notices), *notes)
    return Site(__version__, found.driver, policy, (str(found.node.id),), len(found.node.cards), said)


def _open_journal(state: Path) -> SqliteJournal:
    """The record, for its service alone: it holds the environments of everyone's jobs."""
    if not state.exists():
        state.mkdir(parents=True)
        state.chmod(0o711)  # people may reach their own output below
    before = os.umask(0o077)
    try:
        return SqliteJournal(state / "journal.db")
    finally:
        os.umask(before)


# --- the machine ---------------------------------------------------------------------------------------


def _inventory(simulate: str | None, catalog: HardwareCatalog) -> Inventory:
    node = NodeId(SiteId(""), os.uname().nodename)
    if simulate is None:
        return NvmlInventory(node, catalog.models())
    return SimulatedInventory(node, _find_shape(simulate), catalog.models(), read_host(Path("/")))


def _detect(inventory: Inventory) -> Found:
    detection = inventory.detect()
    if isinstance(detection, Found):
        return detection
    raise PermanentError(
        f"no card can be used here: {detection.reason}. To run real jobs on simulated cards:"
        f" aliquot up --simulate a100-40x8 (or {', '.join(name for name in SHAPES if name != 'a100-40x8')},"
        " or a file)"
    )


def _pace(ask: ServeAsk) -> Pace:
    """How often to look, what was seen counting for five looks, and what is tolerated."""
    usual = Pace()
    every = usual.interval_ms if ask.watch is None else parse_duration(ask.watch, "--watch")
    tolerated = usual.tolerance_ms
    if ask.tolerance is not None:
        tolerated = parse_duration(ask.tolerance, "--tolerance", zero=True)
    return Pace(every, 5 * every, tolerated)


def _find_shape(word: str) -> Shape:
    path = Path(word)
    if word in SHAPES or not path.exists():
        return find_shape(word)
    try:
        document = msgspec.yaml.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError) as error:
        raise SpecError(f"{path} cannot be read: {error}", field="--simulate", value=word) from error
    return decode_shape(document, str(path))


def _find_policy(name: str | None) -> tuple[str, Settings]:
    policies = dict(BUILTIN)
    chosen = name or BUILTIN[0][0]
    if chosen not in policies:
        raise not_found("policy", chosen, policies)
    # one machine: compiled kernels would take longer to load than they ever save
    return chosen, replace(policies[chosen], engine="python", mix_source=MixSource.WINDOW)


def _make_launcher(
    state: Path,
    runtime: Path,
    journal: SqliteJournal,
    clock: LocalClock,
    exports: Sequence[tuple[str, str]],
    eyes: CardEyes,
) -> tuple[Launcher, list[str]]:
    """The launcher, and what a person should know about this host. `exports`: variables of every job."""

    def keep(job: JobId, attempt: int, endings: Sequence[Ending | None]) -> None:
        journal.attach_ending(job, attempt, encode_endings(endings))

    cgroups, notes = None, ["not started by root: jobs run as you, without limits of memory and cpu"]
    if os.geteuid() == 0:
        cgroups = Cgroups(parent=site_name(state))
        notes = [f"jobs are not limited in {what}: {why}" for what, why in sorted(cgroups.missing.items())]
    launcher = Launcher(
        Places(find_supervisor(state / "bin"), runtime / ATTEMPTS, state / "output"),
        clock.now,
        partial(_payload_of, journal),
        cgroups=cgroups,
        exports=lambda held, placement: exports,
        keep=keep,
        exclusive=eyes.exclusive,
    )
    return launcher, notes


def _grounds(found: Found, *, is_real: bool) -> Grounds:
    """A real card's device file is not that of a simulated one of the same number."""
    minors = {card.uuid: card.minor for card in found.cards} if is_real else {}
    return read_grounds(Path("/"), {card.uuid: card.numa for card in found.cards}, minors)


def _leave(launcher: Launcher, runtime: Path, state: Path) -> None:
    """Let go of what runs, and take away what no job needs any more."""
    launcher.close()
    leave_runtime(runtime, state, launcher.places.state)
    for mount in launcher.cgroups.mounts if launcher.cgroups is not None else ():
        with contextlib.suppress(OSError):
            (mount.path / site_name(state)).rmdir()


# --- jobs ----------------------------------------------------------------------------------------------


def _payload(asked: Submission, caller: Caller, job: Job) -> Payload:
    (request,) = job.members
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
            0 if warn is None else parse_duration(asked.warn_before, "warnBefore"),
            parse_duration(asked.grace, "grace", zero=True),
        ),
        limits=Limits(memory_mib=request.host_mib or None, cpu_milli=request.cpu_milli or None),
        time_ms=None if asked.time is None else parse_duration(asked.time, "time"),
        retries=asked.retries,
    )


def _payload_of(journal: SqliteJournal, job: JobId) -> Payload | None:
    body = journal.payload(job)
    return None if body is None else decode_payload(bytes(decode_kept(body).payload))


def _exits(journal: SqliteJournal, job: JobId, attempt: int) -> tuple[Exit | None, ...]:
    body = journal.ending(job, attempt)
    return () if body is None else tuple(_exit(ending) for ending in decode_endings(body))


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
    )


def _job_of(attempts: Path, pid: int) -> JobId | None:
    held = attempt_of(attempts, pid)
    return None if held is None else held.job


def _user_of_pid(pid: int) -> str:
    try:
        return _user_name(Path(f"/proc/{pid}").stat().st_uid)
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
def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
