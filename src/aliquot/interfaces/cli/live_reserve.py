"""Commands that close cards of a running service for a time, for maintenance or for some people's jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from aliquot.interfaces.cli.help import Command, examples
from aliquot.interfaces.cli.live_options import SocketOption
from aliquot.interfaces.cli.options import JsonFlag

if TYPE_CHECKING:
    from aliquot.control.live import Live

WHEN, WHAT, WHO = "When", "What is closed", "Who is let in"

ReservationArgument = Annotated[
    str, typer.Argument(metavar="NAME", show_default=False, help="A name to know it by.")
]
ReservationsArgument = Annotated[
    list[str], typer.Argument(metavar="NAME...", show_default=False, help="As 'reservations' lists them.")
]
StartOption = Annotated[
    str,
    typer.Option(
        "--start",
        metavar="WHEN",
        rich_help_panel=WHEN,
        help="now, now+2h, 22:00 or 2026-12-01T08:00, in this machine's time unless it has an offset.",
    ),
]
EndOption = Annotated[
    str | None, typer.Option("--end", metavar="WHEN", rich_help_panel=WHEN, help="The same.")
]
DurationOption = Annotated[
    str | None,
    typer.Option("--duration", metavar="TIME", rich_help_panel=WHEN, help="Such as 4h, in place of --end."),
]
NodesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--nodes",
        metavar="LIST",
        rich_help_panel=WHAT,
        help="Nodes, with commas between them: the whole of each. If nothing is named, every node.",
    ),
]
CountOption = Annotated[
    int | None,
    typer.Option(
        "--gpus", "-g", min=1, metavar="N", rich_help_panel=WHAT, help="So many cards, where least runs then."
    ),
]
CardsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--cards", metavar="LIST", rich_help_panel=WHAT, help="These cards, by number or UUID, with commas."
    ),
]
QueuesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--queues", metavar="LIST", rich_help_panel=WHO, help="Jobs of these queues and all below them."
    ),
]
UsersOption = Annotated[
    list[str] | None,
    typer.Option("--users", metavar="LIST", rich_help_panel=WHO, help="Jobs of these users."),
]
JobsOption = Annotated[
    list[str] | None,
    typer.Option("--jobs", metavar="LIST", rich_help_panel=WHO, help="These jobs, by id."),
]
EvictOption = Annotated[
    str | None,
    typer.Option(
        "--evict",
        metavar="TIME",
        rich_help_panel=WHO,
        help="Stop who still runs there when it begins, with so long a warning; if absent, they stay.",
    ),
]
ReasonOption = Annotated[
    str | None,
    typer.Option("--reason", metavar="TEXT", help="What to tell who waits for it; if absent, maintenance."),
]


def add_reserve(app: typer.Typer, live: Callable[[], Live]) -> None:
    """`reserve`: one more."""

    @app.command(
        cls=Command,
        epilog=examples(
            "aliquot reserve new-driver --start 22:00 --duration 2h",
            "aliquot reserve course --start 2026-12-01T08:00 --end 2026-12-01T12:00 --gpus 4 --users ana,ben",
        ),
    )
    def reserve(
        name: ReservationArgument,
        start: StartOption = "now",
        end: EndOption = None,
        duration: DurationOption = None,
        nodes: NodesOption = None,
        gpus: CountOption = None,
        cards: CardsOption = None,
        queues: QueuesOption = None,
        users: UsersOption = None,
        jobs: JobsOption = None,
        evict: EvictOption = None,
        reason: ReasonOption = None,
        socket: SocketOption = None,
        json: JsonFlag = False,
    ) -> None:
        """Close cards from one time to another: for maintenance, or for the jobs of some people only.

        No job starts there that would still run when it begins. It is kept in the record, beside the
        reservations of documents. Root may do this, and whoever runs the service.
        """
        from datetime import datetime

        from aliquot.interfaces.cli.plain import show
        from aliquot.interfaces.cli.reservations import ReserveAsk, reservation_lines, reservation_of

        asked = ReserveAsk(
            start, end, duration, nodes or (), gpus, cards or (), queues or (), users or (), jobs or (),
            evict, reason,
        )  # fmt: skip  # two lines read better than eleven
        remote = live().connect(socket)
        made = remote.reserve(reservation_of(name, asked, remote, datetime.now().astimezone()))
        if json:
            show(made, lambda one: reservation_lines([one]), as_json=True)
        else:
            show([made], reservation_lines, as_json=False)


def add_reservations(app: typer.Typer, live: Callable[[], Live]) -> None:
    """`reservations`: all of them."""

    @app.command(cls=Command, epilog=examples("aliquot reservations"))
    def reservations(socket: SocketOption = None, json: JsonFlag = False) -> None:
        """List the reservations that are not over: those of documents, and those made with 'reserve'."""
        from aliquot.interfaces.cli.plain import show
        from aliquot.interfaces.cli.reservations import reservation_lines

        show(live().connect(socket).reservations(), reservation_lines, as_json=json)


def add_unreserve(app: typer.Typer, live: Callable[[], Live]) -> None:
    """`unreserve`: one less."""

    @app.command(cls=Command, epilog=examples("aliquot unreserve new-driver"))
    def unreserve(names: ReservationsArgument, socket: SocketOption = None) -> None:
        """Take reservations back: their cards are open to all again at once.

        One that documents say is taken out of them, and they are applied again.
        """
        from aliquot.interfaces.cli.several import do_each

        raise typer.Exit(do_each(names, live().connect(socket).unreserve))
