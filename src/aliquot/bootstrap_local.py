"""Puts the service of one machine together: cards, journal, processes, loop, API."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from aliquot import __version__
from aliquot.bootstrap_kernels import PATIENCE_S, Warming
from aliquot.bootstrap_local_jobs import (
    exits_of,
    is_user,
    job_of,
    payload_of,
    read_submission,
    user_name,
    user_of_pid,
)
from aliquot.catalog import HardwareCatalog, load_catalog
from aliquot.client.starting import announced
from aliquot.config.environment import read_environment
from aliquot.config.live_site import read_asked_reservation, read_live_site
from aliquot.config.shapes import read_shape
from aliquot.config.source import SUFFIXES, text_files
from aliquot.control.live import Ready, ServeAsk
from aliquot.control.parts import Parts, Rules
from aliquot.control.service import Service
from aliquot.control.views import Caller, Configuration, Site, SiteFile
from aliquot.control.watching import Pace
from aliquot.core.errors import AliquotError, PermanentError, SpecError
from aliquot.core.ids import GrantId, JobId, NodeId, SiteId
from aliquot.core.settings import MixSource
from aliquot.core.units import parse_duration
from aliquot.drivers.eyes import CardEyes
from aliquot.drivers.nvml import Found, Inventory, NvmlInventory
from aliquot.drivers.nvml.host import read_host
from aliquot.drivers.simulated import SHAPES, Shape, SimulatedInventory, find_shape
from aliquot.engines.local.cgroups import Cgroups
from aliquot.engines.local.channel import Channel
from aliquot.engines.local.clock import LocalClock
from aliquot.engines.local.cluster import LocalCluster
from aliquot.engines.local.compiled import find_supervisor
from aliquot.engines.local.confining import Grounds, read_grounds
from aliquot.engines.local.errors import JournalFullError, JournalReadOnlyError
from aliquot.engines.local.journal import SqliteJournal
from aliquot.engines.local.launcher import Launcher
from aliquot.engines.local.payload import Ending, Payload, encode_endings
from aliquot.engines.local.places import Places, leave_runtime, make_runtime, site_name
from aliquot.interfaces.api.server import serve
from aliquot.interfaces.cli.quick import SOCKET_VARIABLE
from aliquot.reporting import CHANNEL

ATTEMPTS: Final = "attempts"
REREAD_S: Final = 30.0
OVER_USE_MS: Final = 10_000  # the longest warning, and grace, of who takes more than he was granted
FOR_ALL, FOR_ONE = 0o666, 0o600  # who may connect; what one may do then depends on who one is


def serve_here(
    ask: ServeAsk, state: Path, runtime: Path, socket: Path, on_ready: Callable[[Ready], None]
) -> None:
    """Be the service of this machine until told to stop. `state` outlives a reboot, `runtime` need not.

    Raises PermanentError where there are no cards to serve, JournalError where the record cannot be used,
    SpecError for what was asked wrongly.
    """
    with open_service(replace(ask, socket=socket), state, runtime) as (service, site):
        ready = Ready(site, socket)
        mode = FOR_ALL if os.geteuid() == 0 else FOR_ONE
        reread = partial(_reread, ask) if ask.files else None
        serve(service, socket, site, lambda: on_ready(ready), mode=mode, reread=reread)


@contextlib.contextmanager
def open_service(ask: ServeAsk, state: Path, runtime: Path) -> Iterator[tuple[Service, Site]]:
    """The service of this machine, not started, and what to know of it. Raises as `serve_here`."""
    catalog = load_catalog()
    inventory = _inventory(ask.simulate, catalog)
    found = _detect(inventory)
    exports = _told(ask.socket)
    settle = partial(_settle, catalog, found)
    with _open_journal(state, accept_loss=ask.accept_loss) as journal, contextlib.ExitStack() as stack:
        rules, said = _first_rules(ask, journal, settle)
        clock = LocalClock(journal.last_ms())
        runtime = make_runtime(runtime, state)
        eyes = CardEyes(inventory, found, partial(job_of, runtime / ATTEMPTS))
        launcher, notes = _make_launcher(state, runtime, journal, clock, exports, eyes)
        launcher.grounds = _grounds(found, is_real=ask.simulate is None)
        stack.callback(_leave, launcher, runtime, state)
        warming = stack.enter_context(contextlib.closing(_warming(state)))
        parts = Parts(
            machine=LocalCluster(launcher, clock),
            clock=clock,
            record=journal,
            rules=rules,
            nodes=(found.node,),
            read=partial(read_submission, catalog, clock.now),
            exits=partial(exits_of, journal),
            output=lambda job, attempt, member: launcher.output_of(GrantId(job, attempt, member)),
            signal=launcher.signal,
            user_name=user_name,
            uid=os.geteuid(),
            passing=(JournalFullError, JournalReadOnlyError),
            eyes=eyes,
            end=partial(launcher.stop, before=f"within {OVER_USE_MS}\n"),
            user_of_pid=user_of_pid,
            is_user=is_user,
            pace=_pace(ask),
            settle=settle,
            reserve=lambda asked, settings: read_asked_reservation(asked, (found.node,), settings),
            unenforced=launcher.lapses,
            say=_say,
            lack=journal.lack,
            keep_kernels=warming.load,
        )
        service = Service(parts)
        launcher.say = journal.say = service.say
        try:
            exports.append(_hear_reports(stack, runtime, service))
        except OSError as error:
            notes.append(f"jobs cannot report how far they are: {error}")
        _warm(warming, service, ask.socket)
        yield service, _describe(found, rules.policy, [*journal.notes, *said, *rules.notes, *notes])


def _first_rules(
    ask: ServeAsk, journal: SqliteJournal, settle: Callable[[Configuration], Rules]
) -> tuple[Rules, list[str]]:
    """What the service begins with: the files it was given, else what it last went by; and what to say of it.

    What is new is kept before anything follows from it.
    """
    body = journal.documents()
    last = Configuration() if body is None else msgspec.json.decode(body, type=Configuration)
    wanted, said = last, []
    if ask.files:
        wanted = replace(_read_files(ask), reserved=last.reserved)
        if last.files and wanted.files != last.files:
            said.append("the files of the command line replace the documents that were in force before")
    elif ask.policy is not None:
        wanted = replace(last, policy=ask.policy)
    rules = settle(wanted)
    if wanted != last:
        journal.keep_documents(msgspec.json.encode(wanted))
    return rules, said


def _reread(ask: ServeAsk, service: Service) -> None:
    """Go by the files of the command line as they are now; where they are wrong, nothing changes."""
    try:
        service.apply(Caller(os.geteuid(), os.getegid()), _read_files(ask)).result(REREAD_S)
    except (AliquotError, TimeoutError) as error:
        service.say(f"the files were read again and not taken: {error}")
    else:
        service.say("the files were read again and are in force")


def _read_files(ask: ServeAsk) -> Configuration:
    return Configuration(tuple(SiteFile(*file) for file in text_files(ask.files)), ask.policy)


def _settle(catalog: HardwareCatalog, found: Found, configuration: Configuration) -> Rules:
    """Raises SpecError, or DocumentError that names file, line and field."""
    files = [(file.name, file.text) for file in configuration.files]
    site = read_live_site(files, configuration.policy, catalog, (found.node,))
    # one machine: compiled kernels would take longer to load than they ever save
    settings = replace(
        site.settings,
        engine="python",
        mix_source=MixSource.WINDOW,
        resizes_in_place=LocalCluster.resizes_in_place,
    )
    return Rules(site.policy, settings, configuration, site.notes, site.windows)


def _say(text: str) -> None:
    """To whoever watches the service, such as systemd's journal."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"note: {text}\n")
        sys.stderr.flush()


