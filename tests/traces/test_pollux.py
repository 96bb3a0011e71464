"""The Pollux readers, goodput model and rounds; the published baseline where the traces are."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from aliquot.core.errors import DocumentError, NotFoundError, SpecError
from aliquot.traces.pollux import PolluxJob, read_published, read_workload
from aliquot.traces.pollux_elastic import ElasticChooser, packed
from aliquot.traces.pollux_profiles import Fixed, read_profile, read_profiles
from aliquot.traces.published.interpolation import interpolate
from aliquot.traces.published.pollux_model import (
    Nodes,
    Run,
    Speeds,
    average_completion,
    replay,
    shape_of,
)
from aliquot.traces.published.pollux_tiresias import Tiresias

TOY = frozenset({"toy"})
WORKLOAD = "name,time,application,num_replicas,batch_size\n"


def write_profile(folder: Path, *, epochs: int = 2) -> Path:
    """An application `toy`: 1 s a step on any cards of up to two nodes, a batch of 64 is worth two of 32.

    Local batches 8 to 64, batch sizes 32 and 64, an epoch of 100 steps of 32.
    """
    toy = folder / "toy"
    toy.mkdir(parents=True)
    rows = [f"{shape},{local},1.0,0.2" for shape in ("1", "2", "4", "44") for local in (8, 64)]
    (toy / "placements.csv").write_text("placement,local_bsz,step_time,sync_time\n" + "\n".join(rows) + "\n")
    rows = [f"{nodes},{cards},{local},2.0,1.0" for nodes, cards in ((4, 4), (4, 16)) for local in (8, 64)]
    head = "num_nodes,num_replicas,local_bsz,step_time,sync_time\n"
    (toy / "scalability.csv").write_text(head + "\n".join(rows) + "\n")
    for batch in (32, 64):
        rows = [f"{100 * (at + 1)},{50 * (at + 1)},0.5,0.0,1.0" for at in range(epochs)]
        head = "progress,iteration,metric,grad_sqr,grad_var\n"
        (toy / f"validation-{batch}.csv").write_text(head + "\n".join(rows) + "\n")
    return folder


@pytest.fixture
def toy(tmp_path: Path) -> Speeds:
    return Speeds(read_profile(write_profile(tmp_path) / "toy", "toy", Fixed(epochs=2)))


def write_workload(folder: Path, *rows: str) -> Path:
    (folder / "workloads").mkdir(exist_ok=True)
    (folder / "workloads" / "one.csv").write_text(WORKLOAD + "\n".join(rows) + "\n", encoding="utf-8")
    return folder


class Always:
    """Gives every job the same nodes."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes

    def choose(self, now: int, jobs: Sequence[Run]) -> Mapping[str, Nodes]:
        return {job.name: self._nodes for job in jobs}


def test_jobs_come_by_submit_time(tmp_path: Path) -> None:
    jobs = read_workload(write_workload(tmp_path, "b,9,toy,1,32", "a,3,toy,2,64"), "one", TOY)
    assert jobs == (PolluxJob("a", 3, "toy", 2, 64), PolluxJob("b", 9, "toy", 1, 32))


@pytest.mark.parametrize(
    ("row", "column"),
    [
        pytest.param("b,-1,toy,1,32", "time", id="a time below 0"),
        pytest.param("b,1,unheard,1,32", "application", id="an application without a profile"),
        pytest.param("b,1,toy,0,32", "num_replicas", id="no replica"),
        pytest.param("a,1,toy,1,32", "name", id="a name twice"),
        pytest.param("b,1,toy,1,x", "batch_size", id="no number"),
        pytest.param("b,1,toy", "num_replicas", id="a row cut short"),
    ],
)
def test_a_broken_cell_is_named_with_file_line_and_column(tmp_path: Path, row: str, column: str) -> None:
    with pytest.raises(DocumentError, match=rf"one\.csv:3: {column}"):
        read_workload(write_workload(tmp_path, "a,0,toy,1,32", row), "one", TOY)


