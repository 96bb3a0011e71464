"""The command line. Each command reads its options, asks `control`, and prints what comes back.

Nothing heavy is imported before a command runs. A person's mistake is one line on standard error and exit
code 2; nothing is written then.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click
import typer

from aliquot import __version__
from aliquot.core.errors import AliquotError

if TYPE_CHECKING:
    from aliquot.control.experiments import Experiments

BAD_INPUT = 2
INTERRUPTED = 130

Files = Annotated[
    list[Path], typer.Argument(metavar="FILE...", help="YAML or JSON documents, or folders of them.")
]
PolicyOption = Annotated[
    str | None, typer.Option("--policy", "-p", help="A policy by name; the first of the documents if absent.")
]
SeedOption = Annotated[int | None, typer.Option("--seed", help="Seed of the policy's random streams.")]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print the result as JSON on standard output.")]
OutOption = Annotated[
    Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write the result as JSON to FILE.")
]
ReportOption = Annotated[
    Path | None, typer.Option("--report", metavar="FILE.html", help="Write a self-contained HTML report.")
]


def run_app(arguments: Sequence[str], experiments: Callable[[], Experiments]) -> int:
    """Run one command; its exit code. Never lets a traceback of a person's mistake through."""
    app = _build(experiments)
    try:
        return int(typer.main.get_command(app).main(list(arguments), "aliquot", standalone_mode=False) or 0)
    except click.exceptions.Abort:
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return BAD_INPUT
    except AliquotError as error:
        print(f"aliquot: error: {error}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return 0


def _build(experiments: Callable[[], Experiments]) -> typer.Typer:
    app = typer.Typer(
        name="aliquot",
        help="Plan, compare and explain how GPUs are shared. Documents in, numbers and pictures out.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        rich_markup_mode=None,
    )
    app.callback()(_root)
    _add_runs(app, experiments)
    _add_replay(app, experiments)
    _add_explain(app, experiments)
    _add_topology(app)
    return app


def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)
    ] = False,
) -> None:
    if version:
        print(f"aliquot {__version__}")
        raise typer.Exit


def _add_runs(app: typer.Typer, experiments: Callable[[], Experiments]) -> None:
    @app.command()
    def simulate(
        files: Files,
        policy: PolicyOption = None,
        seed: SeedOption = None,
        json: JsonFlag = False,
        out: OutOption = None,
        report: ReportOption = None,
    ) -> None:
        """Run the jobs of FILE... in virtual time under one policy and print the scorecard."""
        from aliquot.interfaces.cli.output import show_results, watch  # noqa: PLC0415 - keeps help quick

        with watch() as progress:
            result = experiments().simulate(files, policy, seed, progress)
        show_results([result], as_json=json, out=out, report=report)

    @app.command()
    def compare(
        files: Files,
        policy: Annotated[
            list[str] | None,
            typer.Option("--policy", "-p", help="A policy by name; may be given several times."),
        ] = None,
        seed: SeedOption = None,
        json: JsonFlag = False,
        out: OutOption = None,
        report: ReportOption = None,
    ) -> None:
        """Run the same jobs under several policies, side by side, with the differences and why."""
        from aliquot.interfaces.cli.output import show_results, watch  # noqa: PLC0415 - keeps help quick

        with watch() as progress:
            results = experiments().compare(files, policy or [], seed, progress)
        show_results(results, as_json=json, out=out, report=report)


def _add_replay(app: typer.Typer, experiments: Callable[[], Experiments]) -> None:
    replay = typer.Typer(
        help="Replay a public workload under a policy.", no_args_is_help=True, rich_markup_mode=None
    )
    app.add_typer(replay, name="replay")
    replay.callback()(lambda: None)

    @replay.command()
    def openb(
        workload: Annotated[str, typer.Option("--workload", "-w", help="default, multigpu20, cpu250, ...")],
        policy: Annotated[
            list[str] | None, typer.Option("--policy", "-p", help="May be given several times.")
        ] = None,
        seeds: Annotated[str, typer.Option("--seeds", help="Such as 42, 42-51 or 1,3,5.")] = "42",
        offered: Annotated[
            float, typer.Option("--offered", min=0.01, max=10, help="Stop once this share of all cards was asked for.")
        ] = 1.3,
        stream: Annotated[int, typer.Option("--stream", help="Seed of the policy's random streams.")] = 0,
        mix: Annotated[str, typer.Option("--mix", help="list: known beforehand; window: learnt on the way.")] = "list",
        moves: Annotated[float, typer.Option("--moves", min=0, max=1, help="Moves allowed, as a share.")] = 0.0,
        trace_dir: Annotated[
            Path | None, typer.Option("--trace-dir", metavar="DIR", help="Folder that holds openb/.")
        ] = None,
        json: JsonFlag = False,
        out: OutOption = None,
        report: ReportOption = None,
    ) -> None:
        """The published GPU-sharing placement experiment: allocation and fragmentation at every offered load."""
        from aliquot.interfaces.cli.openb import replay_openb  # noqa: PLC0415 - keeps help quick
        from aliquot.interfaces.cli.output import show_results  # noqa: PLC0415

        results = replay_openb(
            experiments(), workload, policy or ["future-packing"], seeds, offered, stream, mix, moves, trace_dir
        )
        show_results(results, as_json=json, out=out, report=report)


def _add_explain(app: typer.Typer, experiments: Callable[[], Experiments]) -> None:
    @app.command()
    def explain(
        files: Files,
        job: Annotated[str, typer.Argument(metavar="JOB", help="Name of the job.")],
        policy: PolicyOption = None,
        at: Annotated[
            str | None, typer.Option("--at", help="Look at this time, such as 10m; else when it is placed.")
        ] = None,
        seed: SeedOption = None,
        json: JsonFlag = False,
    ) -> None:
        """Say why JOB is where it is, or why it waits."""
        from aliquot.core.units import parse_duration  # noqa: PLC0415 - keeps help quick
        from aliquot.interfaces.cli.output import show_explanation  # noqa: PLC0415

        at_ms = None if at is None else int(parse_duration(at, "--at", zero=True))
        show_explanation(experiments().explain(files, job, policy, at_ms, seed), as_json=json)


def _add_topology(app: typer.Typer) -> None:
    @app.command()
    def topology(
        file: Annotated[str, typer.Argument(metavar="FILE|-", help="Output of `nvidia-smi topo -m`; - reads stdin.")],
        json: JsonFlag = False,
    ) -> None:
        """Read a printed topology matrix and show the machine as understood."""
        from aliquot.interfaces.cli.topology import show_topology  # noqa: PLC0415 - keeps help quick

        code = show_topology(file, json)
        if code:
            raise typer.Exit(code)
