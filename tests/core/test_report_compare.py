"""Several runs side by side: columns, seeds, which is best, and what is said about it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from aliquot.core.report.compare import NOTICEABLE_MS, Column, Reason, compare, value_of
from aliquot.core.report.metrics import METRICS, Unit
from aliquot.core.report.result import RunResult
from aliquot.core.report.scorecard import Scorecard
from aliquot.core.report.stats import bounded_slowdown, mean, percentile, variance
from aliquot.core.report.wording import format_change, format_duration, format_value, why_sentence
from tests.core.test_report_case import slices, whole_cards


@pytest.fixture(scope="module")
def two() -> tuple[RunResult, RunResult]:
    return whole_cards(), slices()


def changed(result: RunResult, policy: str, **figures: object) -> RunResult:
    return replace(result, policy=policy, scorecard=replace(result.scorecard, **figures))


def test_every_metric_is_a_figure_of_the_scorecard_with_window_and_denominator() -> None:
    assert [metric.id for metric in METRICS if metric.id not in Scorecard.__struct_fields__] == []
    for metric in METRICS:
        texts = (metric.title, metric.window, metric.denominator)
        assert all(text.en and text.zh for text in texts), metric.id


def test_seeds_of_one_policy_are_one_column_of_means(two: tuple[RunResult, RunResult]) -> None:
    runs = [
        replace(changed(two[0], "a", allocation=value), seed=seed)
        for seed, value in enumerate((0.5, 0.7, 0.9))
    ]
    (column,) = compare(runs).columns
    spread = column.values["allocation"]
    assert spread is not None
    assert (column.seeds, spread.mean, spread.least, spread.most) == ((0, 1, 2), pytest.approx(0.7), 0.5, 0.9)


def test_unknown_stays_unknown_and_is_never_best(two: tuple[RunResult, RunResult]) -> None:
    unknown = changed(two[0], "dark", utilisation=None)
    comparison = compare([two[0], unknown, two[1]])
    row = next(row for row in comparison.rows if row.metric == "utilisation")
    assert value_of(comparison.columns[1], "utilisation") is None
    assert (row.changes[1], row.best) == (None, (2,))


def test_equal_columns_have_no_best_and_no_reasons(two: tuple[RunResult, RunResult]) -> None:
    comparison = compare([two[0], changed(two[0], "twin")])
    assert comparison.whys == ()
    assert all(row.best == () for row in comparison.rows)


@pytest.mark.parametrize(
    ("figures", "reason", "said"),
    [
        pytest.param({"crowded_ms": 7_200_000}, Reason.CROWDED, "2 h", id="too few cards in all"),
        pytest.param({"held_back_ms": 3_600_000}, Reason.HELD_BACK, "1 h", id="its turn had not come"),
        pytest.param({"stranded_cards": 4.0}, Reason.STRANDED, "4.0 cards", id="cards without cpu"),
        pytest.param({"lost_card_hours": 16.0}, Reason.LOST, "16.0 card-h", id="a node was away"),
        pytest.param({"moved": 12}, Reason.MOVES, "12 times", id="jobs were moved"),
        pytest.param(
            {"evicted": 3, "lost_work_card_minutes": 12.0}, Reason.EVICTIONS, "12.0 card-min", id="evictions"
        ),
        pytest.param(
            {"completion_inference_ms": 18_000_000.0}, Reason.SLOWER, "inference 5 h", id="inference pays"
        ),
        pytest.param(
            {"busy_card_hours": 100.0, "utilisation": 0.9}, Reason.OTHER_WORK, "100.0 card-h", id="more work"
        ),
    ],
)
def test_a_difference_is_said_where_the_numbers_show_it(
    two: tuple[RunResult, RunResult], figures: dict[str, object], reason: Reason, said: str
) -> None:
    whys = compare([two[0], changed(two[0], "other", **figures)]).whys
    assert [why.reason for why in whys] == [reason]
    sentence = why_sentence(whys[0])
    assert said in sentence.en
    assert "{" not in sentence.en + sentence.zh


def test_small_differences_are_not_spoken_of(two: tuple[RunResult, RunResult]) -> None:
    near = changed(two[0], "near", crowded_ms=NOTICEABLE_MS - 1, stranded_cards=0.1, utilisation=0.4500)
    assert compare([two[0], near]).whys == ()


def test_nothing_to_compare_is_an_empty_comparison() -> None:
    assert compare([]).columns == ()


def test_scenarios_are_kept_apart(two: tuple[RunResult, RunResult]) -> None:
    columns: tuple[Column, ...] = compare([two[0], replace(two[0], scenario="another")]).columns
    assert [column.scenario for column in columns] == ["the case", "another"]


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [
        pytest.param([], 50, None, id="of nothing, nothing"),
        pytest.param([7], 99, 7, id="one value is every percentile"),
        pytest.param(list(range(1, 21)), 95, 19, id="nearest rank"),
        pytest.param(list(range(1, 21)), 50, 10, id="the median of an even number is the lower"),
        pytest.param(list(range(1, 101)), 99, 99, id="a hundred values"),
    ],
)
def test_percentiles(values: list[int], percent: int, expected: int | None) -> None:
    assert percentile(values, percent) == expected


def test_mean_and_variance_of_hand_computed_values() -> None:
    assert (mean([1, 2, 3]), variance([1, 2, 3])) == (2, pytest.approx(2 / 3))
    assert (mean([]), variance([])) == (None, None)


def test_slowdown_takes_no_run_as_shorter_than_ten_seconds() -> None:
    assert bounded_slowdown(100_000, 1) == 10
    assert bounded_slowdown(5_000, 1) == 1
    assert bounded_slowdown(60_000, 20_000) == 3


@pytest.mark.parametrize(
    ("value", "unit", "en", "zh"),
    [
        pytest.param(None, Unit.SHARE, "unknown", "未知", id="unknown is a word"),
        pytest.param(0.8195, Unit.SHARE, "82.0 %", "82.0 %", id="shares to a tenth"),
        pytest.param(720_000_000, Unit.CENTS, "$7.20 M", "$720.0 万", id="millions"),
        pytest.param(12_345, Unit.CENTS, "$123", "$123", id="small money"),
        pytest.param(9_120_000, Unit.MS, "2 h 32 min", "2 小时 32 分", id="hours"),
        pytest.param(3_599_900, Unit.MS, "1 h", "1 小时", id="never 59 min 60 s"),
        pytest.param(23, Unit.COUNT, "23", "23", id="whole counts"),
        pytest.param(22.5, Unit.COUNT, "22.5", "22.5", id="means of counts"),
        pytest.param(-0.00001, Unit.SHARE, "0.0 %", "0.0 %", id="no negative zero"),
        pytest.param(1234.5, Unit.CARD_HOURS, "1,234.5 card-h", "1,234.5 卡时", id="thousands apart"),
    ],
)
def test_figures_read_well(value: float | None, unit: Unit, en: str, zh: str) -> None:
    text = format_value(value, unit)
    assert (text.en, text.zh) == (en, zh)


def test_changes_have_a_sign() -> None:
    assert format_change(0.1, Unit.SHARE).en == "+10.0 pts"
    assert format_change(-60_000, Unit.MS).en == "−1 min"
    assert format_change(0, Unit.COUNT).en == "±0"
    assert format_change(None, Unit.COUNT).en == ""


def test_durations_short_and_long() -> None:
    assert [format_duration(ms).en for ms in (0, 1_500, 59_000, 61_000, 90_000_000)] == [
        "0 s", "1.5 s", "59 s", "1 min 1 s", "1 d 1 h",
    ]  # fmt: skip  # one line a list
