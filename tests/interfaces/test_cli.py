"""The `aliquot` command in processes of its own: what it prints, what it writes, how it says no."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from aliquot.bootstrap import make_experiments
from aliquot.interfaces.cli.app import run_app
from tests.support.command import ROOT, Done, aliquot, complaint
from tests.support.traces import write_traces

FIRST = "examples/first/first.yaml"
CASE = [f"examples/case/{name}.yaml" for name in ("cluster", "inference", "training", "policies")]
SITE = """\
apiVersion: aliquot.dev/v1
kind: Cluster
metadata: {name: small}
spec:
  nodes:
    - {name: box, cards: {model: T4, count: 2}, cpu: 16, memory: 64GiB}
---
apiVersion: aliquot.dev/v1
kind: Job
metadata: {name: web}
spec: {run: 1h, replicas: 3, gpu: {memory: 6GiB}, cpu: 2}
---
apiVersion: aliquot.dev/v1
kind: Policy
metadata: {name: plain}
spec: {placement: best-fit, engine: python}
"""
JOB, POLICY = SITE.split("---\n")[1:]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A small site, uncompiled policies, in a folder of its own."""
    file = tmp_path / "site.yaml"
    file.write_text(SITE)
    return file


# --- help ------------------------------------------------------------------------------------------------


def test_help_lists_every_command_in_full() -> None:
    done = aliquot("--help", COLUMNS="80")
    assert (done.code, done.err) == (0, "")
    told = " ".join(done.out.split())  # a line that is too long for the terminal goes on below
    for line in (
        "simulate Run jobs in virtual time under one policy; print the scorecard. compare",
        "compare Run the same jobs under several policies, side by side. replay",
        "replay Replay a public workload under one policy or several. explain",
        "explain Say why a job is where it is, or why it waits. topology",
        "topology Read a printed topology matrix; show the machine as understood. up",
    ):
        assert line in told
    assert "Examples:\n  aliquot simulate " in done.out
    assert "..." not in done.out.replace("[ARGS]...", "")
    assert aliquot().out == aliquot("-h").out == aliquot("--help").out


@pytest.mark.parametrize(
    "words", [["simulate"], ["compare"], ["replay", "openb"], ["explain"], ["topology"]], ids=" ".join
)
def test_every_command_explains_itself(words: list[str]) -> None:
    done = aliquot(*words, "--help", COLUMNS="80")
    assert done.code == 0
    assert done.out.startswith(f"Usage: aliquot {' '.join(words)} [OPTIONS]")
    assert "--json" in done.out
    assert "Examples:\n  " in done.out
    assert max(map(len, done.out.partition("Examples:")[0].splitlines())) <= 80
    for title in ("Output:", "Options:"):
        assert f"\n{title}\n" in done.out


