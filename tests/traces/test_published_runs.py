"""Replays in published simulators by name, beside the figure that was printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from aliquot.control.replaying import PublishedAsk
from aliquot.core.errors import NotFoundError
from aliquot.traces.muri_runs import run_muri, trace_name
from aliquot.traces.pollux_runs import run_pollux


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("1", "trace1"),
        ("trace4", "trace4"),
        ("3p", "trace3_pr"),
        ("2'", "trace2_pr"),
        ("trace1_pr", "trace1_pr"),
        ("1P", "trace1_pr"),
    ],
)
def test_the_names_of_a_trace(word: str, name: str) -> None:
    assert trace_name(word) == name


@pytest.mark.parametrize("word", ["5", "", "1x", "tr1", "11"])
def test_what_is_no_trace(word: str) -> None:
    with pytest.raises(NotFoundError, match=f"no Muri trace '{word}'"):
        trace_name(word)


def test_no_folder_and_no_policy(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"no Muri traces in .*: expected .*trace1\.csv"):
        run_muri(tmp_path, PublishedAsk("1", "srtf"))
    with pytest.raises(NotFoundError, match="no policy 'srft'; did you mean 'srtf'"):
        run_muri(tmp_path, PublishedAsk("1", "srft"))
    with pytest.raises(NotFoundError, match=r"no Pollux traces: expected .*workload-1\.csv"):
        run_pollux(tmp_path, PublishedAsk("1", "elastic"))
    with pytest.raises(NotFoundError, match="no policy 'tiresia'; did you mean 'tiresias'"):
        run_pollux(tmp_path, PublishedAsk("1", "tiresia"))


@pytest.mark.parametrize(
    ("policy", "theirs", "published"),
    [("srtf", "SRTF", 193_081.8), ("srsf", "SRSF", 185_021.9), ("tiresias", "Tiresias-L", 347_213.2)],
)
def test_a_baseline_is_reproduced(shared: Path, policy: str, theirs: str, published: float) -> None:
    run = run_muri(shared / "traces", PublishedAsk("3", policy))
    assert (run.workload, run.theirs, run.published_s, run.jobs) == ("trace3", theirs, published, 992)
    assert run.ratio == pytest.approx(1, abs=0.001)
    assert (run.reproduces, run.tuned_on) == (True, False)


def test_our_own_rule_says_what_it_was_tuned_on_and_watching_changes_nothing(shared: Path) -> None:
    steps: list[tuple[int, int]] = []

    def watch(done: int, total: int) -> None:
        steps.append((done, total))

    watched = run_muri(shared / "traces", PublishedAsk("3", "share-s"), watch)
    assert watched == run_muri(shared / "traces", PublishedAsk("3", "share-s"))
    assert (watched.reproduces, watched.tuned_on) == (False, True)
    assert watched.ratio < 1
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)
    assert {total for _, total in steps} == {992}
    assert not run_muri(shared / "traces", PublishedAsk("3p", "share-s")).tuned_on


def test_pollux_beside_its_published_average(shared: Path) -> None:
    run = run_pollux(shared / "traces", PublishedAsk("6", "tiresias"))
    assert (run.workload, run.theirs, run.jobs) == ("workload-6", "Tiresias", 160)
    assert run.ratio == pytest.approx(1, abs=0.001)
    with pytest.raises(NotFoundError, match="no Pollux workload '9'"):
        run_pollux(shared / "traces", PublishedAsk("9", "tiresias"))
