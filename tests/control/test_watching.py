"""What follows from looks at the cards that succeed, fail, or tell only a part; time and cards are ours."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence

import pytest

from aliquot.control.card_views import Excess
from aliquot.control.watching import REASON, Pace, Watch
from aliquot.core.errors import TemporaryError
from aliquot.core.events import CardsCrowded, CardsFaulty, Event
from aliquot.core.health import Fault, Process, Reading
from aliquot.core.ids import CardId, JobId
from tests.support.build import a_request, card_id, node_id
from tests.support.local import wait_for
from tests.support.worlds import WorldBuilder

FIRST, SECOND = card_id("n", 0), card_id("n", 1)
PACE = Pace(interval_ms=1_000, stale_ms=5_000, tolerance_ms=3_000)
UNKNOWN = None
SHUT = Fault("prohibited", "its compute mode is PROHIBITED")


class Scripted:
    """A world, a watch on it, and eyes that show what is set; events go into the world at once."""

    def __init__(self) -> None:
        self.site = WorldBuilder().node("n", 2)
        self.shown: dict[CardId, Reading] = {}
        self.is_blind = False
        self.forbidden: dict[CardId, Fault] = {}
        self.alone: tuple[CardId, ...] = ()
        self.told: list[Event] = []
        self.ended: list[tuple[str, int, str]] = []
        self.watch = Watch(
            self, node_id("n"), lambda: self.site.frozen, lambda: self.site.at, self._tell, self._end, PACE
        )

    def look(self, at: int) -> Sequence[Reading]:
        if self.is_blind:
            raise TemporaryError("the driver does not answer", 1_000)
        return [self.shown.get(card, Reading(card, 0, 0, ())) for card in (FIRST, SECOND)]

    def listen(self, timeout_ms: int) -> Sequence[tuple[CardId, int | None]]:
        return ()

    def unusable(self) -> Mapping[CardId, Fault]:
        return self.forbidden

    def exclusive(self) -> Sequence[CardId]:
        return self.alone

    def sees(self, *processes: Process, card: CardId = FIRST) -> Scripted:
        """From now on these are on the card."""
        used = sum(process.memory_mib or 0 for process in processes)
        self.shown[card] = Reading(card, used, 50, processes)
        return self

    def sees_nothing(self, card: CardId = FIRST) -> Scripted:
        """The driver does not say who is on the card."""
        self.shown[card] = Reading(card, 9_000, 50, UNKNOWN)
        return self

    def after(self, *seconds: float) -> Scripted:
        """A look after each of these."""
        for wait in seconds:
            self.site.later(int(wait * 1_000))
            self.watch.look()
        return self

    @property
    def offered(self) -> list[int]:
        """MiB of each card."""
        return [left[1] for left in self.site.row("n")["left"]]

    def _tell(self, event: Event) -> None:
        self.told.append(event)
        self.site.happen(event)

    def _end(self, job: JobId, attempt: int, reason: str) -> None:
        self.ended.append((job, attempt, reason))


def foreign(memory: int) -> Process:
    return Process(99, memory)


def of(job: str, memory: int) -> Process:
    return Process(7, memory, None, JobId(job))


def running(memory: int) -> Scripted:
    """Job `a` holds so much of the first card."""
    script = Scripted()
    script.site.submit("a", a_request(memory=memory)).placed().started("a")
    assert script.site.grant("a").placement.cards == (FIRST,)
    return script


@pytest.mark.parametrize("how", ["one card", "all"])
def test_what_was_seen_last_counts_while_the_driver_does_not_say_and_then_no_more(how: str) -> None:
    """A driver that stumbles gives away no card that somebody is on; where it stays dumb, use is unknown."""
    script = Scripted().sees(foreign(6_000)).after(1)
    full = script.offered[1]
    assert script.offered == [full - 6_144, full]
    if how == "all":
        script.is_blind = True
    else:
        script.sees_nothing()
    for _ in range(5):
        script.after(1)
        assert script.offered == [full - 6_144, full], "as last seen"
    assert script.after(1).offered == [full, full], "unknown: the ledger alone"
    script.is_blind = False
    assert script.sees(foreign(1_000)).after(1).offered == [full - 1_024, full]
    assert not [event for event in script.told if isinstance(event, CardsFaulty)]


def test_nobody_is_ended_for_what_was_not_seen_just_now() -> None:
    script = running(10_000).sees(of("a", 12_000)).after(1, 1)
    for blind in (True, False, True, False, True, False):
        script.is_blind = blind
        script.after(1)
    assert script.ended == [], "each time it began anew"
    script.after(1, 1, 1, 1)
    assert script.ended == [("a", 1, REASON)]
    script.after(1, 1)
    assert len(script.ended) == 1, "once"


def test_memory_over_the_grant_within_the_tolerance_ends_nobody() -> None:
    script = running(10_000).sees(of("a", 12_000)).after(1, 1, 1).sees(of("a", 9_000)).after(1)
    script.sees(of("a", 12_000)).after(1, 1, 1)
    assert script.ended == []
    script.after(1.1)
    assert script.ended == [("a", 1, REASON)]


def test_what_is_used_above_the_grant_is_offered_to_nobody_meanwhile() -> None:
    script = running(10_000)
    before = script.offered
    script.sees(of("a", 12_000)).after(1)
    assert script.offered == [before[0] - 2_048, before[1]]
    script.sees(of("a", 8_000)).after(1)
    assert script.offered == before


def test_a_forbidden_card_takes_nothing_and_an_exclusive_one_a_single_job() -> None:
    script = running(10_000)
    script.forbidden, script.alone = {SECOND: SHUT}, (FIRST,)
    script.after(1)
    assert script.offered == [0, 0]
    script.site.submit("b", a_request(memory=1_000)).placed()
    assert script.site.waiting == ["b"]
    script.site.ended("a")
    script.after(1).site.placed()
    assert script.site.grant("b").placement.cards == (FIRST,)


def test_a_look_that_fails_as_none_should_is_told_once_and_not_the_last() -> None:
    script, said, looks = Scripted(), list[str](), Counter[str]()

    def stumble(at: int) -> Sequence[Reading]:
        looks["all"] += 1
        if looks["all"] < 4:
            raise KeyError("GPU-9")
        return [Reading(card, 0, 0, ()) for card in (FIRST, SECOND)]

    script.look = stumble  # type: ignore[method-assign] # eyes that go wrong
    watch = Watch(
        script, node_id("n"), lambda: script.site.frozen, lambda: time.monotonic_ns() // 1_000_000,
        script._tell, script._end, Pace(interval_ms=5), said.append,
    )  # fmt: skip  # parts only
    watch.start()
    wait_for(watch.readings, "a look that succeeds")
    watch.stop()
    assert said == [
        "a look at the cards failed (KeyError: 'GPU-9'); they are looked at again, and jobs go on"
    ]


def test_the_same_is_told_once() -> None:
    script = Scripted().sees(foreign(6_000)).after(1, 1, 1)
    assert [type(event) for event in script.told] == [CardsCrowded]
    script.sees(foreign(6_010)).after(1)
    assert len(script.told) == 1, "a breath is no news"


def test_who_is_over_is_known_from_the_first_look_to_the_last_and_no_longer() -> None:
    script, job = running(10_000), JobId("a")
    assert script.sees(of("a", 8_000)).after(1).watch.excesses() == {}
    script.sees(of("a", 12_000)).after(1)
    began = script.site.at
    script.sees(of("a", 13_000)).after(1)
    assert script.watch.excesses() == {job: (Excess(FIRST, 13_000, 10_000, began, began + 3_000),)}
    assert script.sees(of("a", 9_000)).after(1).watch.excesses() == {}
    script.sees(of("a", 12_000)).after(1)
    script.is_blind = True
    assert script.after(1).watch.excesses() == {}, "nobody knows any more"
