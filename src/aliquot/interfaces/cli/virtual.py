"""Commands in virtual time, and the one that reads a machine's topology: none of them starts anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import typer

from aliquot.interfaces.cli.help import Command, examples
from aliquot.interfaces.cli.options import (
    AtOption,
    Files,
    JobArgument,
    JsonFlag,
    JsonOption,
    MatrixArgument,
    PoliciesOption,
    PolicyOption,
    PredictFlag,
    ReportOption,
    SeedOption,
)

if TYPE_CHECKING:
    from aliquot.control.experiments import Experiments


def add_simulate(app: typer.Typer, experiments: Callable[[], Experiments]) -> None:
    """`simulate`: one policy."""

    @app.command(
        cls=Command,
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


def add_compare(app: typer.Typer, experiments: Callable[[], Experiments]) -> None:
    """`compare`: several."""

    @app.command(
        cls=Command,
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


def add_explain(app: typer.Typer, experiments: Callable[[], Experiments]) -> None:
    """`explain`: one job of a run."""

    @app.command(
        cls=Command,
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


def add_topology(app: typer.Typer, nobody: object) -> None:
    """`topology`: what it shows it reads itself."""

    @app.command(
        cls=Command,
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