def test_help_loads_nothing_heavy() -> None:
    heavy = ("numpy", "numba", "plotly", "pydantic", "rich", "yaml", "msgspec")
    program = (
        "import sys; sys.argv = ['aliquot', '--help']\n"
        "from aliquot.__main__ import main\n"
        "try: main()\n"
        f"finally: print([name for name in {heavy!r} if name in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stderr.strip() == "[]"


def test_version() -> None:
    assert aliquot("--version").out.startswith("aliquot 0.")


# --- simulate and compare --------------------------------------------------------------------------------


def test_simulate_prints_a_scorecard_and_every_assumption() -> None:
    done = aliquot("simulate", FIRST)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[0] == "first"
    for words in ("future-packing", "Utilisation of allocated cards", "Succeeded", "Note: "):
        assert words in done.out


def test_json_alone_prints_and_with_a_name_writes_the_same(site: Path) -> None:
    printed = aliquot("simulate", site, "--json")
    (result,) = json.loads(printed.out)
    assert (result["scenario"], result["policy"], printed.err) == ("small", "plain", "")
    file = site.with_name("out.json")
    written = aliquot("simulate", site, "--json", file)
    assert written.out.startswith("small\n")
    assert file.read_text() == printed.out
    assert aliquot("simulate", "--json", "-", site).out == printed.out
    assert aliquot("simulate", "--json", site).out == printed.out, "what follows --json here is a document"


def test_simulate_is_the_same_under_every_hash_seed(under_hash_seeds: Callable[..., list[bytes]]) -> None:
    one, other = under_hash_seeds(
        "-m", "aliquot", "simulate", "examples/first", "-p", "future-packing", "--json"
    )
    assert len(one) > 1000
    assert one == other


def test_a_report_is_one_file(site: Path) -> None:
    report = site.with_name("run.html")
    done = aliquot("simulate", site, "--report", report)
    assert (done.code, done.out.splitlines()[-1]) == (0, f"Report: {report}")
    assert report.read_text().lstrip().lower().startswith("<!doctype html>")
    assert sorted(path.name for path in site.parent.iterdir()) == ["run.html", "site.yaml"]


def test_compare_puts_policies_side_by_side_with_the_reasons() -> None:
    done = aliquot("compare", *CASE, "-p", "whole-card-fifo", "-p", "binpack-slices")
    assert done.code == 0
    assert "Why binpack-slices differs from whole-card-fifo:" in done.out
    (use,) = [line for line in done.out.splitlines() if "Utilisation of all cards" in line]
    assert use.split()[-4:] == ["45.0", "%", "82.0", "%"]
    assert "A calibrated replay, not evidence" in done.out


def test_without_policies_the_first_of_the_documents_stands_beside_whole_cards(site: Path) -> None:
    results = json.loads(aliquot("compare", site, "--json").out)
    assert [result["policy"] for result in results] == ["plain", "whole-card-fifo"]


# --- explain ---------------------------------------------------------------------------------------------


def test_explain_a_placed_job() -> None:
    done = aliquot("explain", *CASE, "training-0", "--policy", "future-packing")
    assert done.code == 0
    first, where, cost, *_, last = done.out.splitlines()
    assert first == "training-0 was placed at 5 min by policy future-packing, after waiting 0 s."
    assert where.startswith("  node case/eight-")
    assert "; 8 whole cards: GPU-" in where
    assert cost.startswith("It costs ")
    assert last.startswith("Runner-up: case/eight-")


def test_explain_a_waiting_job_with_reasons_that_add_up() -> None:
    done = aliquot("explain", *CASE, "training-0", "--policy", "whole-card-fifo", "--at", "30m")
    assert done.out.splitlines() == [
        "training-0 waits at 30 min under policy whole-card-fifo: nothing that is free fits.",
        "  Place 1 of 3 in the queue.",
        "  When it starts is unknown, because what it waits for has no known end.",
        "  1 node is too small even when empty",
        "  3 nodes lack free cards: 8 needed, at most 2 free",
        "  4 nodes in all.",
    ]


def test_explain_what_can_never_fit(tmp_path: Path) -> None:
    file = tmp_path / "site.yaml"
    file.write_text(SITE.replace("gpu: {memory: 6GiB}", "gpu: {count: 3}"))
    done = aliquot("explain", file, "web-0")
    lacks = "3 cards of one node, and none has more than 2 that would do"
    assert done.out.splitlines() == [
        "web-0 waits at 0 s under policy plain: it can never fit, even with nothing else on any node.",
        f"  It asks for {lacks}: it waits until that changes.",
        "  Place 1 of 3 in the queue.",
        "  1 node is too small even when empty",
        "  1 node in all.",
    ]


def test_explain_as_json(site: Path) -> None:
    told = json.loads(aliquot("explain", site, "web-1", "--json").out)
    assert (told["job"], told["placement"], told["wait"]) == ("web-1", ["best-fit"], None)
    assert told["place"]["placements"][0]["node"] == "small/box"


@pytest.mark.parametrize(
    ("changes", "at", "told"),
    [
        ({}, "2h", "web-1 was placed at 0 s by policy plain, after waiting 0 s. It is over by 2 h."),
        ({"run: 1h": "run: 1h, submit: 5m"}, "1m", "web-1 is submitted at 5 min, which is after 1 min."),
        (
            {"run: 1h": "run: 1h, patience: 5m", "{memory: 6GiB}": "{count: 3}"},
            "1h",
            "web-1 was given up by its owner before 1 h without ever being placed.",
        ),
    ],
    ids=["over", "not yet there", "given up"],
)
def test_explain_a_job_that_is_not_there(site: Path, changes: dict[str, str], at: str, told: str) -> None:
    text = SITE
    for old, new in changes.items():
        text = text.replace(old, new)
    site.write_text(text)
    done = aliquot("explain", site, "web-1", "--at", at)
    assert (done.code, done.out.splitlines()[0]) == (0, told)


# --- replay and topology ---------------------------------------------------------------------------------


def test_replay_a_small_trace(tmp_path: Path) -> None:
    traces = write_traces(tmp_path / "traces", seeds=(42,))
    out = tmp_path / "out.json"
    done = aliquot(
        "replay",
        "openb",
        "-w",
        "small",
        "-p",
        "best-fit",
        "-p",
        "fgd",
        "--seeds",
        "42-43",
        "--trace-dir",
        traces,
        "--json",
        out,
    )
    assert (done.code, done.err) == (0, "")
    assert "mean of 2" in done.out
    assert "A replay of a published workload" in done.out
    assert "seed 43 of small has no published order: drawn from the seed" in done.out
    results = json.loads(out.read_text())
    assert [(result["policy"], result["seed"]) for result in results] == [
        ("best-fit", 42), ("best-fit", 43), ("fgd", 42), ("fgd", 43),
    ]  # fmt: skip  # a table reads by columns


def test_traces_are_found_where_the_environment_says(tmp_path: Path) -> None:
    write_traces(tmp_path / "traces")
    for variables in ({"ALIQUOT_TRACES": str(tmp_path / "traces")}, {"ALIQUOT_SHARED": str(tmp_path)}):
        done = aliquot("replay", "openb", "-w", "small", "-p", "random", "--offered", "0.3", **variables)
        assert (done.code, done.err) == (0, "")


@pytest.mark.slow
def test_replay_the_published_workload(shared: Path) -> None:
    words = ["replay", "openb", "-w", "default", "-p", "fgd", "--offered", "1.0", "--json", "-"]
    (result,) = json.loads(aliquot(*words, "--trace-dir", shared / "traces").out)
    assert (result["scenario"], result["standing"]) == ("openb default", "replay")
    assert result["notes"] == []


def test_topology_from_standard_input() -> None:
    text = (ROOT / "tests/core/fixtures/topology/two_bridged_pairs.txt").read_text()
    done = aliquot("topology", "-", stdin=text)
    assert done.code == 0
    assert "4 cards, 2 NICs" in done.out
    assert json.loads(aliquot("topology", "-", "--json", stdin=text).out)["cards"]


# --- what a person gets wrong ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["simulate"], "missing argument 'FILE...' (see aliquot simulate --help)"),
        (["simulate", "none.yaml"], "none.yaml: no such file"),
        (["explain", "examples/first", "trian"], "no job 'trian' in examples/first; did you mean 'train'?"),
    ],
    ids=["no argument", "no file", "no job"],
)
def test_a_mistake_ends_the_process_with_2_and_one_line(words: list[str], told: str) -> None:
    assert complaint(aliquot(*words)).startswith(told)


