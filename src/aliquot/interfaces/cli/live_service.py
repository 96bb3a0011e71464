"""The command that is the service, and those that change how it serves."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import typer

from aliquot.control.words import counted
from aliquot.interfaces.cli.help import Command, examples
from aliquot.interfaces.cli.live_options import (
    AcceptLossFlag,
    ApplyFiles,
    ConfigFiles,
    ConfigOption,
    ListenOption,
    LivePolicyOption,
    NodesArgument,
    PlacesArgument,
    SimulateOption,
    SocketOption,
    StateOption,
    ToleranceOption,
    WatchOption,
)
from aliquot.interfaces.cli.options import JsonFlag

if TYPE_CHECKING:
    from aliquot.control.live import Live, Ready, Remote


def add_up(app: typer.Typer, live: Callable[[], Live]) -> None:
    """`up`: be the service."""

    @app.command(
        cls=Command,
        epilog=examples("aliquot up queues.yaml", "aliquot up --simulate a100-40x8 --state /tmp/site"),
    )
    def up(
        files: ConfigFiles = None,
        config: ConfigOption = None,
        simulate: SimulateOption = None,
        state: StateOption = None,
        socket: ListenOption = None,
        policy: LivePolicyOption = None,
        watch: WatchOption = None,
        tolerance: ToleranceOption = None,
        accept_loss: AcceptLossFlag = False,
    ) -> None:
        """Serve this machine's cards in the foreground until stopped.

        Jobs outlive the service: stop it, start it again, and it takes up what runs. Started by root it runs
        each job as the user who submitted it; by anyone else, only one's own.

        The documents of FILE... are read again on SIGHUP. Without any it goes by what it last went by.
        """
        from aliquot.control.live import ServeAsk
        from aliquot.interfaces.cli.unread import never_wait

        never_wait()
        documents = (*(files or ()), *(config or ()))
        ask = ServeAsk(simulate, state, socket, policy, watch, tolerance, documents, accept_loss)
        live().serve(ask, _say_ready)
        typer.echo("stopped; jobs that run go on, and are taken up by the next 'aliquot up'", err=True)


def _say_ready(ready: Ready) -> None:
    from aliquot.interfaces.cli.plain import say

    site = ready.site
    for note in site.notes:
        say(f"note: {note}")
    cards = counted(site.cards, "card")
    typer.echo(f"aliquot {site.version} serves {cards} of {', '.join(site.nodes)} (driver {site.driver})")
    typer.echo(f"listening at {ready.socket}; policy {site.policy}")
    sys.stdout.flush()


def add_apply(app: typer.Typer, live: Callable[[], Live]) -> None:
    """`apply`: other documents."""

    @app.command(
        cls=Command,
        epilog=examples("aliquot apply queues.yaml", "aliquot apply --policy binpack-slices"),
    )
    def apply(
        files: ApplyFiles = None,
        policy: LivePolicyOption = None,
        socket: SocketOption = None,
        json: JsonFlag = False,
    ) -> None:
        """Have the running service go by the documents of FILE... from now on, instead of those before.

        What runs goes on, whatever they say. They are kept in the record: the next 'aliquot up' without files
        goes by them. Without FILE only the policy is chosen anew.
        """
        from aliquot.control.views import Configuration
        from aliquot.core.errors import SpecError
        from aliquot.interfaces.cli.live_text import rules_lines
        from aliquot.interfaces.cli.plain import show

        doors = live()
        if not files and policy is None:
            raise SpecError("nothing to apply", field="FILE", hint="documents, or --policy NAME")
        remote = doors.connect(socket)
        documents = doors.read_files(files) if files else remote.rules().configuration.files
        show(remote.apply(Configuration(documents, policy)), rules_lines, as_json=json)


def add_drain(app: typer.Typer, live: Callable[[], Live]) -> None:
    """`drain`: of nodes."""

    @app.command(cls=Command, epilog=examples("aliquot drain"))
    def drain(nodes: NodesArgument = None, socket: SocketOption = None) -> None:
        """Start no new job on a node; what runs goes on."""
        raise typer.Exit(_turn(live().connect(socket), nodes, drained=True))


def add_undrain(app: typer.Typer, live: Callable[[], Live]) -> None:
    """`undrain`: of nodes, or of a card that was out for an error."""

    @app.command(cls=Command, epilog=examples("aliquot undrain", "aliquot undrain 3"))
    def undrain(places: PlacesArgument = None, socket: SocketOption = None) -> None:
        """Start jobs on a node again, or on a card that is out for a fatal error: say that it is well."""
        raise typer.Exit(_turn(live().connect(socket), places, drained=False))


def _turn(remote: Remote, names: Sequence[str] | None, *, drained: bool) -> int:
    from aliquot.interfaces.cli.plain import say
    from aliquot.interfaces.cli.several import do_each

    def turn(name: str) -> None:
        if not remote.drain(name, drained=drained):
            say(f"card {name} was not out")

    return do_each(names or remote.site().nodes, turn)
