"""The Muri trace reader and the rules of its authors' simulator; their printed averages where traces are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from aliquot.core.errors import DocumentError, NotFoundError, SpecError
from aliquot.traces.muri import PUBLISHED, read_trace
from aliquot.traces.muri_colocate import Colocated
from aliquot.traces.published.muri_model import (
    Shortest,
    group_period,
    place_in_order,
    read_columns,
    replay,
)
from aliquot.traces.published.muri_tiresias import replay_tiresias

HEAD = (
    "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,"
    "iteration_time,resource_time_0,resource_time_1,resource_time_2,priority"
)
# 1,000 iterations of 100 ms: 101.5 s alone. "slow" uses the processor, "quick" the GPU; others start in 10 s.
SLOW = "{id},{cards},{at},1000,slow,8,0,0,100,90,10,0,0"
QUICK = "{id},{cards},{at},1000,quick,8,0,0,100,10,90,0,0"


def write_trace(folder: Path, *rows: str) -> Path:
    """A trace `tiny` with these rows."""
    (folder / "tiny.csv").write_text("\n".join((HEAD, *rows)) + "\n", encoding="utf-8")
    return folder


def slow(job: int, cards: int = 1, at: int = 0) -> str:
    return SLOW.format(id=job, cards=cards, at=at)


def quick(job: int, cards: int = 1, at: int = 0) -> str:
    return QUICK.format(id=job, cards=cards, at=at)


def test_jobs_come_by_submit_time_then_id(tmp_path: Path) -> None:
    jobs = read_trace(write_trace(tmp_path, slow(3, at=5000), slow(2), quick(1, cards=4)), "tiny")
    assert [job.id for job in jobs] == [1, 2, 3]
    assert (jobs[0].cards, jobs[0].stages_s, jobs[2].submitted_s) == (4, (0.01, 0.09, 0.0), 5.0)


@pytest.mark.parametrize(
    ("row", "column", "line"),
    [
        pytest.param(slow(1).replace("1000", "-1"), "iterations", 3, id="iterations below 0"),
        pytest.param(slow(1).replace("1000", "0"), "iterations", 3, id="no iterations"),
        pytest.param(slow(1, cards=3), "num_gpu", 3, id="a width the simulator does not know"),
        pytest.param(slow(1).replace(",100,", ",nan,"), "iteration_time", 3, id="no number"),
        pytest.param(slow(1).replace(",100,", ",1e999,"), "iteration_time", 3, id="an endless number"),
        pytest.param(slow(0), "job_id", 3, id="an id twice"),
        pytest.param("1,1,0", "iterations", 3, id="a row cut short"),
    ],
)
def test_a_broken_cell_is_named_with_file_line_and_column(
    tmp_path: Path, row: str, column: str, line: int
) -> None:
    with pytest.raises(DocumentError, match=rf"tiny\.csv:{line}: {column}"):
        read_trace(write_trace(tmp_path, slow(0), row), "tiny")


def test_a_missing_trace_or_column_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no Muri trace 'other'"):
        read_trace(write_trace(tmp_path, slow(0)), "other")
    (tmp_path / "tiny.csv").write_text("job_id,num_gpu\n1,2\n", encoding="utf-8")
    with pytest.raises(DocumentError, match="no column 'submit_time'"):
        read_trace(tmp_path, "tiny")


def test_two_jobs_that_fill_each_others_gaps_take_little_longer_than_one() -> None:
    # Two long slots: max(0.9, 0.9) + max(0.1, 0.1) = 1.0, times 1.33 for two.
    assert group_period([(0.9, 0.1, 0.0), (0.1, 0.9, 0.0)]) == pytest.approx(1.33)
    # One GPU for both: 0.9 each in turn.
    assert group_period([(0.0, 0.9, 0.0), (0.0, 0.9, 0.0)]) == pytest.approx(1.8 * 1.33)


@pytest.mark.parametrize(
    ("cards", "placed"),
    [
        pytest.param([8, 8, 8], [True, True, False], id="two nodes full"),
        pytest.param(
            [4, 16, 4, 4, 1], [True, False, True, True, True], id="wider ones are skipped once one fails"
        ),
        pytest.param([16, 1], [True, False], id="both nodes whole"),
        pytest.param([1, 8, 8, 4], [True, True, False, True], id="no whole node left"),
    ],
)
def test_yarn_places_in_order(cards: list[int], placed: list[bool]) -> None:
    assert place_in_order(np.array(cards), 2, 8).tolist() == placed


def test_one_job_alone_takes_its_solo_time(tmp_path: Path) -> None:
    columns, _ = read_columns(read_trace(write_trace(tmp_path, slow(0)), "tiny"))
    for by_cards in (False, True):
        assert replay(columns, Shortest(columns, by_cards)).tolist() == pytest.approx([101.5])
    assert replay_tiresias(columns).tolist() == pytest.approx([101.5])


def test_every_event_costs_every_running_job_its_start(tmp_path: Path) -> None:
    columns, _ = read_columns(read_trace(write_trace(tmp_path, slow(0), slow(1, at=50_000)), "tiny"))
    # At 50 s the first loses 10 s, at its end at 111.5 s the second too: 50 + 101.5 + 10 - 50.
    assert replay(columns, Shortest(columns, by_cards=False)).tolist() == pytest.approx([111.5, 111.5])


@pytest.mark.parametrize("sized", [True, False])
def test_a_full_cluster_shares_and_a_free_one_does_not(tmp_path: Path, sized: bool) -> None:
    wide = [row(at, cards=32) for at, row in enumerate((slow, quick, slow, quick))]
    columns, sharing = read_columns(read_trace(write_trace(tmp_path, *wide), "tiny"))
    together = replay(columns, Colocated(columns, sharing, sized))
    apart = replay(columns, Shortest(columns, by_cards=True))
    assert together.mean() < apart.mean()
    two, table = read_columns(read_trace(write_trace(tmp_path, *wide[:2]), "tiny"))
    assert replay(two, Colocated(two, table, sized)).tolist() == pytest.approx([101.5, 101.5])


def test_too_many_kinds_of_job_are_refused(tmp_path: Path) -> None:
    rows = [slow(at).replace("slow", f"model{at}") for at in range(17)]
    jobs = read_trace(write_trace(tmp_path, *rows), "tiny")
    with pytest.raises(SpecError, match="kinds"):
        read_columns(jobs)


@pytest.mark.slow
def test_baselines_of_a_published_trace_are_reproduced(shared: Path) -> None:
    columns, sharing = read_columns(read_trace(shared / "traces" / "muri", "trace3"))
    known = PUBLISHED["trace3"]
    assert replay(columns, Shortest(columns, by_cards=False)).mean() == pytest.approx(known.srtf, rel=1e-3)
    assert replay(columns, Shortest(columns, by_cards=True)).mean() == pytest.approx(known.srsf, rel=1e-3)
    assert replay_tiresias(columns).mean() == pytest.approx(known.tiresias, rel=1e-3)
    assert replay(columns, Colocated(columns, sharing, sized=True)).mean() < 0.93 * known.muri_s