def _hear_reports(
    stack: contextlib.ExitStack, runtime: Path, service: Service
) -> Callable[[Payload], Sequence[tuple[str, str]]]:
    """Listen to what jobs report until `stack` ends, those that run already too; what tells a job where.

    Raises OSError.
    """
    channel = stack.enter_context(Channel(runtime, service.progress.note))
    living = [life.owner for life in service.chronicle.lives.values() if life.over_ms is None]
    for owner in sorted({owner for owner in living if owner is not None}):
        channel.path_for(owner)

    def variables(payload: Payload) -> Sequence[tuple[str, str]]:
        path = channel.path_for(service.parts.uid if payload.user is None else payload.user.uid)
        return [] if path is None else [(CHANNEL, str(path))]

    return variables


def _told(socket: Path | None) -> list[Callable[[Payload], Sequence[tuple[str, str]]]]:
    """What lets the commands of a job reach the service that runs it, where it listens."""
    return [] if socket is None else [lambda payload: [(SOCKET_VARIABLE, str(socket.absolute()))]]


def _describe(found: Found, policy: str, notes: list[str]) -> Site:
    said = (*(notice.text for notice in found.notices), *notes)
    return Site(__version__, found.driver, policy, (str(found.node.id),), len(found.node.cards), said)


def _open_journal(state: Path, *, accept_loss: bool) -> SqliteJournal:
    """The record, for its service alone: it holds the environments of everyone's jobs."""
    try:
        if not state.exists():
            state.mkdir(parents=True)
            state.chmod(0o711)  # people may reach their own output below
    except OSError as error:
        raise SpecError(
            f"{state} cannot be made or looked at: {error.strerror}", field="--state", value=str(state),
            hint="a folder you may write",
        ) from error  # fmt: skip  # one thought
    before = os.umask(0o077)
    try:
        return SqliteJournal(state / "journal.db", accept_loss=accept_loss)
    finally:
        os.umask(before)


