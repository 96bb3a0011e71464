"""Commands that look at the site of a running service, and the one a job reports with.

Each asks through `control.live` and prints what comes back; nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import typer

from aliquot.interfaces.cli.help import Command, examples
from aliquot.interfaces.cli.live_options import (
    CheckpointFlag,
    EveryOption,
    FlopsOption,
    IdArgument,
    OnceFlag,
    SocketOption,
    StepOption,
    TokensOption,
)
from aliquot.interfaces.cli.options import JsonFlag
from aliquot.interfaces.cli.spelling import LIVE_EXPLAIN

if TYPE_CHECKING:
    from aliquot.control.live import Live


def add_gpus(app: typer.Typer, live: Callable[[], Live]) -> None:
    """`gpus`: the cards."""

    @app.command(cls=Command, epilog=examples("aliquot gpus"))
    def gpus(socket: SocketOption = None, json: JsonFlag = False) -> None:
        """List the cards, what is free of each, and the jobs on it."""
        from aliquot.interfaces.cli.live_text import card_lines
        from aliquot.interfaces.cli.plain import show

        show(live().connect(socket).gpus(), card_lines, as_json=json)


def add_queues(app: typer.Typer, live: Callable[[], Live]) -> None:
    """`queues`: with quotas and money, where there are."""

    @app.command(cls=Command, epilog=examples("aliquot queues"))
    def queues(socket: SocketOption = None, json: JsonFlag = False) -> None:
        """List the queues, what waits and what runs in each."""
        from aliquot.interfaces.cli.live_queues import queue_lines
        from aliquot.interfaces.cli.plain import show

        show(live().connect(socket).queues(), queue_lines, as_json=json)


def add_top(app: typer.Typer, live: Callable[[], Live]) -> None:
    """`top`: look again and again."""

    @app.command(
        cls=Command,
        epilog=examples("aliquot top", "aliquot top --once"),
    )
    def top(every: EveryOption = 2.0, once: OnceFlag = False, socket: SocketOption = None) -> None:
        """Watch the cards, how busy they are, and the jobs that wait and run, until interrupted."""
        from aliquot.interfaces.cli.live_top import watch_site

        watch_site(live().connect(socket), every, once=once)


def add_report(app: typer.Typer, nobody: object) -> None:
    """`report`: through the channel that the job was given."""

    @app.command(
        cls=Command,
        epilog=examples("aliquot report --step 10 --tokens 81920", "aliquot report --checkpoint"),
    )
    def report(
        step: StepOption = None,
        tokens: TokensOption = None,
        flops: FlopsOption = None,
        checkpoint: CheckpointFlag = False,
    ) -> None:
        """Tell how far this job is, in totals since it began; 'aliquot job ID' shows what follows from it.

        A report never hurts: where it cannot be sent it says so and the exit code is 0 all the same.
        """
        from aliquot.interfaces.cli.live_asks import send_report

        problem = send_report(step, tokens, flops, checkpoint=checkpoint)
        if problem:
            typer.echo(f"not reported: {problem}", err=True)


def add_why(app: typer.Typer, live: Callable[[], Live]) -> None:
    """`why`: what `explain` is for past and planned jobs."""

    @app.command(
        LIVE_EXPLAIN,
        cls=Command,
        epilog=examples("aliquot why 12", "aliquot explain 12"),
    )
    def why(id_: IdArgument, socket: SocketOption = None, json: JsonFlag = False) -> None:
        """Say why a job of the running service is where it is, or why it waits.

        'aliquot explain ID' does the same.
        """
        from aliquot.interfaces.cli.live_text import explanation_lines
        from aliquot.interfaces.cli.plain import show

        show(live().connect(socket).explain(id_), explanation_lines, as_json=json)
