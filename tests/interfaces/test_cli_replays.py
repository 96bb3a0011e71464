"""`aliquot replay philly|kueue|csv|sacct|muri|pollux` as a person runs them, on small tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from aliquot.bootstrap import make_experiments
from aliquot.interfaces.cli.app import run_app
from tests.support.command import Done, aliquot, complaint
from tests.support.past_jobs import ROWS, sacct_line, write_history, write_map, write_philly, write_sacct

REPLAYS = ("philly", "kueue", "csv", "sacct", "muri", "pollux")
SITE = """\
apiVersion: aliquot.dev/v1
kind: Cluster
metadata: {name: lab}
spec:
  nodes:
    - {name: box, count: 3, cards: {model: A100-SXM4-40GB, count: 8}, cpu: 96, memory: 1TiB}
---
apiVersion: aliquot.dev/v1
kind: Policy
metadata: {name: ours}
spec: {placement: best-fit, engine: python}
"""

Run = Callable[..., Done]
Failing = Callable[[list[str], str], None]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `aliquot replay WORDS...` in this process; what it printed."""

    def call(*words: str | Path) -> Done:
        code = run_app(["replay", *map(str, words)], make_experiments)
        out, err = capsys.readouterr()
        return Done(code, out, err)

    return call


@pytest.fixture
def failing(run: Run) -> Failing:
    """Runs one that must fail: code 2, nothing on standard output, one line that says `told`."""

    def call(words: list[str], told: str) -> None:
        assert told in complaint(run(*words))

    return call


@pytest.mark.parametrize("command", REPLAYS)
def test_every_replay_explains_itself(command: str) -> None:
    done = aliquot("replay", command, "--help", COLUMNS="80")
    assert done.code == 0
    assert done.out.startswith(f"Usage: aliquot replay {command} [OPTIONS]")
    assert "--json" in done.out
    assert "Examples:\n  " in done.out
    assert max(map(len, done.out.partition("Examples:")[0].splitlines())) <= 80


def test_the_group_lists_them_all() -> None:
    done = aliquot("replay", "--help")
    assert [name for name in ("openb", *REPLAYS) if f"\n  {name} " not in done.out] == []


