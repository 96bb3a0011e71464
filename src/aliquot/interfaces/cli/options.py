"""The options and arguments of the commands: how they are written, what their help says, in which group.

Values only; what they mean is decided where a command is run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

POLICY, OUTPUT, RUN = "Policy", "Output", "Run"

Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...",
        show_default=False,
        help="Documents in YAML or JSON (kinds Cluster, Pool, Job, Queue, SliceClass, Policy), or folders "
        "of them.",
    ),
]
PolicyOption = Annotated[
    str | None,
    typer.Option(
        "--policy",
        "-p",
        metavar="NAME",
        rich_help_panel=POLICY,
        help="A policy of the documents, or a built-in one; if absent, the first of the documents, "
        "else future-packing.",
    ),
]
PoliciesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--policy",
        "-p",
        metavar="NAME",
        rich_help_panel=POLICY,
        help="A policy by name, of the documents or built in; give it once for each to compare.",
    ),
]
SeedOption = Annotated[
    int | None,
    typer.Option(
        "--seed",
        min=0,
        metavar="N",
        rich_help_panel=POLICY,
        help="Seed of the policy's random streams, in place of its own.",
    ),
]
JsonOption = Annotated[
    Path | None,
    typer.Option(
        "--json",
        metavar="[OUT.json]",
        rich_help_panel=OUTPUT,
        help="Write the result as JSON to OUT.json; alone or with -, print it instead of the table.",
    ),
]
PredictFlag = Annotated[
    bool,
    typer.Option(
        "--predict",
        rich_help_panel=OUTPUT,
        help="Predict the start of every waiting job as it comes, and say how often that was right. Slower.",
    ),
]
JsonFlag = Annotated[
    bool, typer.Option("--json", rich_help_panel=OUTPUT, help="Print the result as JSON instead.")
]
ReportOption = Annotated[
    Path | None,
    typer.Option(
        "--report",
        metavar="OUT.html",
        rich_help_panel=OUTPUT,
        help="Write a report with charts: one HTML file that opens offline, in English and Chinese.",
    ),
]
WorkloadOption = Annotated[
    str,
    typer.Option(
        "--workload",
        "-w",
        metavar="NAME",
        rich_help_panel=RUN,
        help="A pod list of the trace: default, multigpu20, gpushare100, cpu250, gpuspec33, ...",
    ),
]
SeedsOption = Annotated[
    str,
    typer.Option("--seeds", metavar="LIST", rich_help_panel=RUN, help="Orders to run: 42, 42-51 or 1,3,5."),
]
OfferedOption = Annotated[
    float,
    typer.Option(
        "--offered",
        min=0.01,
        max=10,
        metavar="SHARE",
        rich_help_panel=RUN,
        help="Stop once this share of all cards has been asked for.",
    ),
]
TraceDirOption = Annotated[
    Path | None,
    typer.Option(
        "--trace-dir",
        metavar="DIR",
        rich_help_panel=RUN,
        help="Folder that holds openb/ and openb_sequences/; if absent, the folder named by "
        "ALIQUOT_TRACES, else traces/ in that named by ALIQUOT_SHARED, else ../shared/traces.",
    ),
]
StreamOption = Annotated[
    int,
    typer.Option(
        "--stream",
        min=0,
        metavar="N",
        rich_help_panel=POLICY,
        help="Seed of the policy's random streams.",
    ),
]
MixOption = Annotated[
    str,
    typer.Option(
        "--mix",
        metavar="list|window",
        rich_help_panel=POLICY,
        help="Demand known beforehand (list) or learnt on the way (window).",
    ),
]
MovesOption = Annotated[
    float,
    typer.Option(
        "--moves",
        min=0,
        max=1,
        metavar="SHARE",
        rich_help_panel=POLICY,
        help="Share of the placed pods that may be moved to make room.",
    ),
]
JobArgument = Annotated[
    str,
    typer.Argument(
        metavar="JOB", show_default=False, help="Name of the job; a replica is NAME-0, NAME-1, ..."
    ),
]
AtOption = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="TIME",
        rich_help_panel=RUN,
        help="Look at this time of the run, such as 30m; if absent, when the job is placed.",
    ),
]
MatrixArgument = Annotated[
    str,
    typer.Argument(
        metavar="FILE|-",
        show_default=False,
        help="Output of nvidia-smi topo -m; - reads standard input.",
    ),
]