@pytest.fixture
def failing(capsys: pytest.CaptureFixture[str]) -> Callable[[list[str], str], None]:
    """Runs a command in this process: code 2, nothing on standard output, one line that says `told`."""

    def run(words: list[str], told: str) -> None:
        code = run_app(words, make_experiments)
        out, err = capsys.readouterr()
        assert told in complaint(Done(code, out, err)), err

    return run


Failing = Callable[[list[str], str], None]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("simulate", "missing argument 'FILE...' (see aliquot simulate --help)"),
        ("explain examples/first", "missing argument 'FILE...' (see aliquot explain --help)"),
        ("simulat x", "no such command 'simulat'. Did you mean 'simulate'? (see aliquot --help)"),
        ("replay opnb", "no such command 'opnb'. Did you mean 'openb'?"),
        ("replay", "missing command (see aliquot replay --help)"),
        ("replay openb", "missing option '--workload' / '-w'"),
        ("simulate --polcy x", "no such option: --polcy (did you mean --policy)"),
        ("--bogus", "no such option: --bogus (see aliquot --help)"),
        ("simulate examples/first --seed x", "invalid value for '--seed'"),
        ("replay openb -w d --offered 0", "invalid value for '--offered'"),
        ("replay openb -w d --moves 1.5", "invalid value for '--moves'"),
        ("simulate examples/first -p bin-slices", "no policy 'bin-slices'; did you mean 'binpack-slices'?"),
        ("compare examples/first -p fgd -p zzz", "no policy 'zzz'; there are future-packing, fgd,"),
        ("explain examples/first trian", "no job 'trian' in examples/first; did you mean 'train'?"),
        ("explain examples/first service", "did you mean 'service-0' or 'service-1' or 'service-2'?"),
        ("explain examples/first train --at soon", "--at: 'soon'"),
        ("explain examples/first train --at -5m", "--at: "),
        ("simulate nothing.yaml", "nothing.yaml: no such file"),
        ("simulate examples/first --report nowhere/x.html", "--report: nowhere/x.html: no such folder"),
        ("simulate examples/first --report examples", "--report: examples: is a folder"),
        ("simulate examples/first --json nowhere/x.json", "--json: nowhere/x.json: no such folder"),
    ],
)  # fmt: skip  # a table reads by columns
def test_a_mistake_on_the_command_line_is_one_line(
    failing: Failing, monkeypatch: pytest.MonkeyPatch, words: str, told: str
) -> None:
    monkeypatch.chdir(ROOT)
    failing(words.split(), told)


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (SITE.replace("replicas", "replcas"), "site.yaml:11: spec.replcas: unknown key 'replcas' (did you"),
        (SITE.replace("kind: Job", "kind: Jbo"), "did you mean 'Job'?"),
        (SITE.replace("6GiB", "-6GiB"), "site.yaml:11: spec.gpu.memory"),
        (SITE.replace("6GiB", "0x10"), "site.yaml:11: spec.gpu.memory"),
        (SITE.replace("{memory: 6GiB}", "{compute: 101%}"), "site.yaml:11: spec.gpu.compute"),
        (SITE.replace("{memory: 6GiB}", "{compute: 8000Mi}"), "site.yaml:11: spec.gpu.compute"),
        (SITE.replace("{memory: 6GiB}", "{compute: nan}"), "site.yaml:11: spec.gpu.compute"),
        (JOB, "no cluster"),
        (SITE.replace("cards: {model: T4, count: 2}, ", ""), "without a single card"),
        (f"{SITE}---\n{JOB}", "a second job named 'web-0'"),
        (SITE.replace("spec: {run", "spec: [run"), "site.yaml:11"),
        ("", "no document"),
    ],
    ids=["unknown key", "unknown kind", "negative", "hex", "over 100 %", "no fraction", "nan", "no cluster",
         "no cards", "twice", "no yaml", "empty"],
)  # fmt: skip  # a table reads by columns
def test_a_bad_document_is_one_line_and_nothing_is_written(
    failing: Failing, tmp_path: Path, written: str, told: str
) -> None:
    file = tmp_path / "site.yaml"
    file.write_text(written)
    before = tmp_path / "out.json"
    before.write_text("before")
    failing(["simulate", str(file), "--json", str(before), "--report", str(tmp_path / "r.html")], told)
    assert before.read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.json", "site.yaml"]


