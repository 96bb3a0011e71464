"""The command line. Each command reads its options, asks `control`, and prints what comes back.

Nothing heavy is imported before a command runs. A person's mistake is one line on standard error and exit
code 2; nothing is written then.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from aliquot import __version__
from aliquot.core.errors import AliquotError
from aliquot.interfaces.cli.help import Command, Commands, describe_mistake, examples, spell_json
from aliquot.interfaces.cli.live import add_live_commands, spell_explain
from aliquot.interfaces.cli.options import (
    AtOption,
    Files,
    JobArgument,
    JsonFlag,
    JsonOption,
    MatrixArgument,
    MixOption,
    MovesOption,
    OfferedOption,
    PoliciesOption,
    PolicyOption,
    PredictFlag,
    ReportOption,
    SeedOption,
    SeedsOption,
    StreamOption,
    TraceDirOption,
    WorkloadOption,
)
from aliquot.interfaces.cli.policies import add_policies_command
from aliquot.interfaces.cli.replays import add_replays

if TYPE_CHECKING:
    from aliquot.control.experiments import Experiments
    from aliquot.control.live import Live
    from aliquot.interfaces.cli.policies import Policies

BAD_INPUT: Final = 2
INTERRUPTED: Final = 130
WRITES_JSON: Final = ("simulate", "compare", "replay")


def run_app(
    arguments: Sequence[str],
    experiments: Callable[[], Experiments],
    live: Callable[[], Live] | None = None,
    policies: Policies | None = None,
) -> int:
    """Run one command; its exit code. Never lets a traceback of a person's mistake through.

    Without `live` there are no commands for a running service, without `policies` no list of them.
    """
    app = _build(experiments, live)
    if policies is not None:
        add_policies_command(app, policies)
    command = typer.main.get_command(app)
    words = spell_json(spell_explain(arguments or ["--help"]), WRITES_JSON)
    try:
        return int(command.main(words, "aliquot", standalone_mode=False) or 0)
    except (typer.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except typer.TyperException as error:
        return _complain(describe_mistake(error))
    except AliquotError as error:
        return _complain(str(error))
    except BrokenPipeError:
        sys.stderr.close()
        return 0


def _complain(message: str) -> int:
    typer.echo(f"aliquot: error: {message}", err=True)
    return BAD_INPUT


def _build(experiments: Callable[[], Experiments], live: Callable[[], Live] | None) -> typer.Typer:
    app = typer.Typer(
        name="aliquot",
        cls=Commands,
        help="Plan, compare and explain how GPUs are shared: documents of machines and jobs in, "
        "numbers, pictures and reasons out.",
        epilog=examples(
            "aliquot simulate examples/first",
            "aliquot compare examples/case/*.yaml -p whole-card-fifo -p binpack-slices",
            "aliquot explain examples/first/first.yaml train",
            "nvidia-smi topo -m | aliquot topology -",
        )
        + "\n\n'aliquot COMMAND --help' has the options of a command.",
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        rich_markup_mode=None,
    )
    app.callback()(_root)
    _add_simulate(app, experiments)
    _add_compare(app, experiments)
    _add_replay(app, experiments)
    _add_explain(app, experiments)
    _add_topology(app)
    if live is not None:
        add_live_commands(app, live)
    return app


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"aliquot {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_show_version),
    ] = False,
) -> None:
    """Nothing to do: `--version` answers while it is read."""


def _add_simulate(app: typer.Typer, experiments: Callable[[], Experiments]) -> None:
    @app.command(
        cls=Command,
        short_help="Run jobs in virtual time under one policy; print the scorecard.",
        epilog=examples(
            "aliquot simulate examples/first",
            "aliquot simulate cluster.yaml jobs.yaml --policy fgd --report out/run.html",
            "aliquot simulate examples/first --json | jq '.[0].scorecard'",
        ),
    )
    def simulate(
        files: Files,
        policy: PolicyOption = None,
        seed: SeedOption = None,
        predict: PredictFlag = False,
        json: JsonOption = None,
        report: ReportOption = None,
    ) -> None:
        """Run the jobs of FILE... in virtual time under one policy and print the scorecard.

        Nothing is started anywhere: the same planner as on live machines decides, and time is simulated.
        """
        from aliquot.interfaces.cli.output import Outputs, watch

        outputs = Outputs(json, report, inputs=files)
        with watch() as progress:
            result = experiments().simulate(files, policy, seed, progress, predict=predict)
        outputs.show([result])


def _add_compare(app: typer.Typer, experiments: Callable[[], Experiments]) -> None:
    @app.command(
        cls=Command,
        short_help="Run the same jobs under several policies, side by side.",
        epilog=examples(
            "aliquot compare examples/case/*.yaml -p whole-card-fifo -p binpack-slices -p future-packing",
            "aliquot compare examples/thousand-cards -p reserved-cards -p sliced-cards --report site.html",
        ),
    )
    def compare(
        files: Files,
        policy: PoliciesOption = None,
        seed: SeedOption = None,
        json: JsonOption = None,
        report: ReportOption = None,
    ) -> None:
        """Run the same jobs under several policies, side by side, with the differences and why.

        The best value of a row is bold on a terminal. Without --policy the first policy of the documents (or
        future-packing) stands beside whole-card-fifo.
        """
        from aliquot.interfaces.cli.output import Outputs, watch

        outputs = Outputs(json, report, inputs=files)
        with watch() as progress:
            results = experiments().compare(files, policy or [], seed, progress)
        outputs.show(results)


def _add_replay(app: typer.Typer, experiments: Callable[[], Experiments]) -> None:
    replay = typer.Typer(cls=Commands, rich_markup_mode=None)
    app.add_typer(
        replay,
        name="replay",
        help="Replay a public workload, or one's own history of jobs, under one policy or several.",
        short_help="Replay a public workload under one policy or several.",
    )
    replay.callback()(lambda: None)

    @replay.command(
        cls=Command,
        short_help="The published GPU-sharing placement experiment on 1,213 nodes.",
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

    add_replays(replay, experiments)


def _add_explain(app: typer.Typer, experiments: Callable[[], Experiments]) -> None:
    @app.command(
        cls=Command,
        short_help="Say why a job is where it is, or why it waits.",
        epilog=examples(
            "aliquot explain examples/first/first.yaml train",
            "aliquot explain examples/case/*.yaml training-0 --policy whole-card-fifo --at 30m",
        ),
    )
    def explain(
        files: Files,
        job: JobArgument,
        policy: PolicyOption = None,
        at: AtOption = None,
        seed: SeedOption = None,
        json: JsonFlag = False,
    ) -> None:
        """Say why JOB is where it is, or why it waits.

        For a placed job: its node and cards, what the choice costs in the policy's own terms, and the
        runner-up. For a waiting one: its place in the queue, and how many nodes lack what.
        """
        from aliquot.core.units import parse_duration
        from aliquot.interfaces.cli.output import show_explanation

        at_ms = None if at is None else int(parse_duration(at, "--at", zero=True))
        show_explanation(experiments().explain(files, job, policy, at_ms, seed), as_json=json)


def _add_topology(app: typer.Typer) -> None:
    @app.command(
        cls=Command,
        short_help="Read a printed topology matrix; show the machine as understood.",
        epilog=examples(
            "nvidia-smi topo -m | aliquot topology -",
            "aliquot topology matrix.txt --json",
        ),
    )
    def topology(
        file: MatrixArgument,
        json: JsonFlag = False,
    ) -> None:
        """Read a printed topology matrix and show the machine as understood.

        NVLink groups and link counts, PCIe switches, NUMA nodes, the nearest NICs, and warnings for what is
        missing or damaged.
        """
        from aliquot.interfaces.cli.topology import show_topology

        code = show_topology(file, json)
        if code:
            raise typer.Exit(code)
