"""Random sites with windows: nobody starts where it must not, a warm memo changes nothing, replays agree."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as search
from hypothesis import strategies as st

from aliquot.core.events import Granted, WindowCancelled, WindowMade
from aliquot.core.ids import JobId
from aliquot.core.jobs import Elastic, Stop
from aliquot.core.lifecycle import Phase
from aliquot.core.planner import Memo, explain_wait
from aliquot.core.queues import Queue
from aliquot.core.records import Frozen, JobRecord
from aliquot.core.settings import (
    Backfill,
    Defrag,
    ElasticRules,
    Estimating,
    Preemption,
    Rescue,
    Settings,
    Source,
)
from aliquot.core.steps import Resize
from aliquot.core.windows import Closure, Inside, Window, lets_in
from tests.support.build import a_request, node_id
from tests.support.planning import planned, settings
from tests.support.same import same_world
from tests.support.worlds import WorldBuilder

HOUR = 3_600_000
NODES = ("n0", "n1", "n2")
ALL = settings(
    backfill=Backfill(overdue_ms=HOUR, overdue_wide_ms=0),
    preemption=Preemption(grace_ms=60_000),
    elastic=ElasticRules(dwell_ms=0),
    defrag=Defrag(after_ms=0),
    rescue=Rescue(share=0.5),
    estimates=Estimating(Source.BEST),
    queues=(Queue("lab", budget_cents=10**6), Queue("other")),
)
RULES = (settings(), settings(backfill=Backfill()), settings(preemption=Preemption()), ALL)


class Story:
    """A site to which things happen, planned by one policy with one memo all along."""

    def __init__(self, seed: int, how: Settings) -> None:
        self.random, self.how, self.memo = Random(seed), how, Memo()
        self.site = WorldBuilder().nodes(len(NODES), 4)
        self.jobs = 0

    def go_on(self) -> None:
        """Something happens, and then there is a plan."""
        self.random.choice(
            (self.submit, self.submit, self.submit, self.make, self.cancel, self.wait, self.end)
        )()
        decided = planned(self.site, self.how, memo=self.memo)
        assert decided == planned(self.site, self.how), "a warm memo changed the plan"
        before = self.site.frozen
        self.site.check(*decided.steps)
        assert self.site.verdict.refused == ()
        for event in self.site.verdict.events:
            if isinstance(event, Granted):
                self.check_start(event, before)
        resized = {step.job for step in decided.steps if isinstance(step, Resize)}
        for name in self.site.holding:
            if self.site.phase(name) is Phase.STARTING or name in resized:
                self.site.started(name)

    def submit(self) -> None:
        """A job of one of many kinds."""
        draw = self.random
        more: dict[str, Any] = {
            "estimate_ms": draw.choice((None, draw.randrange(1, 8 * HOUR))),
            "limit_ms": draw.choice((None, None, draw.randrange(1, 8 * HOUR))),
            "priority": draw.randrange(3),
            "queue": draw.choice(("lab", "lab/sub", "other")),
            "user": draw.choice(("ana", "ben")),
            "stop": Stop(draw.choice((None, HOUR)), preemptible=draw.random() < 0.8),
            "movable": draw.random() < 0.3,
        }
        kind = draw.randrange(5)
        request: Any = a_request(draw.randrange(1, 5))
        if kind == 0:
            request = a_request(1, compute=draw.choice((250, 500)))
        elif kind == 1:
            request, more["minimum"] = [a_request(draw.randrange(1, 3))] * 3, draw.choice((None, 2))
        elif kind == 2:
            request = a_request(0, cpu=draw.randrange(1, 32_000))
        elif kind == 3:
            request, more["elastic"] = a_request(1), Elastic((1, 2, 4), (1000, 1900, 3500))
        self.site.submit(f"j{self.jobs}", request, **more)
        self.jobs += 1

    def make(self) -> None:
        """A window, now or later, of one of three names."""
        draw, at = self.random, self.site.at
        start = at + draw.choice((-HOUR, 0, draw.randrange(6 * HOUR)))
        what: dict[str, Any] = draw.choice(
            (
                {"nodes": tuple(map(node_id, draw.sample(NODES, draw.randrange(1, 4))))},
                {"count": draw.randrange(1, 14)},
                {"cards": tuple(f"{draw.choice(NODES)}-g{slot}" for slot in range(3))},
            )
        )
        inside = draw.choice((Inside(), Inside(users=("ana",)), Inside(queues=("lab",))))
        window = Window(
            draw.choice("abc"),
            start,
            start + draw.randrange(1, 5 * HOUR),
            inside=inside,
            grace_ms=draw.choice((None, 0)),
            **what,
        )
        self.site.happen(WindowMade(at, window))

    def cancel(self) -> None:
        """One that may be there."""
        self.site.happen(WindowCancelled(self.site.at, self.random.choice("abc")))

    def wait(self) -> None:
        """Up to two hours pass."""
        self.site.later(self.random.randrange(2 * HOUR))

    def end(self) -> None:
        """Somebody who holds something is over."""
        if self.site.holding:
            self.site.ended(self.random.choice(self.site.holding))

    def check_start(self, event: Granted, before: Frozen) -> None:
        """By the rule as it is written down, and nothing of the code that plans by it."""
        record = before.jobs[event.job]
        for closure in before.closures:
            if closure.window.end_ms > event.at and not lets_in(closure.window, record.job):
                touched = any(touches(closure, place.node, place.cards) for place in event.placements)
                assert not touched or may_start(record, closure.window, event.at), (record, closure)


def touches(closure: Closure, node: object, cards: tuple[str, ...]) -> bool:
    """Whether a placement lies under what a window closes."""
    return any(
        part.node == node and (part.whole or bool(set(part.cards) & set(cards))) for part in closure.parts
    )


def may_start(record: JobRecord, window: Window, at: int) -> bool:
    """Over before it begins; or without a known end, in front of one that stops it without loss."""
    job = record.job
    length = job.limit_ms if job.limit_ms is not None else job.estimate_ms
    length = record.guess_ms if length is None else length
    if length is not None:
        return at + length <= window.start_ms
    saves = job.stop.checkpoint_ms is not None and job.stop.preemptible
    return window.grace_ms is not None and saves and at < window.start_ms


@pytest.mark.parametrize("how", RULES, ids=["plain", "backfill", "preemption", "all"])
@search(deadline=None, max_examples=10)
@given(seed=st.integers(0, 10**9), steps=st.integers(5, 30))
def test_nobody_starts_where_it_would_meet_a_window(how: Settings, seed: int, steps: int) -> None:
    story = Story(seed, how)
    for _ in range(steps):
        story.go_on()
    assert same_world(story.site.rebuilt().freeze(), story.site.frozen)
    assert story.site.rebuilt().freeze().closures == story.site.frozen.closures
    for key in story.site.frozen.pending[:3]:
        explain_wait(story.site.frozen, how, JobId(key[3]), Memo(), story.site.at)
