"""The case with its closed form: 28 cards, 20 inference tasks, three training jobs, before and after.

before = (20 x 0.1 x D + 24 x 0.91 x L) / (28 (D + L)), after = the same work / (28 (a + L)), with
D = 9,420 s of inference, L = 10,800 s of training and a = 300 s until training is submitted.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from aliquot.core.events import Ended, Event, Granted, JobSubmitted, NodeJoined, Outcome, Started
from aliquot.core.inventory import CardModel, Node
from aliquot.core.jobs import Job, Request, Stage
from aliquot.core.report.compare import Reason, compare
from aliquot.core.report.observation import Observation
from aliquot.core.report.result import RunResult, Standing
from aliquot.core.report.scorecard import Scorecard
from aliquot.core.report.wording import why_sentence
from aliquot.core.slices import Ask, Cut, Vector
from aliquot.core.workload import Offer, Scenario
from aliquot.core.world import World
from tests.support.build import a_node, a_placement

A100 = CardModel("A100-40", memory_mib=40_000)
NODES = tuple(a_node(name, cards, model=A100) for name, cards in (("a", 8), ("b", 8), ("c", 8), ("d", 4)))
SERVE_MS, TRAIN_MS, SUBMIT_MS = 9_420_000, 10_800_000, 300_000
SLICE = Request(cards=1, ask=Ask(Cut.SHARED, memory_mib=4_000, compute_milli=100))
GANG = Request(cards=8, ask=Ask(memory_mib=40_000))
SERVING = tuple(
    Offer(Job(f"serve-{at:02}", (SLICE,), 0, at, "inference", 50, Stage.INFERENCE), SERVE_MS, busy_milli=100)
    for at in range(20)
)
TRAINING = tuple(
    Offer(Job(f"train-{at}", (GANG,), SUBMIT_MS, 20 + at, "training", 100), TRAIN_MS, busy_milli=910)
    for at in range(3)
)
CASE = Scenario("the case", NODES, (*SERVING, *TRAINING), ())
HOUR = 3_600_000


def run(name: str, events: Sequence[Event]) -> RunResult:
    """What an observer makes of `events`, one at a time."""
    seen, world = Observation(CASE), World()
    for event in sorted(events, key=lambda event: event.at):
        world.apply(event)
        seen.see((event,), world)
    return seen.result(name, standing=Standing.CALIBRATED)


def life(offer: Offer, start: int, node: Node, slots: Sequence[int], vector: Vector | None) -> list[Event]:
    job, work = offer.job.id, offer.work_ms
    assert work is not None
    return [
        JobSubmitted(offer.job.submitted_ms, offer.job),
        Granted(start, job, 1, (a_placement(node, slots, vector),)),
        Started(start, job, 1),
        Ended(start + work, job, 1, Outcome.SUCCEEDED),
    ]


def whole_cards() -> RunResult:
    """Spread leaves two free cards on each node, so training waits until inference has ended."""
    spots = [(node, slot) for slot in range(6) for node in NODES if slot < len(node.cards) - 2]
    events: list[Event] = [NodeJoined(0, node) for node in NODES]
    for offer, (node, slot) in zip(SERVING, spots, strict=True):
        events += life(offer, 0, node, (slot,), None)
    for offer, node in zip(TRAINING, NODES[:3], strict=True):
        events += life(offer, SERVE_MS, node, range(8), None)
    return run("whole cards", events)


def slices() -> RunResult:
    """Twenty slices on two cards of the small node; training starts at once."""
    events: list[Event] = [NodeJoined(0, node) for node in NODES]
    for at, offer in enumerate(SERVING):
        events += life(offer, 0, NODES[3], (at // 10,), Vector(100, 4_000, 100))
    for offer, node in zip(TRAINING, NODES[:3], strict=True):
        events += life(offer, SUBMIT_MS, node, range(8), None)
    return run("slices", events)


@pytest.fixture(scope="module")
def before() -> Scorecard:
    return whole_cards().scorecard


@pytest.fixture(scope="module")
def after() -> Scorecard:
    return slices().scorecard


def test_utilisation_is_the_closed_form(before: Scorecard, after: Scorecard) -> None:
    work = 20 * 0.1 * 9_420 + 24 * 0.91 * 10_800
    assert before.utilisation == pytest.approx(work / (28 * (9_420 + 10_800)), abs=1e-12)
    assert after.utilisation == pytest.approx(work / (28 * (300 + 10_800)), abs=1e-12)
    assert (round(100 * before.utilisation, 2), round(100 * after.utilisation, 2)) == (44.99, 81.95)


@pytest.mark.parametrize(
    ("figure", "whole", "sliced"),
    [
        pytest.param("utilisation_allocated", 0.569, 0.916, id="utilisation of allocated cards"),
        pytest.param("allocation", 0.791, 0.895, id="allocation"),
        pytest.param("memory_occupancy", 0.491, 0.895, id="memory that was asked for"),
        pytest.param("makespan_ms", 20_220_000, 11_100_000, id="makespan"),
        pytest.param("wait_training_ms", 9_120_000, 0, id="training waits 152 minutes or not at all"),
        pytest.param("completion_training_ms", 19_920_000, 10_800_000, id="training completes"),
        pytest.param("completion_inference_ms", 9_420_000, 9_420_000, id="inference pays nothing"),
        pytest.param("blocked_card_hours", 8 * 152 / 60, 0, id="eight cards, two a node, for 152 min"),
        pytest.param("surplus_card_hours", 20 * 0.9 * 9_420 / 3_600, 0, id="a tenth asked, a card held"),
        pytest.param("scattered_ms", 9_120_000, 0, id="while the widest request fitted the sum"),
        pytest.param("wait_p50_ms", 0, 0, id="half of the jobs are inference and never wait"),
        pytest.param("wait_max_ms", 9_120_000, 0, id="the longest wait"),
        pytest.param("wait_mean_ms", 3 * 9_120_000 / 23, 0, id="the mean wait is over all 23 jobs"),
        pytest.param("slowdown", (20 + 3 * 19_920 / 10_800) / 23, 1, id="bounded slowdown"),
        pytest.param("waiting", 0, 0, id="nobody waits at the end"),
        pytest.param("moved", 0, 0, id="nothing moved"),
    ],
)
def test_figures(before: Scorecard, after: Scorecard, figure: str, whole: float, sliced: float) -> None:
    tolerance = 5e-4 if figure.startswith(("util", "alloc", "memory")) else 1e-9
    assert getattr(before, figure) == pytest.approx(whole, rel=1e-9, abs=tolerance)
    assert getattr(after, figure) == pytest.approx(sliced, rel=1e-9, abs=tolerance)


def test_wait_variance_is_exact(before: Scorecard) -> None:
    # 3 of 23 waited w, the others 0: variance = w^2 x 3/23 x 20/23
    assert before.wait_variance_ms2 == pytest.approx(9_120_000**2 * 3 / 23 * 20 / 23, rel=1e-12)


def test_classes_tell_training_from_inference(before: Scorecard) -> None:
    inference, training = before.per_class.stage
    assert (inference.name, inference.jobs, training.name, training.jobs) == ("inference", 20, "training", 3)
    assert inference.allocated_card_hours == pytest.approx(20 * 9_420 / 3_600)
    assert training.allocated_card_hours == pytest.approx(24 * 3)
    assert training.utilisation_allocated == pytest.approx(0.91)
    assert [part.name for part in before.per_class.width] == ["shared", "8"]


def test_the_differences_are_explained_by_their_integrals() -> None:
    comparison = compare([whole_cards(), slices()])
    reasons = {why.reason: why_sentence(why) for why in comparison.whys}
    assert set(reasons) == {Reason.SAME_WORK, Reason.SURPLUS, Reason.SCATTERED, Reason.FRAGMENTS}
    assert "45.0 %" in reasons[Reason.SAME_WORK].en
    assert "81.9" in reasons[Reason.SAME_WORK].en or "82.0" in reasons[Reason.SAME_WORK].en
    assert "2 h 32 min" in reasons[Reason.SCATTERED].en
    assert "20.3" in reasons[Reason.SCATTERED].zh


def test_money_in_idle_cards() -> None:
    """300 cards of 30,000 held whole by tasks that need a fifth each: 240 cards' worth, 7.2 million."""
    from msgspec.structs import replace

    nodes = tuple(
        replace(a_node(f"n{at}", 15, model=A100), price_cents_per_card=3_000_000) for at in range(20)
    )
    request = Request(cards=1, ask=Ask(Cut.SHARED, memory_mib=8_000))
    offers = tuple(Offer(Job(f"s{at}", (request,), 0, at, stage=Stage.INFERENCE)) for at in range(300))
    seen, world = Observation(Scenario("site", nodes, offers, ()), window=(0, HOUR)), World()
    events: list[Event] = [NodeJoined(0, node) for node in nodes]
    for at, offer in enumerate(offers):
        place = a_placement(nodes[at // 15], (at % 15,))
        events += [JobSubmitted(0, offer.job), Granted(0, offer.job.id, 1, (place,))]
    for event in events:
        world.apply(event)
        seen.see((event,), world)
    card = seen.result("reserved whole").scorecard
    assert (card.surplus_cards, card.surplus_money_cents, card.idle_money_cents) == (240, 720_000_000, 0)