# --- the machine ---------------------------------------------------------------------------------------


def _warming(state: Path) -> Warming:
    return Warming(read_environment(os.environ).cache, state)


def _warm(warming: Warming, service: Service, socket: Path | None) -> None:
    """Have compiled what is not yet; that is waited for where no job has to be taken up.

    Whoever asks at `socket` meanwhile is told so.
    """
    if warming.is_done:
        return
    _say("what counts when many jobs start is compiled, once for this version, for about ten seconds")
    warming.begin()
    if all(life.over_ms is not None for life in service.chronicle.lives.values()):
        with announced(socket) if socket is not None else contextlib.nullcontext():
            warming.wait(PATIENCE_S)


def _inventory(simulate: str | None, catalog: HardwareCatalog) -> Inventory:
    node = NodeId(SiteId(""), os.uname().nodename)
    if simulate is None:
        return NvmlInventory(node, catalog.models())
    return SimulatedInventory(node, _find_shape(simulate, catalog), catalog.models(), read_host(Path("/")))


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


def _find_shape(word: str, catalog: HardwareCatalog) -> Shape:
    """A shape by its name, or by a file."""
    path = Path(word)
    is_file = "/" in word or path.suffix in SUFFIXES or path.exists()
    if word in SHAPES or not is_file:
        return find_shape(word)
    return msgspec.convert(read_shape(path, catalog), Shape)


def _make_launcher(
    state: Path,
    runtime: Path,
    journal: SqliteJournal,
    clock: LocalClock,
    exports: Sequence[Callable[[Payload], Sequence[tuple[str, str]]]],
    eyes: CardEyes,
) -> tuple[Launcher, list[str]]:
    """The launcher, and what a person should know about this host. `exports`: make variables of a job."""

    def keep(job: JobId, attempt: int, endings: Sequence[Ending | None]) -> None:
        journal.attach_ending(job, attempt, encode_endings(endings))

    cgroups, notes = None, ["not started by root: jobs run as you, without limits of memory and cpu"]
    if os.geteuid() == 0:
        cgroups = Cgroups(parent=site_name(state))
        notes = [f"jobs are not limited in {what}: {why}" for what, why in sorted(cgroups.missing.items())]
    launcher = Launcher(
        Places(find_supervisor(state / "bin"), runtime / ATTEMPTS, state / "output"),
        clock.now,
        partial(payload_of, journal),
        cgroups=cgroups,
        exports=lambda held, placement, payload: [pair for one in exports for pair in one(payload)],
        keep=keep,
        refusal=eyes.refusal,
    )
    return launcher, [*notes, *([clock.note] if clock.note else [])]


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
