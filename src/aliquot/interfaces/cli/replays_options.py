"""The options of `aliquot replay philly|kueue|csv|sacct|muri|pollux`: how they are written, their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aliquot.interfaces.cli.options import POLICY, RUN

SITE = "Site"

EstimatesOption = Annotated[
    str,
    typer.Option(
        "--estimates",
        metavar="exact|over|wrong10|none",
        rich_help_panel=RUN,
        help="What the planner is told of run times: the truth, 1 to 5 times as much, a tenth to ten times, "
        "or nothing.",
    ),
]
RecordedOption = Annotated[
    str,
    typer.Option(
        "--estimates",
        metavar="recorded|exact|over|wrong10|none",
        rich_help_panel=RUN,
        help="What the planner is told of run times: the limit recorded, the truth, or drawn errors.",
    ),
]
SeedsOption = Annotated[
    str,
    typer.Option(
        "--seed",
        "--seeds",
        metavar="LIST",
        rich_help_panel=RUN,
        help="Seeds of drawn estimates and of the policy's random streams: 0, 0-9 or 1,3,5.",
    ),
]
DaysOption = Annotated[
    int | None,
    typer.Option(
        "--days", min=1, metavar="N", rich_help_panel=RUN, help="Only what was submitted in the first N days."
    ),
]
JobsOption = Annotated[
    int | None,
    typer.Option("--jobs", min=1, metavar="N", rich_help_panel=RUN, help="Only the first N jobs."),
]
TracesOption = Annotated[
    Path | None,
    typer.Option(
        "--trace-dir",
        metavar="DIR",
        rich_help_panel=RUN,
        help="Folder of public traces that holds this one's; if absent, the folder named by ALIQUOT_TRACES, "
        "else traces/ in that named by ALIQUOT_SHARED, else ../shared/traces.",
    ),
]
QueuePoliciesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--policy",
        "-p",
        metavar="NAME",
        rich_help_panel=POLICY,
        help="backfill, easy, skip-ahead, fifo (one queue for all); fair, reclaim, or another by name (the "
        "queues there are share). Once for each to compare.",
    ),
]
ShapeOption = Annotated[
    str,
    typer.Option(
        "--shape", metavar="baseline|topology|large", rich_help_panel=RUN, help="Which of the three shapes."
    ),
]
HistoryArgument = Annotated[
    Path,
    typer.Argument(metavar="FILE", show_default=False, help="The table of past jobs, one line each."),
]
ColumnsOption = Annotated[
    Path,
    typer.Option(
        "--columns",
        metavar="MAP.yaml",
        show_default=False,
        rich_help_panel=RUN,
        help="A small file that says which column holds what, and in which unit.",
    ),
]
ClusterOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--cluster",
        metavar="FILE",
        rich_help_panel=SITE,
        help="Documents of the machines, queues and policies; give it again for more files.",
    ),
]
NodesOption = Annotated[
    int | None,
    typer.Option(
        "--nodes", min=1, metavar="N", rich_help_panel=SITE, help="Instead of documents: N nodes, all alike."
    ),
]
CardsOption = Annotated[
    int | None,
    typer.Option("--cards", min=1, metavar="C", rich_help_panel=SITE, help="Cards of each node."),
]
ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="NAME",
        rich_help_panel=SITE,
        help="Their GPU model; needed where jobs name GPU memory.",
    ),
]
QueueByOption = Annotated[
    str,
    typer.Option(
        "--queue-by",
        metavar="FIELD",
        rich_help_panel=RUN,
        help="What becomes the queue: partition, account, user, or levels such as account/user.",
    ),
]
MuriTraceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--trace",
        "-t",
        metavar="N",
        rich_help_panel=RUN,
        help="1 to 4, or 1p to 4p with all jobs submitted at once; once for each. If absent, all eight.",
    ),
]
MuriPolicyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--policy",
        "-p",
        metavar="NAME",
        rich_help_panel=POLICY,
        help="share-s (job sizes known), share-l (not known), or a baseline run again: srtf, srsf, tiresias. "
        "If absent, share-s.",
    ),
]
PolluxWorkloadOption = Annotated[
    list[str] | None,
    typer.Option(
        "--workload",
        "-w",
        metavar="N",
        rich_help_panel=RUN,
        help="1 to 8; give it once for each. If absent, all eight.",
    ),
]
PolluxPolicyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--policy",
        "-p",
        metavar="NAME",
        rich_help_panel=POLICY,
        help="elastic, or the baseline tiresias run again. If absent, elastic.",
    ),
]
