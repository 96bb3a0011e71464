"""Commands about the jobs of a running service.

Each reads its options, asks through `control.live` and prints what comes back; nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from aliquot.interfaces.cli.help import Command, examples
from aliquot.interfaces.cli.leaving import INTERRUPTED
from aliquot.interfaces.cli.live_options import (
    AllFlag,
    ArrayOption,
    CommandArgument,
    ComputeOption,
    CoresOption,
    DetachFlag,
    EachFlag,
    EnvOption,
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
    NowFlag,
    PriorityOption,
    QueueOption,
    RetriesOption,
    SerialOption,
    SocketOption,
    SpeedsOption,
    TimeOption,
    WidthsOption,
)
from aliquot.interfaces.cli.options import JsonFlag

if TYPE_CHECKING:
    from aliquot.control.live import Live, Remote
    from aliquot.control.views import Accepted, Submission


def add_run(app: typer.Typer, live: Callable[[], Live]) -> None:
    """`run`: a command as a job, and stay with it."""

    @app.command(
        cls=Command,
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
        widths: WidthsOption = None,
        speeds: SpeedsOption = None,
        serial: SerialOption = None,
        detach: DetachFlag = False,
        socket: SocketOption = None,
    ) -> None:
        """Run COMMAND on cards: wait for its turn, stream its output, and exit with its exit code.

        Signals are passed on to the job; while it waits, an interrupt gives it up, and so does a second one
        while it runs, and a pipe that nobody reads any more, as in aliquot run ... | head. The job has the
        folder and the environment this was called with.
        """
        from aliquot.interfaces.cli.live_asks import RunAsk, submission

        asked = RunAsk(
            gpus, memory, compute, cpu, host_memory, queue, priority, time, retries, name, env or [], key,
            array, members, widths, speeds, serial,
        )  # fmt: skip  # two lines read better than fourteen
        wanted = submission(command, asked, live().environment(), Path.cwd())
        raise typer.Exit(_start(live().connect(socket), wanted, detach=detach, is_array=array is not None))


def _start(remote: Remote, wanted: Submission, *, detach: bool, is_array: bool) -> int:
    """The exit code: that of the job, or 0 at once for one that is left to itself."""
    from aliquot.interfaces.cli.live_run import run_array, run_job, submit_surely
    from aliquot.interfaces.cli.passing import Passing

    with Passing(remote) as passing:
        if detach:
            told = remote.submit_and_see(wanted)
            passing.leave_to_itself(told.id)
            say_outlook(told)
            typer.echo(told.id)
            return passing.code(0 if passing.given_up is None else INTERRUPTED)
        job = submit_surely(remote, wanted)
        passing.go_to(job)
        return passing.code(run_array(remote, job) if is_array else run_job(remote, job))


def say_outlook(told: Accepted) -> None:
    """On standard error: what is known of a job that was just accepted, where that is worth a line."""
    from aliquot.interfaces.cli.live_text import accepted_lines
    from aliquot.interfaces.cli.plain import say

    for line in accepted_lines(told):
        say(line)


def add_submit(app: typer.Typer, live: Callable[[], Live]) -> None:
    """`submit`: jobs of documents."""

    @app.command(
        cls=Command,
        epilog=examples("aliquot submit train.yaml"),
    )
    def submit(files: JobFiles, socket: SocketOption = None, json: JsonFlag = False) -> None:
        """Submit the jobs of FILE..., documents of kind Job with a command, and print their ids.

        All are accepted, or none where one of them is wrong. When they are expected to start and whether
        bounds (startBy, finishBy, speedFloor) can be met is said on standard error.
        """
        from aliquot.interfaces.cli.live_asks import FEW, submit_written
        from aliquot.interfaces.cli.plain import print_json

        doors = live()
        written = doors.read_jobs(files)
        answers = submit_written(doors.connect(socket), written, doors.environment(), Path.cwd())
        for answer in answers:
            if not json:
                typer.echo(answer.id)
            if len(answers) <= FEW or answer.promise is not None or answer.never is not None:
                say_outlook(answer)
        if json:
            print_json(answers)


def add_jobs(app: typer.Typer, live: Callable[[], Live]) -> None:
    """`jobs`: all of them."""

    @app.command(
        cls=Command,
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
        from aliquot.interfaces.cli.quick import ListAsk, list_jobs

        list_jobs(ListAsk(all_, mine, each, json, socket), live())


def add_job(app: typer.Typer, live: Callable[[], Live]) -> None:
    """`job`: one of them."""

    @app.command(cls=Command, epilog=examples("aliquot job 12"))
    def job(id_: IdArgument, socket: SocketOption = None, json: JsonFlag = False) -> None:
        """Show all about one job: what it asked for, its attempts, what it held, how it ended.

        Of an array its jobs are listed.
        """
        from aliquot.interfaces.cli.job_rows import job_lines
        from aliquot.interfaces.cli.live_asks import tasks_of
        from aliquot.interfaces.cli.live_text import detail_lines
        from aliquot.interfaces.cli.plain import show

        remote = live().connect(socket)
        tasks = tasks_of(remote, id_)
        if tasks is None:
            show(remote.job(id_), detail_lines, as_json=json)
        else:
            show(tasks, job_lines, as_json=json)


def add_logs(app: typer.Typer, live: Callable[[], Live]) -> None:
    """`logs`: what it printed."""

    @app.command(cls=Command, epilog=examples("aliquot logs -f 12"))
    def logs(
        id_: IdArgument, follow: FollowFlag = False, member: MemberOption = None, socket: SocketOption = None
    ) -> None:
        """Print what a job has printed so far; with --follow, go on until it is over.

        Lines of a job of several members begin with the member's number.
        """
        from aliquot.interfaces.cli.live_run import print_output

        print_output(live().connect(socket), id_, follow=follow, member=member)


def add_cancel(app: typer.Typer, live: Callable[[], Live]) -> None:
    """`cancel`: several at once."""

    @app.command(cls=Command, epilog=examples("aliquot cancel 12 13", "aliquot cancel --now 12"))
    def cancel(ids: IdsArgument, now: NowFlag = False, socket: SocketOption = None) -> None:
        """Give jobs, or whole arrays, up: what runs is ended, with TERM first, and KILL after its grace.

        What can't be given up is named, and the exit code is then 2; the others are all the same.
        """
        from aliquot.interfaces.cli.several import do_each

        remote = live().connect(socket)
        raise typer.Exit(do_each(ids, lambda job: remote.cancel(job, now=now)))


def add_wait(app: typer.Typer, live: Callable[[], Live]) -> None:
    """`wait`: several at once."""

    @app.command(cls=Command, epilog=examples("aliquot wait 12 && echo done"))
    def wait(ids: IdsArgument, socket: SocketOption = None) -> None:
        """Wait until jobs are over; the exit code is that of the first that failed, or 0.

        Of a job that is not there the exit code is 2; the others are waited for all the same.
        """
        from aliquot.interfaces.cli.live_run import wait_for

        raise typer.Exit(wait_for(live().connect(socket), ids))
