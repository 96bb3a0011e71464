"""Puts the service of one machine together: cards, journal, processes, loop, API."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pwd
import signal
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
from aliquot.control.service import COMPACT_EVERY, Parts, Service
from aliquot.control.views import Caller, Exit, Site, Submission
from aliquot.core.errors import PermanentError, SpecError
from aliquot.core.ids import GrantId, JobId, NodeId, SiteId
from aliquot.core.jobs import Job
from aliquot.core.settings import MixSource, Settings
from aliquot.core.units import parse_duration
from aliquot.drivers.nvml import Found, Inventory, NvmlInventory
from aliquot.drivers.nvml.host import read_host
from aliquot.drivers.simulated import SHAPES, Shape, SimulatedInventory, decode_shape, find_shape
from aliquot.engines.local.cgroups import Cgroups
from aliquot.engines.local.clock import LocalClock
from aliquot.engines.local.cluster import LocalCluster
from aliquot.engines.local.compiled import find_supervisor
from aliquot.engines.local.errors import JournalFullError, JournalReadOnlyError
from aliquot.engines.local.journal import SnapshotKeeper, SqliteJournal
from aliquot.engines.local.launcher import Launcher, Places
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
from aliquot.interfaces.api.server import serve

KEEP_KIB: Final = 256 << 10  # of output in one file
FOR_ALL, FOR_ONE = 0o666, 0o600  # who may connect; what one may do then depends on who one is


def serve_here(
    ask: ServeAsk, state: Path, runtime: Path, socket: Path, on_ready: Callable[[Ready], None]
) -> None:
    """Be the service of this machine until told to stop. `state` outlives a reboot, `runtime` need not.

    Raises PermanentError where there are no cards to serve, JournalError where the record cannot be used,
    SpecError for what was asked wrongly.
    """
    catalog = load_catalog()
    found = _detect(ask.simulate, catalog)
    policy, settings = _find_policy(ask.policy)
    clock = LocalClock()
    with _open_journal(state) as journal:
        launcher, notes = _make_launcher(state, runtime, journal, clock)
        parts = Parts(
            machine=LocalCluster(launcher, clock),
            clock=clock,
            record=journal,
            settings=settings,
            policy=policy,
            nodes=(found.node,),
            read=partial(read_submission, catalog, settings),
            exits=partial(_exits, journal),
            output=lambda job, attempt, member: launcher.output_of(GrantId(job, attempt, member)),
            signal=launcher.signal,
            user_name=_user_name,
            uid=os.geteuid(),
            passing=(JournalFullError, JournalReadOnlyError),
            observers=(SnapshotKeeper(journal, every=COMPACT_EVERY),),
        )
        try:
            site = _describe(found, policy, [*journal.notes, *notes])
            mode = FOR_ALL if parts.uid == 0 else FOR_ONE
            serve(Service(parts), socket, site, lambda: on_ready(Ready(site, socket)), mode=mode)
        finally:
            launcher.close()
            _leave_groups(launcher.cgroups, state)


def read_submission(
    catalog: HardwareCatalog, settings: Settings, asked: Submission, caller: Caller
) -> tuple[Job, bytes]:
    """A job without id, and the local engine's payload as JSON. Raises SpecError that names the field."""
    job = read_live_job(asked, catalog, settings)
    payload = check_payload(_payload(asked, caller, job))
    if job.estimate_ms is None and payload.time_ms is not None:
        job = replace(job, estimate_ms=payload.time_ms)
    return job, encode_payload(payload)


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


def _detect(simulate: str | None, catalog: HardwareCatalog) -> Found:
    node = NodeId(SiteId(""), os.uname().nodename)
    inventory: Inventory = NvmlInventory(node, catalog.models())
    if simulate is not None:
        inventory = SimulatedInventory(node, _find_shape(simulate), catalog.models(), read_host(Path("/")))
    detection = inventory.detect()
    if isinstance(detection, Found):
        return detection
    raise PermanentError(
        f"no card can be used here: {detection.reason}. To run real jobs on simulated cards:"
        f" aliquot up --simulate a100-40x8 (or {', '.join(name for name in SHAPES if name != 'a100-40x8')},"
        " or a file)"
    )


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
    state: Path, runtime: Path, journal: SqliteJournal, clock: LocalClock
) -> tuple[Launcher, list[str]]:
    """The launcher, and what a person should know about this host."""

    def keep(job: JobId, attempt: int, endings: Sequence[Ending | None]) -> None:
        journal.attach_ending(job, attempt, encode_endings(endings))

    cgroups, notes = None, ["not started by root: jobs run as you, without limits of memory and cpu"]
    if os.geteuid() == 0:
        cgroups = Cgroups(parent=group_name(state))
        notes = [f"jobs are not limited in {what}: {why}" for what, why in sorted(cgroups.missing.items())]
    places = Places(find_supervisor(state / "bin"), runtime / "attempts", state / "output")
    return Launcher(places, clock.now, partial(_payload_of, journal), cgroups=cgroups, keep=keep), notes


def group_name(state: Path) -> str:
    """Two services of one machine must not meet in one cgroup: their jobs have the same ids."""
    return f"aliquot-{hashlib.sha256(bytes(state)).hexdigest()[:12]}"


def _leave_groups(cgroups: Cgroups | None, state: Path) -> None:
    """Take our cgroup away where no job is left in it."""
    for mount in cgroups.mounts if cgroups is not None else ():
        with contextlib.suppress(OSError):
            (mount.path / group_name(state)).rmdir()


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
    body = journal.endings(job).get(attempt)
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


def _signal_number(word: str) -> int:
    name = word.upper() if word.upper().startswith("SIG") else f"SIG{word.upper()}"
    found = getattr(signal, name, None)
    if not isinstance(found, signal.Signals):
        raise SpecError(f"no signal {word!r}", field="warn", value=word, hint="such as USR1")
    return int(found)


def _user_of(caller: Caller) -> User:
    """The caller with all his groups, so that a job may read what he may."""
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
