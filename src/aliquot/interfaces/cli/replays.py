"""`aliquot replay philly|kueue|csv|sacct|muri|pollux`: the commands, their help, and what each asks for.

Nothing heavy is imported before a command runs; what they share is `replays_run`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import typer

from aliquot.interfaces.cli.help import Command, examples
from aliquot.interfaces.cli.options import JsonOption, PredictFlag, ReportOption
from aliquot.interfaces.cli.replays_options import (
    CardsOption,
    ClusterOption,
    ColumnsOption,
    DaysOption,
    EstimatesOption,
    HistoryArgument,
    JobsOption,
    ModelOption,
    MuriPolicyOption,
    MuriTraceOption,
    NodesOption,
    PolluxPolicyOption,
    PolluxWorkloadOption,
    QueueByOption,
    QueuePoliciesOption,
    RecordedOption,
    SeedsOption,
    ShapeOption,
    TracesOption,
)

if TYPE_CHECKING:
    from aliquot.control.experiments import Experiments

Make = Callable[[], "Experiments"]


def add_philly(app: typer.Typer, experiments: Make) -> None:
    """`philly`: a public month."""

    @app.command(
        cls=Command,
        epilog=examples(
            "aliquot replay philly --days 7",
            "aliquot replay philly -p fifo -p easy -p backfill --estimates wrong10 --seeds 0-9",
        ),
    )
    def philly(
        estimates: EstimatesOption = "exact",
        days: DaysOption = None,
        jobs: JobsOption = None,
        seed: SeedsOption = "0",
        trace_dir: TracesOption = None,
        policy: QueuePoliciesOption = None,
        predict: PredictFlag = False,
        json: JsonOption = None,
        report: ReportOption = None,
    ) -> None:
        """Replay the public Philly trace of October 2017: who waits how long, by policy and by width.

        47,192 jobs of a training cluster in virtual time on 80 nodes of 8 cards, through the real planner.
        The whole month takes minutes under each policy; begin with --days. Without --policy it is backfill.
        """
        from aliquot.control.replaying import PhillyAsk
        from aliquot.interfaces.cli.replays_run import read_estimates, run_traces

        told = read_estimates(estimates)
        run_traces(
            experiments(),
            "philly",
            lambda at: PhillyAsk(told, at, days, jobs, trace_dir),
            (policy, seed, json, report, predict),
        )


def add_kueue(app: typer.Typer, experiments: Make) -> None:
    """`kueue`: public shapes."""

    @app.command(
        cls=Command,
        epilog=examples(
            "aliquot replay kueue",
            "aliquot replay kueue --shape large --jobs 10000 -p reclaim -p skip-ahead",
        ),
    )
    def kueue(
        shape: ShapeOption = "baseline",
        jobs: JobsOption = None,
        policy: QueuePoliciesOption = None,
        predict: PredictFlag = False,
        json: JsonOption = None,
        report: ReportOption = None,
    ) -> None:
        """Make one of Kueue's public performance shapes anew and run it through the real planner.

        15,000 jobs in 30 queues, the same in pods on 640 nodes, or 50,000 jobs in 1,000 queues. What is cpu
        there is cards here. Their published rates include an API server and clients limited to 50 calls a
        second; ours are those of the decision core alone. Without --policy it is reclaim.
        """
        from aliquot.control.replaying import KueueAsk
        from aliquot.interfaces.cli.replays_run import run_traces

        run_traces(
            experiments(), "kueue", lambda _: KueueAsk(shape, jobs), (policy, "0", json, report, predict)
        )


def add_csv(app: typer.Typer, experiments: Make) -> None:
    """`csv`: a table of one's own."""

    @app.command(
        cls=Command,
        epilog=examples(
            "aliquot replay csv examples/history/jobs.csv --columns examples/history/columns.yaml "
            "--nodes 4 --cards 8",
            "aliquot replay csv jobs.csv --columns columns.yaml --cluster site.yaml -p fifo -p backfill",
        ),
    )
    def csv(
        file: HistoryArgument,
        columns: ColumnsOption,
        cluster: ClusterOption = None,
        nodes: NodesOption = None,
        cards: CardsOption = None,
        model: ModelOption = None,
        estimates: RecordedOption = "recorded",
        jobs: JobsOption = None,
        seed: SeedsOption = "0",
        policy: QueuePoliciesOption = None,
        predict: PredictFlag = False,
        json: JsonOption = None,
        report: ReportOption = None,
    ) -> None:
        """Replay one's own history in FILE: how long jobs would wait under other policies or machines.

        MAP.yaml says under `columns` which column is submit, start, end, duration, estimate, limit, cards,
        nodes, gpuMemory, model, queue, user, priority, id; under `units` how time (iso, seconds,
        milliseconds or a pattern), duration, estimate, limit and gpuMemory are written. A job is ended at its
        limit. A row that does not say how long it ran or on how many cards is left out and counted; a wrong
        one is an error. Without --policy it is the first of the documents, else backfill.
        """
        from aliquot.control.replaying import HistoryAsk, Site
        from aliquot.interfaces.cli.replays_run import read_estimates, run_traces

        site, told = Site(tuple(cluster or ()), nodes, cards, model), read_estimates(estimates)
        run_traces(
            experiments(),
            "csv",
            lambda at: HistoryAsk(file, site, columns, estimates=told, seed=at, jobs=jobs),
            (policy, seed, json, report, predict),
            inputs=(file, columns, *site.documents),
        )


