"""The commands there are, one line each, and how one of them is made once it is asked for.

A list of commands needs their names and lines and nothing else; to make all of them for it takes longer than
most commands run. So a command's module is loaded when that command is: `add_NAME` of its module adds it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import typer
from typer.core import TyperCommand

from aliquot.interfaces.cli.help import Commands, Page
from aliquot.interfaces.cli.leaving import Reading, unwind_on_interrupt

if TYPE_CHECKING:
    from aliquot.control.experiments import Experiments
    from aliquot.control.live import Live
    from aliquot.interfaces.cli.policies import Policies


class Door(Enum):
    """What a command asks."""

    EXPERIMENTS = "experiments"
    LIVE = "live"
    POLICIES = "policies"
    NONE = "none"


class Doors(NamedTuple):
    """What commands are made with. Without `live` or `policies` there are no commands that ask them."""

    experiments: Callable[[], Experiments]
    live: Callable[[], Live] | None = None
    policies: Policies | None = None


class Row(NamedTuple):
    """A command in the list: its name, its line, the module that adds it and what it asks.

    `below`: of a group of commands, those in it. `unwinds`: it has something to put back when it is
    interrupted: what it has drawn, what it has begun to write, or a service.
    """

    name: str
    line: str
    module: str
    door: Door = Door.LIVE
    below: tuple[Row, ...] = ()
    unwinds: bool = False


REPLAYS: Final = tuple(
    Row(name, line, module, Door.EXPERIMENTS, unwinds=True)
    for name, line, module in (
        ("openb", "The published GPU-sharing placement experiment on 1,213 nodes.", "replay"),
        ("philly", "A public month of training jobs on 80 nodes of 8 cards: who waits how long.", "replays"),
        ("kueue", "Kueue's public performance shapes: thousands of jobs in queues that borrow.", "replays"),
        ("csv", "One's own past jobs, from a table whose columns a small file explains.", "replays"),
        ("sacct", "A Slurm site's past jobs, as sacct prints them.", "replays"),
        ("muri", "Jobs that share cards, in the Muri authors' published simulator model.", "replays"),
        ("pollux", "Elastic jobs, in the Pollux authors' published simulator model.", "replays"),
    )
)
ROWS: Final = (
    Row(
        "simulate", "Run jobs in virtual time under one policy; print the scorecard.", "virtual",
        Door.EXPERIMENTS, unwinds=True,
    ),
    Row(
        "compare", "Run the same jobs under several policies, side by side.", "virtual", Door.EXPERIMENTS,
        unwinds=True,
    ),
    Row(
        "replay", "Replay a public workload under one policy or several.", "replay", Door.EXPERIMENTS,
        REPLAYS,
    ),
    Row("explain", "Say why a job is where it is, or why it waits.", "virtual", Door.EXPERIMENTS),
    Row("topology", "Read a printed topology matrix; show the machine as understood.", "virtual", Door.NONE),
    Row(
        "up", "Serve this machine's cards: take jobs, run them, give the cards back.", "live_service",
        unwinds=True,
    ),
    Row("run", "Run a command on cards: wait your turn, see its output, get its exit code.", "live"),
    Row("submit", "Submit the jobs of documents.", "live"),
    Row("jobs", "List jobs.", "live"),
    Row("job", "Show one job.", "live"),
    Row("logs", "Print what a job has printed.", "live"),
    Row("cancel", "Give jobs up.", "live"),
    Row("wait", "Wait until jobs are over.", "live"),
    Row("gpus", "List cards and who holds what of them.", "live_site"),
    Row("queues", "List queues.", "live_site"),
    Row("top", "Watch cards and jobs as they are.", "live_site", unwinds=True),
    Row("report", "Inside a job: tell how far it is.", "live_site"),
    Row("why", "Say why a live job is where it is, or why it waits.", "live_site"),
    Row("drain", "Take no new work.", "live_service"),
    Row("undrain", "Take work again.", "live_service"),
    Row("apply", "Have the running service go by other documents.", "live_service"),
    Row("reserve", "Close cards for a time: maintenance, or some people's jobs only.", "live_reserve"),
    Row("reservations", "List reservations.", "live_reserve"),
    Row("unreserve", "Take a reservation back.", "live_reserve"),
    Row("policies", "List policies and presets, or show what one of them sets.", "policies", Door.POLICIES),
)  # fmt: skip  # one row per command


class Shelf(Commands):
    """A group that holds `Listed` commands."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """The same, told of a pipe that nobody reads: the parser would end the process with 1."""
        with Reading():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: Any) -> Any:
        """The same."""
        with Reading():
            return super().invoke(ctx)

    def put(self, rows: Sequence[Row], doors: Doors) -> None:
        """Put commands on the list, but for those that nobody is there to ask."""
        for row in rows:
            if door_of(row, doors) is not None:
                self.add_command(Listed(row, doors))


class Listed(Page, TyperCommand):
    """A command as the list knows it, which makes the command itself once it is to read its arguments."""

    def __init__(self, row: Row, doors: Doors) -> None:
        super().__init__(row.name, short_help=row.line, rich_markup_mode=None)
        self.row, self._doors = row, doors

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """That of the command itself."""
        if self.row.unwinds:
            unwind_on_interrupt()
        return make_command(self.row, self._doors).make_context(info_name, args, parent, **extra)


def door_of(row: Row, doors: Doors) -> object | None:
    """What the command of `row` asks; None where it is not there."""
    return {
        Door.EXPERIMENTS: doors.experiments,
        Door.LIVE: doors.live,
        Door.POLICIES: doors.policies,
        Door.NONE: doors,
    }[row.door]


def make_command(row: Row, doors: Doors) -> Any:
    """The command of `row`: a command of the parser, or a group of them."""
    add = getattr(import_module(f"aliquot.interfaces.cli.{row.module}"), f"add_{row.name}")
    app = typer.Typer(cls=Commands, rich_markup_mode=None)
    add(app, door_of(row, doors))
    command = typer.main.get_group(app).commands[row.name]
    if isinstance(command, Shelf):
        command.put(row.below, doors)
    return command
