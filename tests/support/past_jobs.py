"""Small tables of past jobs: a month of Philly, a site's own CSV, Slurm's accounting."""

from __future__ import annotations

from pathlib import Path

PHILLY = """\
timestamp,duration,num_gpus,gpu_time,cluster
2017-10-01 00:01:30,0.0,8,0.0,vc-a
2017-10-01 00:01:00,600.0,1,600.0,vc-a
2017-10-01 00:00:00,10.5,24,252.0,vc-b
2017-09-30 23:59:59,10.0,1,10.0,vc-c
2017-10-31 00:00:00,3600,2,7200.0,vc-a
"""
HEAD = "job,team,who,submitted,started,ended,minutes,limit,gpus,nodes,memory,kind,prio"
ROWS = (
    "a,vision,ann,2026-03-02T08:00:00,2026-03-02T08:05:00,2026-03-02T09:05:00,60,120,1,1,,A100,5",
    "b,speech/dev,bo,2026-03-02T08:01:00,2026-03-02T08:01:00,2026-03-02T08:31:00,30,,8,,,,",
    "c,vision,,2026-03-02T07:00:00,,,10,20,16,4,,A100,-1",
)
MAP = """\
columns:
  {id: job, submit: submitted, start: started, end: ended, duration: minutes, estimate: limit, cards: gpus,
   nodes: nodes, model: kind, queue: team, user: who, priority: prio}
units: {duration: minutes}
"""
SACCT_FIELDS = (
    "JobID", "Submit", "Start", "End", "Elapsed", "Timelimit", "State", "AllocTRES", "ReqTRES", "Partition",
    "Account", "User", "Priority",
)  # fmt: skip  # a line of words


def write_philly(folder: Path) -> Path:
    """`philly/philly.csv` in `folder`: four jobs of October 2017 and one before it. Returns `folder`."""
    (folder / "philly").mkdir(parents=True)
    (folder / "philly" / "philly.csv").write_text(PHILLY)
    return folder


def write_history(folder: Path, *rows: str, head: str = HEAD) -> Path:
    """`jobs.csv` with these rows."""
    file = folder / "jobs.csv"
    file.write_text("\n".join((head, *rows)) + "\n", encoding="utf-8")
    return file


def write_map(folder: Path, text: str = MAP) -> Path:
    """`columns.yaml` that explains `jobs.csv`."""
    file = folder / "columns.yaml"
    file.write_text(text)
    return file


def sacct_line(**said: str) -> str:
    """One job that ran for an hour on two cards; `said` replaces fields."""
    usual = {
        "JobID": "100",
        "Submit": "2026-03-02T08:00:00",
        "Start": "2026-03-02T08:10:00",
        "End": "2026-03-02T09:10:00",
        "Elapsed": "01:00:00",
        "Timelimit": "04:00:00",
        "State": "COMPLETED",
        "AllocTRES": "billing=8,cpu=8,gres/gpu:a100=2,gres/gpu=2,mem=64G,node=1",
        "ReqTRES": "billing=8,cpu=8,gres/gpu=2,mem=64G,node=1",
        "Partition": "gpu",
        "Account": "vision",
        "User": "ann",
        "Priority": "4294",
    }
    return "|".join({**usual, **said}.values())


def write_sacct(folder: Path, *lines: str, fields: tuple[str, ...] = SACCT_FIELDS) -> Path:
    """`jobs.txt` as `sacct --parsable2` prints it."""
    file = folder / "jobs.txt"
    file.write_text("\n".join(("|".join(fields), *lines)) + "\n")
    return file