def test_an_input_is_never_overwritten(failing: Failing, site: Path) -> None:
    failing(["simulate", str(site), f"--json={site}"], "is one of the documents to read")
    failing(["simulate", str(site), "--report", str(site)], "is one of the documents to read")
    assert site.read_text() == SITE


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["-w", "smal"], "no workload 'smal' in TRACES; did you mean 'small'?"),
        (["-w", "small", "--seeds", "42-"], "--seeds: '42-' is no seed or range (42, 42-51 or 1,3,5)"),
        (["-w", "small", "--seeds", "51-42"], "--seeds: '51-42' is no seed or range"),
        (["-w", "small", "--seeds", ""], "--seeds: '' is no seed or range"),
        (["-w", "small", "--seeds", "1-5000"], "--seeds: 5000 seeds (at most 1000)"),
        (["-w", "small", "--mix", "lst"], "--mix: 'lst' is no demand mix (list or window)"),
        (["-w", "small", "-p", "bestfit"], "no policy 'bestfit'; did you mean 'best-fit'?"),
    ],
    ids=["workload", "open range", "backwards", "no seed", "too many", "mix", "policy"],
)  # fmt: skip  # a table reads by columns
def test_a_replay_that_can_not_be(failing: Failing, tmp_path: Path, words: list[str], told: str) -> None:
    traces = write_traces(tmp_path / "traces")
    failing(["replay", "openb", "--trace-dir", str(traces), *words], told.replace("TRACES", str(traces)))


def test_a_missing_folder_and_a_broken_row(failing: Failing, tmp_path: Path) -> None:
    failing(
        ["replay", "openb", "-w", "small", "--trace-dir", str(tmp_path / "none")],
        "no trace folder: looked for",
    )
    failing(["replay", "openb", "-w", "small", "--trace-dir", str(tmp_path)], "no openb traces in")
    traces = write_traces(tmp_path / "traces")
    file = traces / "openb" / "openb_pod_list_small.csv"
    file.write_text(file.read_text() + "pod-x,4000,lots,1,250,\n")
    told = "openb_pod_list_small.csv:42: memory_mib: 'lots' is not a whole number"
    failing(["replay", "openb", "-w", "small", "--trace-dir", str(traces)], told)


def test_a_truncated_topology() -> None:
    text = (ROOT / "tests/core/fixtures/topology/two_bridged_pairs.txt").read_text()
    done = aliquot("topology", "-", stdin=text.split("\n", 1)[1])
    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") == 1
    assert "error: topology: " in done.err


def test_a_reader_that_goes_away_is_no_error() -> None:
    program = f"{sys.executable} -m aliquot simulate {FIRST} --json | head -c 1"
    done = subprocess.run(
        ["bash", "-c", program], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("[", "")