def add_sacct(app: typer.Typer, experiments: Make) -> None:
    """`sacct`: Slurm's accounting."""

    @app.command(
        cls=Command,
        epilog=examples(
            "sacct --allusers --parsable2 --starttime 2026-05-01 --format=JobID,Submit,Start,End,Elapsed,"
            "Timelimit,State,AllocTRES,ReqTRES,Partition,Account,User,Priority > jobs.txt",
            "aliquot replay sacct jobs.txt --nodes 40 --cards 8",
            "aliquot replay sacct jobs.txt --cluster site.yaml --queue-by account -p fifo -p backfill",
        ),
    )
    def sacct(
        file: HistoryArgument,
        cluster: ClusterOption = None,
        nodes: NodesOption = None,
        cards: CardsOption = None,
        model: ModelOption = None,
        queue_by: QueueByOption = "partition",
        estimates: RecordedOption = "recorded",
        jobs: JobsOption = None,
        seed: SeedsOption = "0",
        policy: QueuePoliciesOption = None,
        predict: PredictFlag = False,
        json: JsonOption = None,
        report: ReportOption = None,
    ) -> None:
        """Replay what Slurm's accounting recorded in FILE, the output of sacct --parsable2.

        Steps belong to their job; tasks of arrays are jobs; cards are gres/gpu of AllocTRES, else of
        ReqTRES; the time limit is the estimate, and jobs are ended at it, as Slurm does. Jobs that never
        started, still ran or had no card are left out and counted. Without --policy it is the first of the
        documents, else backfill.
        """
        from aliquot.control.replaying import HistoryAsk, Site
        from aliquot.interfaces.cli.replays_run import read_estimates, run_traces

        site, told = Site(tuple(cluster or ()), nodes, cards, model), read_estimates(estimates)
        run_traces(
            experiments(),
            "sacct",
            lambda at: HistoryAsk(file, site, queue_by=queue_by, estimates=told, seed=at, jobs=jobs),
            (policy, seed, json, report, predict),
            inputs=(file, *site.documents),
        )


def add_muri(app: typer.Typer, experiments: Make) -> None:
    """`muri`: jobs that share cards."""

    @app.command(
        cls=Command,
        epilog=examples(
            "aliquot replay muri --trace 3 --trace 3p",
            "aliquot replay muri -t 1 -p srtf -p srsf -p tiresias -p share-s -p share-l --json",
        ),
    )
    def muri(
        trace: MuriTraceOption = None,
        policy: MuriPolicyOption = None,
        trace_dir: TracesOption = None,
        json: JsonOption = None,
    ) -> None:
        """Replay the Muri traces in their authors' published simulator model, beside what they printed.

        Up to four jobs of one width share a set of 64 cards. share-s and share-l are Aliquot's own rules
        and stand beside Muri-S and Muri-L; the baselines run again show that the model is reproduced. Up to
        a minute for each trace and rule. Traces 1 and 3 were used to choose the rules' numbers.
        """
        from aliquot.interfaces.cli.replays_run import MURI_TRACES, run_published

        asked = [(at, name) for at in trace or MURI_TRACES for name in policy or ["share-s"]]
        run_published(experiments(), "muri", asked, trace_dir, json)


def add_pollux(app: typer.Typer, experiments: Make) -> None:
    """`pollux`: jobs that grow and shrink."""

    @app.command(
        cls=Command,
        epilog=examples(
            "aliquot replay pollux --workload 6",
            "aliquot replay pollux -p elastic -p tiresias --json out/pollux.json",
        ),
    )
    def pollux(
        workload: PolluxWorkloadOption = None,
        policy: PolluxPolicyOption = None,
        trace_dir: TracesOption = None,
        json: JsonOption = None,
    ) -> None:
        """Replay the Pollux workloads in their authors' published simulator model, beside what they printed.

        160 elastic training jobs on 16 nodes of 4 cards, in rounds of 60 s. elastic is Aliquot's own rule
        and stands beside Pollux; tiresias is the baseline run again. Workloads 1 to 4 were used to choose
        the rule's numbers. Speeds are the measured profiles; the published Pollux learns them as it goes.
        """
        from aliquot.interfaces.cli.replays_run import POLLUX_WORKLOADS, run_published

        asked = [(at, name) for at in workload or POLLUX_WORKLOADS for name in policy or ["elastic"]]
        run_published(experiments(), "pollux", asked, trace_dir, json)