def test_philly_under_two_policies(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    done = run(
        "philly", "-p", "fifo", "-p", "skip-ahead", "--trace-dir", write_philly(tmp_path), "--json", out
    )
    assert (done.code, done.err) == (0, "")
    for words in (
        "philly October 2017, estimates exact",
        "A replay of a published workload",
        "virtual clusters are queues without quotas",
    ):
        assert words in done.out
    results = json.loads(out.read_text())
    assert [(result["policy"], result["standing"]) for result in results] == [
        ("fifo", "replay"), ("skip-ahead", "replay"),
    ]  # fmt: skip  # a table reads by columns
    assert [result["scorecard"]["finished"] for result in results] == [4, 4]
    widths = results[0]["scorecard"]["per_class"]["width"]
    assert [(width["name"], width["jobs"]) for width in widths] == [("1", 1), ("2", 1), ("8", 1), ("24", 1)]


def test_seeds_of_wrong_estimates_are_one_column_of_means(run: Run, tmp_path: Path) -> None:
    words = ("-p", "fifo", "--estimates", "wrong10", "--seeds", "0-1", "--trace-dir", write_philly(tmp_path))
    done = run("philly", *words)
    assert "mean of 2" in done.out
    results = json.loads(run("philly", *words, "--json").out)
    assert [result["seed"] for result in results] == [0, 1]


def test_the_same_replay_gives_the_same_bytes(run: Run, tmp_path: Path) -> None:
    words = ("philly", "-p", "fifo", "--jobs", "3", "--trace-dir", write_philly(tmp_path), "--json")
    assert run(*words).out == run(*words).out


def test_the_beginning_of_a_kueue_shape(run: Run) -> None:
    (result,) = json.loads(run("kueue", "--jobs", "60", "-p", "skip-ahead", "--json").out)
    assert (result["scenario"], result["standing"]) == ("kueue baseline", "what-if")
    assert result["scorecard"]["finished"] == 60
    assert any("clients limited to 50 calls a second" in note for note in result["notes"])


def test_a_history_in_a_table_on_so_many_nodes(run: Run, tmp_path: Path) -> None:
    words = (write_history(tmp_path, *ROWS), "--columns", write_map(tmp_path))
    done = run("csv", *words, "--nodes", "2", "--cards", "8", "-p", "fifo")
    assert (done.code, done.err) == (0, "")
    for told in (
        "3 past jobs from 2026-03-02 07:00:00 on, replayed on 16 cards in 2 nodes",
        "as it happened, 2 jobs waited 2 min 30 s in the mean",
        "those recorded, known for 2 of 3 jobs",
    ):
        assert told in done.out


def test_a_history_on_documented_machines_runs_under_their_policy(run: Run, tmp_path: Path) -> None:
    site = tmp_path / "site.yaml"
    site.write_text(SITE)
    words = (write_history(tmp_path, *ROWS), "--columns", write_map(tmp_path), "--cluster", site, "--json")
    (result,) = json.loads(run("csv", *words).out)
    assert (result["policy"], result["scorecard"]["finished"]) == ("ours", 3)
    (named,) = json.loads(run("csv", *words, "-p", "fifo").out)
    assert named["policy"] == "fifo"


def test_the_example_history(run: Run, repository: Path) -> None:
    folder = repository / "examples" / "history"
    words = (folder / "jobs.csv", "--columns", folder / "columns.yaml", "--nodes", "4", "--cards", "8")
    (result,) = json.loads(run("csv", *words, "-p", "fifo", "--json").out)
    assert result["scorecard"]["finished"] == 59
    assert any("left out: 1 without a run time" in note for note in result["notes"])


def test_slurm_accounting(run: Run, tmp_path: Path) -> None:
    lines = (
        sacct_line(),
        sacct_line(JobID="100.batch"),
        sacct_line(JobID="101", State="RUNNING", End="Unknown"),
    )
    words = (
        write_sacct(tmp_path, *lines),
        "--nodes",
        "1",
        "--cards",
        "2",
        "-p",
        "fifo",
        "--queue-by",
        "account",
    )
    (result,) = json.loads(run("sacct", *words, "--json").out)
    assert result["scorecard"]["finished"] == 1
    assert [score["name"] for score in result["scorecard"]["per_class"]["queue"]] == ["vision"]
    assert any("left out: 1 still running" in note for note in result["notes"])


def test_published_simulators_say_what_they_are(run: Run, shared: Path) -> None:
    traces = shared / "traces"
    done = run("muri", "-t", "3", "-p", "srtf", "-p", "share-s", "--trace-dir", traces)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[0] == (
        "Average completion, in the Muri authors' published simulator model and traces"
    )
    for told in ("reproduced", "quicker (tuned on)", "none was measured on cards", "193,081.8"):
        assert told in done.out
    (result,) = json.loads(run("pollux", "-w", "6", "-p", "tiresias", "--trace-dir", traces, "--json").out)
    assert (result["workload"], result["theirs"], result["reproduces"]) == ("workload-6", "Tiresias", True)


# --- what a person gets wrong ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("philly --estimates good", "--estimates: 'good' is no kind of estimate (exact, over, wrong10, "),
        ("philly --days 0", "invalid value for '--days'"),
        ("philly --seed x", "--seeds: 'x' is no seed or range"),
        ("philly --trace-dir none", "no trace folder: looked for none"),
        ("philly --trace-dir examples", "no Philly trace: expected examples/philly/philly.csv"),
        ("kueue --shape big", "no shape 'big'; there are baseline, topology, large"),
        ("kueue --jobs 5 -p fio", "no policy 'fio'; did you mean 'fifo'?"),
        ("muri --trace-dir examples", "no Muri traces in examples: expected examples/muri/trace1.csv"),
        ("muri -t 9 --trace-dir examples", "no Muri trace '9'; there are 1, 1p, 2,"),
        ("pollux -p elastc --trace-dir examples", "no policy 'elastc'; did you mean 'elastic'?"),
        ("csv", "missing argument 'FILE' (see aliquot replay csv --help)"),
        ("csv x.csv", "missing option '--columns'"),
        ("csv x.csv --columns none.yaml --nodes 1 --cards 1", "none.yaml: no such file"),
        ("sacct x.txt", "--cluster: no one site to replay on (either --cluster FILE, or --nodes N --card"),
        ("sacct x.txt --nodes 4", "--cluster: no one site to replay on"),
        ("sacct x.txt --nodes 4 --cards 8 --cluster y.yaml", "--cluster: no one site to replay on"),
        ("sacct x.txt --model T4 --cluster y.yaml", "--cluster: no one site to replay on"),
        ("sacct x.txt --nodes 4 --cards 99", "--cards: 99 is out of range (1 to 16)"),
        ("sacct x.txt --nodes 4 --cards 8 --model B9", "no GPU model 'B9' in --model"),
        ("sacct x.txt --nodes 4 --cards 8", "x.txt: can't be read"),
        ("sacct x.txt --nodes 4 --cards 8 --queue-by team", "--queue-by: 'team' is no field"),
        ("sacct x.txt --cluster none.yaml", "none.yaml: no such file"),
    ],
)  # fmt: skip  # a table reads by columns
def test_a_mistake_is_one_line(failing: Failing, words: str, told: str) -> None:
    failing(words.split(), told)


def test_a_broken_cell_and_an_input_that_would_be_overwritten(failing: Failing, tmp_path: Path) -> None:
    file, columns = write_history(tmp_path, *ROWS), write_map(tmp_path)
    words = ["csv", str(file), "--columns", str(columns), "--nodes", "2", "--cards", "8"]
    failing([*words, "--report", str(file)], "is one of the documents to read")
    file.write_text(file.read_text().replace(",16,4,", ",sixteen,4,"))
    failing(words, "jobs.csv:4: gpus: 'sixteen' is no gpus (a whole number up to 100000, or a part of 1)")
