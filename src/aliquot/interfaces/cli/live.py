"""Commands that speak to a running service, and the one that is the service.

Each reads its options, asks through `control.live` and prints what comes back; nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from aliquot.interfaces.cli.help import Command, examples
from aliquot.interfaces.cli.live_options import (
    AllFlag,
    ArrayOption,
    CheckpointFlag,
    CommandArgument,
    ComputeOption,
    CoresOption,
    DetachFlag,
    EachFlag,
    EnvOption,
    EveryOption,
    FlopsOption,
    FollowFlag,
    GpusOption,
    HostMemoryOption,
    IdArgument,
    IdsArgument,
    JobFiles,
    KeyOption,
    MemberOption,
    MembersOption,
    MemoryOption,
    MineFlag,
    NameOption,
    OnceFlag,
    PriorityOption,
    QueueOption,
    RetriesOption,
    SocketOption,
    StepOption,
    TimeOption,
    TokensOption,
)
from aliquot.interfaces.cli.live_service import add_apply, add_drains, add_up
from aliquot.interfaces.cli.options import JsonFlag

if TYPE_CHECKING:
    from aliquot.control.live import Live
    from aliquot.control.views import Accepted

LIVE_EXPLAIN: Final = "why"
PATIENCE_S: Final = 1.0  # of whoever submits, to be told when it starts
FEW: Final = 10  # documents; of more only those with bounds are worth the wait


def add_live_commands(app: typer.Typer, live: Callable[[], Live]) -> None:
    """All of them, in the order in which one meets them."""
    add_up(app, live)
    _add_run(app, live)
    _add_submit(app, live)
    _add_jobs(app, live)
    _add_job(app, live)
    _add_logs(app, live)
    _add_endings(app, live)
    _add_sites(app, live)
    _add_top(app, live)
    _add_report(app)
    _add_why(app, live)
    add_drains(app, live)
    add_apply(app, live)


def spell_explain(arguments: Sequence[str]) -> list[str]:
    """`explain ID`, without a file to read, asks the running service."""
    words = list(arguments)
    if words[:1] != ["explain"]:
        return words
    own = [word for before, word in pairwise(words) if before != "--socket"]
    others = [word for word in own if not word.startswith("-")]
    is_live = len(others) == 1 and others[0].replace("_", "", 1).isdigit() and not Path(others[0]).exists()
    return [LIVE_EXPLAIN, *words[1:]] if is_live else words


def _add_run(app: typer.Typer, live: Callable[[], Live]) -> None:
    @app.command(
        cls=Command,
        short_help="Run a command on cards: wait your turn, see its output, get its exit code.",
        epilog=examples(
            "aliquot run --gpus 2 -- python train.py",
            "aliquot run --gpus 1 --memory 20GiB --compute 50% --time 4h --detach -- ./serve.sh",
        ),
        context_settings={"allow_interspersed_args": False},
    )
    def run(
        command: CommandArgument,
        gpus: GpusOption = 1,
        memory: MemoryOption = None,
        compute: ComputeOption = None,
        cpu: CoresOption = None,
        host_memory: HostMemoryOption = None,
        queue: QueueOption = None,
        priority: PriorityOption = None,
        time: TimeOption = None,
        retries: RetriesOption = 0,
        name: NameOption = "",
        env: EnvOption = None,
        key: KeyOption = "",
        array: ArrayOption = None,
        members: MembersOption = 1,
        detach: DetachFlag = False,
        socket: SocketOption = None,
    ) -> None:
        """Run COMMAND on cards: wait for its turn, stream its output, and exit with its exit code.

        Signals are passed on to the job; while it waits, an interrupt gives it up, and so does a second one
        while it runs. The job has the folder and the environment this was called with.
        """
        from aliquot.interfaces.cli.live_asks import RunAsk, submission
        from aliquot.interfaces.cli.live_run import run_array, run_job

        asked = RunAsk(
            gpus, memory, compute, cpu, host_memory, queue, priority, time, retries, name, env or [], key,
            array, members,
        )  # fmt: skip  # two lines read better than fourteen
        remote = live().connect(socket)
        wanted = submission(command, asked, live().environment(), Path.cwd())
        if detach:
            told = remote.submit_and_see(wanted)
            say_outlook(told)
            typer.echo(told.id)
            return
        job = remote.submit(wanted)  # at once: from here on signals are for the job
        raise typer.Exit(run_job(remote, job) if array is None else run_array(remote, job))


def say_outlook(told: Accepted) -> None:
    """On standard error: what is known of a job that was just accepted, where that is worth a line."""
    from aliquot.interfaces.cli.live_text import accepted_lines

    for line in accepted_lines(told):
        typer.echo(line, err=True)


def _add_submit(app: typer.Typer, live: Callable[[], Live]) -> None:
    @app.command(
        cls=Command,
        short_help="Submit the jobs of documents.",
        epilog=examples("aliquot submit train.yaml"),
    )
    def submit(files: JobFiles, socket: SocketOption = None, json: JsonFlag = False) -> None:
        """Submit the jobs of FILE..., documents of kind Job with a command, and print their ids.

        All are read before the first is submitted. When they are expected to start and whether bounds
        (startBy, finishBy, speedFloor) can be met is said on standard error.
        """
        from aliquot.interfaces.cli.live_asks import BOUNDS, in_this_folder, with_ids
        from aliquot.interfaces.cli.live_text import print_json

        doors = live()
        asked = [in_this_folder(job, doors.environment(), Path.cwd()) for job in doors.read_jobs(files)]
        remote = doors.connect(socket)
        answers: list[Accepted] = []
        id_of: dict[str, str] = {}
        for job in asked:
            patience = PATIENCE_S if len(asked) <= FEW or BOUNDS & job.spec.keys() else 0
            answers.append(remote.submit_and_see(with_ids(job, id_of), patience=patience))
            id_of[job.name] = answers[-1].id
            if not json:
                typer.echo(answers[-1].id)
            say_outlook(answers[-1])
        if json:
            print_json(answers)


def _add_jobs(app: typer.Typer, live: Callable[[], Live]) -> None:
    @app.command(
        cls=Command,
        short_help="List jobs.",
        epilog=examples("aliquot jobs", "aliquot jobs --all --mine --json"),
    )
    def jobs(
        all_: AllFlag = False,
        mine: MineFlag = False,
        each: EachFlag = False,
        socket: SocketOption = None,
        json: JsonFlag = False,
    ) -> None:
        """List the jobs that wait or run, in the order in which they were submitted; an array on one line."""
        from aliquot.interfaces.cli.live_text import job_lines, show

        show(live().connect(socket).jobs(over=all_, mine=mine, fold=not each), job_lines, as_json=json)


def _add_job(app: typer.Typer, live: Callable[[], Live]) -> None:
    @app.command(cls=Command, short_help="Show one job.", epilog=examples("aliquot job 12"))
    def job(id_: IdArgument, socket: SocketOption = None, json: JsonFlag = False) -> None:
        """Show all about one job: what it asked for, its attempts, what it held, how it ended.

        Of an array its jobs are listed.
        """
        from aliquot.interfaces.cli.live_asks import tasks_of
        from aliquot.interfaces.cli.live_text import detail_lines, job_lines, show

        remote = live().connect(socket)
        tasks = tasks_of(remote, id_)
        if tasks is None:
            show(remote.job(id_), detail_lines, as_json=json)
        else:
            show(tasks, job_lines, as_json=json)


def _add_logs(app: typer.Typer, live: Callable[[], Live]) -> None:
    @app.command(
        cls=Command, short_help="Print what a job has printed.", epilog=examples("aliquot logs -f 12")
    )
    def logs(
        id_: IdArgument, follow: FollowFlag = False, member: MemberOption = None, socket: SocketOption = None
    ) -> None:
        """Print what a job has printed so far; with --follow, go on until it is over.

        Lines of a job of several members begin with the member's number.
        """
        from aliquot.interfaces.cli.live_run import print_output

        print_output(live().connect(socket), id_, follow=follow, member=member)


def _add_endings(app: typer.Typer, live: Callable[[], Live]) -> None:
    @app.command(cls=Command, short_help="Give jobs up.", epilog=examples("aliquot cancel 12 13"))
    def cancel(ids: IdsArgument, socket: SocketOption = None) -> None:
        """Give jobs, or whole arrays, up: what runs is ended, with TERM first, and KILL after its grace."""
        remote = live().connect(socket)
        for job in ids:
            remote.cancel(job)

    @app.command(
        cls=Command, short_help="Wait until jobs are over.", epilog=examples("aliquot wait 12 && echo done")
    )
    def wait(ids: IdsArgument, socket: SocketOption = None) -> None:
        """Wait until jobs are over; the exit code is that of the first that failed, or 0."""
        from aliquot.interfaces.cli.live_run import wait_for

        raise typer.Exit(wait_for(live().connect(socket), ids))


def _add_sites(app: typer.Typer, live: Callable[[], Live]) -> None:
    @app.command(
        cls=Command, short_help="List cards and who holds what of them.", epilog=examples("aliquot gpus")
    )
    def gpus(socket: SocketOption = None, json: JsonFlag = False) -> None:
        """List the cards, what is free of each, and the jobs on it."""
        from aliquot.interfaces.cli.live_text import card_lines, show

        show(live().connect(socket).gpus(), card_lines, as_json=json)

    @app.command(cls=Command, short_help="List queues.", epilog=examples("aliquot queues"))
    def queues(socket: SocketOption = None, json: JsonFlag = False) -> None:
        """List the queues, what waits and what runs in each."""
        from aliquot.interfaces.cli.live_queues import queue_lines
        from aliquot.interfaces.cli.live_text import show

        show(live().connect(socket).queues(), queue_lines, as_json=json)


def _add_top(app: typer.Typer, live: Callable[[], Live]) -> None:
    @app.command(
        cls=Command,
        short_help="Watch cards and jobs as they are.",
        epilog=examples("aliquot top", "aliquot top --once"),
    )
    def top(every: EveryOption = 2.0, once: OnceFlag = False, socket: SocketOption = None) -> None:
        """Watch the cards, how busy they are, and the jobs that wait and run, until interrupted."""
        from aliquot.interfaces.cli.live_top import watch_site

        watch_site(live().connect(socket), every, once=once)


def _add_report(app: typer.Typer) -> None:
    @app.command(
        cls=Command,
        short_help="Inside a job: tell how far it is.",
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


def _add_why(app: typer.Typer, live: Callable[[], Live]) -> None:
    @app.command(
        LIVE_EXPLAIN,
        cls=Command,
        short_help="Say why a live job is where it is, or why it waits.",
        epilog=examples("aliquot why 12", "aliquot explain 12"),
    )
    def why(id_: IdArgument, socket: SocketOption = None, json: JsonFlag = False) -> None:
        """Say why a job of the running service is where it is, or why it waits.

        'aliquot explain ID' does the same.
        """
        from aliquot.interfaces.cli.live_text import explanation_lines, show

        show(live().connect(socket).explain(id_), explanation_lines, as_json=json)