def test_missing_things_are_named(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no Pollux workloads"):
        read_workload(tmp_path, "one", TOY)
    with pytest.raises(NotFoundError, match="no workload 'two'"):
        read_workload(write_workload(tmp_path, "a,0,toy,1,32"), "two", TOY)
    with pytest.raises(NotFoundError, match="no published results"):
        read_published(tmp_path, "pollux")
    with pytest.raises(NotFoundError, match="no profile of bert"):
        read_profiles(tmp_path)


def test_published_averages_are_read(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    file = tmp_path / "results" / "pollux-1.0.json"
    file.write_text(json.dumps({"avgs": {"one": 12.5}}), encoding="utf-8")
    assert read_published(tmp_path, "pollux").average("one") == 12.5
    file.write_text("{}", encoding="utf-8")
    with pytest.raises(DocumentError, match="averages"):
        read_published(tmp_path, "pollux")


def test_a_broken_profile_is_named(tmp_path: Path) -> None:
    folder = write_profile(tmp_path) / "toy"
    with pytest.raises(DocumentError, match="2 epochs of 3"):
        read_profile(folder, "toy", Fixed(epochs=3))
    (folder / "placements.csv").write_text("placement,local_bsz,step_time,sync_time\n1a,8,1,1\n")
    with pytest.raises(DocumentError, match=r"placements\.csv:2: placement"):
        read_profile(folder, "toy", Fixed(epochs=2))


def test_goodput_is_gain_over_time(toy: Speeds) -> None:
    # The gradient is all noise, so a batch of 64 is worth two of 32; one more accumulation step costs 0.8 s.
    assert toy.goodput((4,), (8, 0), 0) == pytest.approx(1.0)
    assert toy.goodput((4,), (16, 0), 0) == pytest.approx(2.0)
    assert toy.goodput((4,), (8, 1), 0) == pytest.approx(2.0 / 1.8)
    assert toy.goodput((3,), (16, 0), 0) is None or toy.goodput((3,), (16, 0), 0) > 0
    with pytest.raises(SpecError, match="batch"):
        toy.goodput((4,), (64, 0), 0)


@pytest.mark.parametrize(
    ("cards", "batch", "split"),
    [
        pytest.param(4, 64, (16, 0), id="spread evenly"),
        pytest.param(3, 64, (21, 0), id="rounded up, then held under the greatest batch"),
        pytest.param(1, 32, (32, 0), id="the first batch on one card"),
        pytest.param(1, 64, (32, 1), id="a larger one on one card is accumulated"),
    ],
)
def test_a_given_batch_is_split_over_cards(
    toy: Speeds, cards: int, batch: int, split: tuple[int, int]
) -> None:
    assert toy.fixed_split(cards, batch) == split


def test_the_best_split_takes_the_batch_that_is_worth_most(toy: Speeds) -> None:
    assert toy.best_split((4,), 0) == (16, 0)
    assert toy.best((4,), 0) == pytest.approx(2.0)


def test_a_job_pauses_then_runs_to_a_whole_second(toy: Speeds) -> None:
    # Seated at 60 s, 30 s pause, then 200 steps of 32 at 2 a second: ends at 190 s.
    job = PolluxJob("a", 10, "toy", 4, 64)
    for chooser in (Always((0, 0, 0, 0)), Tiresias()):
        (run,) = replay([job], {"toy": toy}, chooser, tuned=False)
        assert (run.ended, run.moves, average_completion([run])) == (190, 1, 180.0)


def test_a_node_cannot_be_given_out_twice(toy: Speeds) -> None:
    jobs = [PolluxJob(name, 0, "toy", 4, 64) for name in "ab"]
    with pytest.raises(SpecError, match="node 0"):
        replay(jobs, {"toy": toy}, Always((0, 0, 0, 0)), tuned=False)


def test_elastic_jobs_share_the_cluster_and_end(toy: Speeds) -> None:
    jobs = [PolluxJob(f"job-{at}", at * 20, "toy", 4, 64) for at in range(30)]
    elastic = replay(jobs, {"toy": toy}, ElasticChooser(), tuned=True)
    again = replay(jobs, {"toy": toy}, ElasticChooser(), tuned=True)
    assert [run.ended for run in elastic] == [run.ended for run in again]
    assert all(run.ended is not None for run in elastic)


def test_shapes() -> None:
    assert shape_of((3, 3, 3, 7)) == (3, 1)
    assert shape_of(()) == ()
    assert packed(10) == (4, 4, 2)
    assert packed(3) == (3,)


def test_interpolation_is_linear_inside_and_nothing_outside() -> None:
    rng = np.random.default_rng(3)
    points = rng.uniform(0, 10, size=(60, 3))
    values = np.column_stack([points @ [1.0, 2.0, -1.0] + 4, points @ [0.0, 1.0, 0.0]])
    for _ in range(20):
        query = rng.dirichlet(np.ones(60)) @ points
        assert interpolate(points, values, query) == pytest.approx([query @ [1.0, 2.0, -1.0] + 4, query[1]])
    assert interpolate(points, values, np.array([11.0, 0.0, 0.0])) is None
    assert interpolate(points, values, points[7]) == pytest.approx(values[7])


def test_interpolation_uses_the_cell_around_the_point() -> None:
    """On a line of points only the two neighbours count."""
    points = np.array([[0.0], [1.0], [2.0], [5.0]])
    values = np.array([[0.0], [1.0], [4.0], [25.0]])
    assert interpolate(points, values, np.array([1.5])) == pytest.approx([2.5])
    assert interpolate(points, values, np.array([3.0])) == pytest.approx([11.0])


@pytest.mark.slow
def test_the_published_baseline_is_reproduced_and_pollux_is_beaten(shared: Path) -> None:
    folder = shared / "traces" / "pollux"
    speeds = {name: Speeds(profile) for name, profile in read_profiles(folder / "profiles").items()}
    jobs = read_workload(folder, "workload-3", frozenset(speeds))
    baseline = average_completion(replay(jobs, speeds, Tiresias(), tuned=False))
    assert baseline == pytest.approx(read_published(folder, "tiresias").average("workload-3"), rel=1e-3)
    ours = average_completion(replay(jobs, speeds, ElasticChooser(), tuned=True))
    assert ours < read_published(folder, "pollux").average("workload-3")
