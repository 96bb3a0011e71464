"""The options and arguments of the commands for a running service. Values only, as in `options`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ASKED, HOW, SERVICE = "What it needs", "How it runs", "Service"

SocketOption = Annotated[
    Path | None,
    typer.Option(
        "--socket",
        metavar="PATH",
        envvar="ALIQUOT_SOCKET",
        show_envvar=False,
        readable=False,  # whoever connects says better why he may not
        rich_help_panel=SERVICE,
        help="The service's socket; if absent, ALIQUOT_SOCKET, else your own service's, else the machine's.",
    ),
]
ListenOption = Annotated[
    Path | None,
    typer.Option(
        "--socket",
        metavar="PATH",
        rich_help_panel=SERVICE,
        help="Where to listen; if absent, aliquot.sock in --state, else ALIQUOT_SOCKET, else "
        "/run/aliquot/aliquot.sock for root, else with the state.",
    ),
]
SimulateOption = Annotated[
    str | None,
    typer.Option(
        "--simulate",
        metavar="SHAPE",
        rich_help_panel=SERVICE,
        help="Cards that are not there, for real jobs: dgx-h100, a100-40x8, l40s-4, mixed, or a file.",
    ),
]
StateOption = Annotated[
    Path | None,
    typer.Option(
        "--state",
        metavar="DIR",
        rich_help_panel=SERVICE,
        help="Where the record and the output of jobs are kept; if absent, /var/lib/aliquot for root, else "
        "~/.local/state/aliquot.",
    ),
]
LivePolicyOption = Annotated[
    str | None,
    typer.Option(
        "--policy",
        "-p",
        metavar="NAME",
        rich_help_panel=SERVICE,
        help="A policy of the documents or a built-in one; if absent, the documents' first, else "
        "future-packing.",
    ),
]
WatchOption = Annotated[
    str | None,
    typer.Option(
        "--watch",
        metavar="TIME",
        rich_help_panel=SERVICE,
        help="How often to look at the cards; if absent, every 2s.",
    ),
]
AcceptLossFlag = Annotated[
    bool,
    typer.Option(
        "--accept-loss",
        rich_help_panel=SERVICE,
        help="Start though the record is broken and what came after the damage is lost; the broken file is "
        "put aside. Only where a start without it has said what that is.",
    ),
]
ToleranceOption = Annotated[
    str | None,
    typer.Option(
        "--tolerance",
        metavar="TIME",
        rich_help_panel=SERVICE,
        help="How long a job may use more memory of a card than it was granted, before it is ended; if "
        "absent, 10s.",
    ),
]
ConfigOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        rich_help_panel=SERVICE,
        help="Documents that it goes by: queues, policies, slice classes; once for each file or folder.",
    ),
]
ConfigFiles = Annotated[
    list[Path] | None,
    typer.Argument(metavar="[FILE]...", show_default=False, help="The same as --config."),
]
ApplyFiles = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[FILE]...", show_default=False, help="Documents of queues, policies, slice classes, rates."
    ),
]
CommandArgument = Annotated[
    list[str],
    typer.Argument(metavar="COMMAND...", show_default=False, help="What to run, with its arguments."),
]
GpusOption = Annotated[
    int,
    typer.Option(
        "--gpus",
        "-g",
        min=0,
        metavar="N",
        rich_help_panel=ASKED,
        help="How many cards; a part of one with --compute or --memory.",
    ),
]
MemoryOption = Annotated[
    str | None,
    typer.Option(
        "--memory",
        metavar="SIZE",
        rich_help_panel=ASKED,
        help="Memory of each card, such as 20GiB: a slice of it; if neither this nor --compute, whole cards.",
    ),
]
ComputeOption = Annotated[
    str | None,
    typer.Option(
        "--compute", metavar="SHARE", rich_help_panel=ASKED, help="Compute of each card, such as 50%."
    ),
]
CoresOption = Annotated[
    str | None, typer.Option("--cpu", metavar="CORES", rich_help_panel=ASKED, help="Cores, such as 4.")
]
HostMemoryOption = Annotated[
    str | None,
    typer.Option(
        "--host-memory", metavar="SIZE", rich_help_panel=ASKED, help="Memory of the host, such as 32GiB."
    ),
]
QueueOption = Annotated[
    str | None, typer.Option("--queue", metavar="NAME", rich_help_panel=HOW, help="The queue to wait in.")
]
PriorityOption = Annotated[
    int | None,
    typer.Option("--priority", metavar="N", rich_help_panel=HOW, help="Higher starts first; 0 if absent."),
]
TimeOption = Annotated[
    str | None,
    typer.Option("--time", metavar="LIMIT", rich_help_panel=HOW, help="End it after, such as 4h."),
]
RetriesOption = Annotated[
    int,
    typer.Option("--retries", min=0, metavar="N", rich_help_panel=HOW, help="Attempts more if it fails."),
]
NameOption = Annotated[
    str, typer.Option("--name", metavar="NAME", rich_help_panel=HOW, help="A name to know it by.")
]
EnvOption = Annotated[
    list[str] | None,
    typer.Option(
        "--env",
        "-e",
        metavar="NAME=VALUE",
        rich_help_panel=HOW,
        help="Of the job's environment, beside the one of this shell; once for each.",
    ),
]
KeyOption = Annotated[
    str,
    typer.Option(
        "--key",
        metavar="KEY",
        rich_help_panel=HOW,
        help="What you submit again under the same key is the same job, never a second one.",
    ),
]
ArrayOption = Annotated[
    str | None,
    typer.Option(
        "--array",
        "-A",
        metavar="INDICES",
        rich_help_panel=HOW,
        help="One job for each index, such as 0-99%10: a hundred, at most ten at once; each finds its own in "
        "ALIQUOT_ARRAY_INDEX.",
    ),
]
MembersOption = Annotated[
    int,
    typer.Option(
        "--members",
        min=1,
        metavar="N",
        rich_help_panel=ASKED,
        help="N processes with cards of their own, which start and end together.",
    ),
]
WidthsOption = Annotated[
    str | None,
    typer.Option(
        "--widths",
        metavar="N,N,...",
        rich_help_panel=ASKED,
        help="Elastic: it can run with so many cards, or members; --gpus or --members is one of these. It is "
        "stopped and started again at another where that pays, and finds it in ALIQUOT_WIDTH.",
    ),
]
SpeedsOption = Annotated[
    str | None,
    typer.Option(
        "--speeds",
        metavar="X,X,...",
        rich_help_panel=ASKED,
        help="How fast it is at each of its widths, in any one unit, such as 1,1.9,3.4.",
    ),
]
SerialOption = Annotated[
    str | None,
    typer.Option(
        "--serial",
        metavar="SHARE",
        rich_help_panel=ASKED,
        help="Instead of --speeds: the part of its work that no further card makes faster, such as 5%.",
    ),
]
MemberOption = Annotated[
    int | None,
    typer.Option("--member", min=0, metavar="N", help="Of one member only; if absent, of all."),
]
EachFlag = Annotated[bool, typer.Option("--each", "-e", help="A row for each job of an array.")]
DetachFlag = Annotated[
    bool, typer.Option("--detach", "-d", rich_help_panel=HOW, help="Print the job's id and do not wait.")
]
AllFlag = Annotated[bool, typer.Option("--all", "-a", help="Those that are over too.")]
MineFlag = Annotated[bool, typer.Option("--mine", "-m", help="Only your own.")]
NowFlag = Annotated[
    bool,
    typer.Option(
        "--now", help="KILL what runs at once, without TERM and its grace; again for one that ends."
    ),
]
FollowFlag = Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job is over.")]
EveryOption = Annotated[
    float, typer.Option("--every", min=0.2, metavar="SECONDS", help="How often to look anew.")
]
OnceFlag = Annotated[
    bool, typer.Option("--once", help="Look once, print it and leave; so it is in a pipe or a file.")
]
# text: what is wrong with a number is said, and the job that reports goes on
StepOption = Annotated[
    str | None, typer.Option("--step", metavar="N", help="Steps done since this attempt began.")
]
TokensOption = Annotated[
    str | None, typer.Option("--tokens", metavar="N", help="Tokens worked through since it began.")
]
FlopsOption = Annotated[
    str | None,
    typer.Option(
        "--flops", metavar="N", help="Floating-point operations of the model since it began, such as 3.1e15."
    ),
]
CheckpointFlag = Annotated[
    bool, typer.Option("--checkpoint", help="What was done so far has been saved just now.")
]
IdArgument = Annotated[
    str, typer.Argument(metavar="ID", show_default=False, help="A job's id, as submit prints it.")
]
IdsArgument = Annotated[list[str], typer.Argument(metavar="ID...", show_default=False, help="Ids of jobs.")]
NodesArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NODE]...", show_default=False, help="Names of nodes; if absent, all."),
]
PlacesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[NODE|CARD]...",
        show_default=False,
        help="Names of nodes, UUIDs or numbers of cards; if absent, all nodes.",
    ),
]
JobFiles = Annotated[
    list[Path],
    typer.Argument(metavar="FILE...", show_default=False, help="Documents of kind Job with a command."),
]
