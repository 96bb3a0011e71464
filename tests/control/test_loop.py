"""The loop: what it records, in which order, and that it decides nothing itself."""

from __future__ import annotations

from collections.abc import Sequence

from aliquot.control.loop import Loop
from aliquot.core.events import EpochBegan, Event, Granted, JobSubmitted, NodeJoined, StartRefused
from aliquot.core.ids import JobId
from aliquot.core.settings import MixSource, Settings
from aliquot.core.steps import Kill, Move, Start
from aliquot.core.world import World
from tests.support.build import a_job, a_node, a_request
from tests.support.planning import PLAIN, settings
from tests.support.same import same_world


class Scripted:
    """A cluster, a clock and a journal that note every call; `observe` gives one of `happenings` a time."""

    def __init__(self, *happenings: Sequence[Event]) -> None:
        self.happenings = list(happenings)
        self.calls: list[tuple[str, object]] = []
        self.time = 0

    @property
    def is_over(self) -> bool:
        return not self.happenings

    def observe(self) -> Sequence[Event]:
        return self.happenings.pop(0) if self.happenings else ()

    def carry_out(self, steps: Sequence[Start | Kill | Move]) -> None:
        self.calls.append(("carry out", list(steps)))

    def now(self) -> int:
        return self.time

    def wake_at(self, at: int) -> None:
        self.calls.append(("wake at", at))

    def append(self, events: Sequence[Event]) -> None:
        self.calls.append(("record", list(events)))

    def replay(self):  # type: ignore[no-untyped-def] # the events that were recorded
        return iter(event for what, events in self.calls if what == "record" for event in events)  # type: ignore[attr-defined] # a list


class Watcher:
    """Notes what it was shown, and whether the world already knew it."""

    def __init__(self) -> None:
        self.seen: list[Event] = []
        self.knew: list[bool] = []

    def see(self, events: Sequence[Event], world: World) -> None:
        self.seen += events
        self.knew += [event.job.id in world.jobs for event in events if isinstance(event, JobSubmitted)]


NODE = NodeJoined(0, a_node("n", 4))


def submitted(name: str = "job", cards: int = 1) -> JobSubmitted:
    return JobSubmitted(0, a_job(name, cards=cards))


def a_loop(site: Scripted, how: Settings = PLAIN, *observers: Watcher) -> Loop:
    return Loop(site, site, site, how, observers)


def test_intents_are_recorded_before_they_are_carried_out() -> None:
    site = Scripted((NODE, submitted()))
    assert a_loop(site).turn()
    (first, news), (second, intents), (third, steps) = site.calls
    assert (first, second, third) == ("record", "record", "carry out")
    assert news == [NODE, submitted()]
    (granted,) = intents  # type: ignore[misc] # the list of events
    assert isinstance(granted, Granted)
    (start,) = steps  # type: ignore[misc] # the list of steps
    assert (start.job, start.attempt, start.placements) == ("job", 1, granted.placements)


def test_what_is_owed_is_carried_out_again_until_the_engine_says_it_was() -> None:
    site = Scripted((NODE, submitted()), ())
    loop = a_loop(site)
    loop.turn()
    loop.turn()
    done = [steps for what, steps in site.calls if what == "carry out"]
    assert len(done) == 2
    assert done[0] == done[1]


def test_a_quiet_turn_says_so() -> None:
    site = Scripted((NODE,))
    loop = a_loop(site)
    assert loop.turn()
    assert not loop.turn()
    assert [what for what, _ in site.calls] == ["record"]


def test_a_back_off_sets_the_clock() -> None:
    site = Scripted((NODE, submitted()))
    loop = a_loop(site)
    loop.turn()
    site.happenings.append((StartRefused(5, JobId("job"), 1, "busy"),))
    site.time = 5
    loop.turn()
    due = loop.world.jobs[JobId("job")].not_before_ms
    assert site.calls[-1] == ("wake at", due)


def test_a_new_epoch_is_recorded_before_the_plan_that_uses_it() -> None:
    site = Scripted((NODE, submitted()))
    a_loop(site, settings(mix_source=MixSource.WINDOW)).turn()
    kinds = [type(event) for what, events in site.calls if what == "record" for event in events]  # type: ignore[attr-defined] # a list
    assert kinds == [NodeJoined, JobSubmitted, EpochBegan, Granted]


def test_observers_see_everything_once_it_is_folded() -> None:
    site, watcher = Scripted((NODE, submitted())), Watcher()
    loop = a_loop(site, PLAIN, watcher)
    loop.turn()
    assert watcher.seen == list(site.replay())
    assert watcher.knew == [True]


def test_a_world_rebuilt_from_the_journal_is_the_loop_s() -> None:
    site = Scripted((NODE, submitted("a"), submitted("b", 4)), (StartRefused(0, JobId("a"), 1, "busy"),))
    loop = a_loop(site)
    loop.turn()
    loop.turn()
    world = World(window=PLAIN.mix_window)
    world.apply_all(site.replay())
    assert same_world(world.freeze(), loop.world.freeze())


def test_the_last_plan_and_verdict_can_be_asked_for() -> None:
    loop = a_loop(Scripted((NODE, JobSubmitted(0, a_job("wide", a_request(9))))))
    loop.turn()
    assert loop.last_plan is not None
    assert loop.last_verdict is not None
    assert (len(loop.last_plan.steps), loop.last_verdict.events) == (1, ())
