"""`aliquot replay`: the group of commands that play past or public jobs again, and its first, `openb`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import typer

from aliquot.interfaces.cli.commands import Shelf
from aliquot.interfaces.cli.help import Command, examples
from aliquot.interfaces.cli.options import (
    JsonOption,
    MixOption,
    MovesOption,
    OfferedOption,
    PoliciesOption,
    ReportOption,
    SeedsOption,
    StreamOption,
    TraceDirOption,
    WorkloadOption,
)

if TYPE_CHECKING:
    from aliquot.control.experiments import Experiments


def add_replay(app: typer.Typer, experiments: Callable[[], Experiments]) -> None:
    """The group; the list of commands says what is in it."""
    group = typer.Typer(cls=Shelf, rich_markup_mode=None)
    app.add_typer(
        group,
        name="replay",
        help="Replay a public workload, or one's own history of jobs, under one policy or several.",
    )
    group.callback()(lambda: None)


def add_openb(app: typer.Typer, experiments: Callable[[], Experiments]) -> None:
    """`openb`: placement alone."""

    @app.command(
        cls=Command,
        epilog=examples(
            "aliquot replay openb --workload default --policy future-packing",
            "aliquot replay openb -w multigpu20 -p fgd -p future-packing --seeds 42-51 --json out/openb.json",
        ),
    )
    def openb(
        workload: WorkloadOption,
        seeds: SeedsOption = "42",
        offered: OfferedOption = 1.3,
        trace_dir: TraceDirOption = None,
        policy: PoliciesOption = None,
        stream: StreamOption = 0,
        mix: MixOption = "list",
        moves: MovesOption = 0.0,
        json: JsonOption = None,
        report: ReportOption = None,
    ) -> None:
        """Replay the published GPU-sharing placement experiment: allocation and fragmentation over load.

        Pods of a public cluster are offered one after another until SHARE of all cards has been asked for;
        what does not fit is turned away, nothing leaves. Several seeds are shown as one column of means.
        """
        from aliquot.interfaces.cli.openb import Replay, replay_openb
        from aliquot.interfaces.cli.output import Outputs

        outputs = Outputs(json, report)
        asked = Replay(workload, seeds, offered, stream, mix, moves, trace_dir)
        outputs.show(replay_openb(experiments(), asked, policy or ["future-packing"]))
