"""Virtual time: what would happen if the steps of plans were carried out.

The pure heart of the `sim` engine, of what-if and of predicted starts. Time jumps from one happening to the
next; ties are broken by kind (nodes, ends, withdrawals, arrivals) and then by order of scheduling, so equal
inputs give equal events. The whole state is one value that can be written down and gone on from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush

import msgspec

from aliquot.core.events import (
    Ended,
    Event,
    Idle,
    JobCancelled,
    JobSubmitted,
    NodeJoined,
    NodeLost,
    Outcome,
    Started,
    WindowCancelled,
    WindowMade,
)
from aliquot.core.grants import Placement
from aliquot.core.ids import JobId, NodeId
from aliquot.core.inventory import Node
from aliquot.core.pace import company_milli, pace_of
from aliquot.core.running import Abreast, Running, at_speed, saved_milli
from aliquot.core.speed import FULL_SPEED, duration_ms
from aliquot.core.steps import Kill, Move, Resize, Start, Work
from aliquot.core.workload import Offer, Scenario

_NODE, _END, _ARRIVAL, _WITHDRAWAL, _IDLE, _WAKE, _WINDOW, _LIMIT = range(8)


class Due(msgspec.Struct, frozen=True, order=True):
    """Something scheduled. `order`: time, kind, then the order of scheduling."""

    at: int
    kind: int
    seq: int
    subject: str
    attempt: int = 0


class State(msgspec.Struct):
    """Everything the virtual cluster would need to go on from here."""

    now: int = 0
    cursor: int = 0  # offers submitted so far
    seq: int = 0
    due: list[Due] = []
    running: dict[str, Running] = {}
    left: dict[str, int] = {}  # work that is left of jobs that were stopped and will go on
    begun: dict[str, int] = {}  # the last attempt of each job that was started, or killed before it was
    wakes: set[int] = set()
    fresh: list[Event] = []


class Forecast:
    """Happenings of a scenario in virtual time. Call `observe`, plan, `carry_out`, again."""

    resizes_in_place = True

    def __init__(self, scenario: Scenario, state: State | None = None) -> None:
        self._offers = scenario.offers
        self._offer_of = {offer.job.id: offer for offer in scenario.offers}
        self._nodes: Mapping[NodeId, Node] = {node.id: node for node in scenario.nodes}
        self._by_name: Mapping[str, Node] = {node.id.name: node for node in scenario.nodes}
        self._speeds = scenario.speeds
        self._windows = {one.window.name: one.window for one in scenario.windows}
        self.state = self._first_state(scenario) if state is None else _copy(state)
        self._abreast = Abreast()
        for job, running in self.state.running.items():
            if self._shares(JobId(job), running):
                self._abreast.enter(JobId(job), running.cards)

    def observe(self) -> list[Event]:
        """All that happens at the next instant, after what was started since.

        Empty at an instant made by `wake_at`, and when nothing is left (`is_over`). Instants at which nothing
        happens after all are passed over; what a Kill freed is told at once, before time goes on.
        """
        state = self.state
        events, state.fresh = state.fresh, []
        if any(isinstance(event, Ended) for event in events):
            return events
        told = len(events)
        while (at := self._next_instant()) is not None:
            state.now = at
            if self._pass(at, events) or len(events) > told:
                break
        return events

    def now(self) -> int:
        """Virtual milliseconds; the time of the last instant observed."""
        return self.state.now

    def take_up(self, job: JobId, running: Running, *, confirm: bool = False) -> None:
        """An attempt is under way that was not started here; `confirm`: tell that it has started."""
        state = self.state
        state.running[job] = running
        state.begun[job] = running.attempt
        if running.ends_ms is not None:
            self._push(state, running.ends_ms, _END, job, running.attempt)
        self._come(job)
        if confirm:
            state.fresh.append(Started(state.now, job, running.attempt))

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen unless a step is carried out."""
        return not self.state.fresh and self._next_instant() is None

    def carry_out(self, steps: Sequence[Work]) -> None:
        """Begin each step once; a repeated step changes nothing."""
        for step in steps:
            match step:
                case Start():
                    self._start(step)
                case Kill():
                    self._kill(step)
                case Move():
                    self._move(step)
                case Resize():
                    self._resize(step)

    def wake_at(self, at: int) -> None:
        """Make an instant at `at`, or now where that is past, in which nothing need happen."""
        at = max(at, self.state.now)
        if at not in self.state.wakes:
            self.state.wakes.add(at)
            self._push(self.state, at, _WAKE, "", 0)

    def snapshot(self) -> State:
        """A copy of the state, to go on from later, any number of times, with the same scenario."""
        return _copy(self.state)

    def _first_state(self, scenario: Scenario) -> State:
        state = State()
        state.fresh.extend(NodeJoined(0, node) for node in scenario.nodes)
        for at, name, back in scenario.failures:
            self._push(state, at, _NODE, name, 0)
            if back is not None:
                self._push(state, back, _NODE, name, 1)
        for one in scenario.windows:
            self._push(state, one.at_ms, _WINDOW, one.window.name, 0)
            if one.cancelled_ms is not None:
                self._push(state, one.cancelled_ms, _WINDOW, one.window.name, 1)
        heapify(state.due)
        return state

    def _next_instant(self) -> int | None:
        state = self.state
        times = [state.due[0].at] if state.due else []
        if state.cursor < len(self._offers):
            times.append(self._offers[state.cursor].job.submitted_ms)
        return max(state.now, min(times)) if times else None

    def _pass(self, at: int, events: list[Event]) -> bool:
        """Everything that is due by `at`, in the order of kinds; True where someone asked to be woken.

        Arrivals come last, so that a job of no patience is planned for once before it is withdrawn.
        """
        due = self.state.due
        woken = False
        while due and due[0].at <= at:
            next_due = heappop(due)
            woken |= next_due.kind == _WAKE
            self._happen(next_due, events)
        self._arrive(at, events)
        return woken

    def _arrive(self, at: int, events: list[Event]) -> None:
        state = self.state
        while state.cursor < len(self._offers):
            offer = self._offers[state.cursor]
            if offer.job.submitted_ms > at:
                return
            state.cursor += 1
            events.append(JobSubmitted(at, offer.job))
            if offer.patience_ms is not None:
                self._push(state, at + offer.patience_ms, _WITHDRAWAL, offer.job.id, 0)

    def _happen(self, due: Due, events: list[Event]) -> None:
        if due.kind == _NODE:
            self._node(due, events)
        elif due.kind == _END:
            running = self.state.running.get(due.subject)
            if running is not None and running.attempt == due.attempt and running.ends_ms == due.at:
                self._go(JobId(due.subject))
                events.append(Ended(due.at, JobId(due.subject), due.attempt, running.outcome))
        elif due.kind == _WITHDRAWAL and due.subject not in self.state.begun:
            events.append(JobCancelled(due.at, JobId(due.subject)))
        elif due.kind == _IDLE:
            running = self.state.running.get(due.subject)
            if running is not None and running.attempt == due.attempt:
                events.append(Idle(due.at, JobId(due.subject), due.attempt, due.at))
        elif due.kind == _LIMIT:
            running = self.state.running.get(due.subject)
            if running is not None and running.attempt == due.attempt:
                self._go(JobId(due.subject))
                events.append(Ended(due.at, JobId(due.subject), due.attempt, Outcome.FAILED))
        elif due.kind == _WINDOW and due.attempt:
            events.append(WindowCancelled(due.at, due.subject))
        elif due.kind == _WINDOW:
            events.append(WindowMade(due.at, self._windows[due.subject]))
        elif due.kind == _WAKE:
            self.state.wakes.discard(due.at)

    def _node(self, due: Due, events: list[Event]) -> None:
        node = self._by_name[due.subject]
        if due.attempt:
            events.append(NodeJoined(due.at, node))
            return
        events.append(NodeLost(due.at, node.id))
        for job, running in list(self.state.running.items()):
            if any(placement.node == node.id for placement in running.placements):
                self._go(JobId(job))
                self._save(JobId(job), running)
                events.append(Ended(due.at, JobId(job), running.attempt, Outcome.LOST))

    def _start(self, step: Start) -> None:
        state = self.state
        if step.attempt <= state.begun.get(step.job, 0):
            return
        state.begun[step.job] = step.attempt
        offer = self._offer_of[step.job]
        speed = self._speed(offer, step.placements)
        work = state.left.get(step.job, offer.work_ms)
        pause = offer.job.stop.restart_ms if step.attempt > 1 else 0
        self._run(step.job, step.attempt, step.placements, work, speed, pause)
        state.fresh.append(Started(state.now, step.job, step.attempt))
        if offer.idle_after_ms is not None:
            self._push(state, state.now + pause + offer.idle_after_ms, _IDLE, step.job, step.attempt)
        if offer.job.limit_ms is not None:
            self._push(state, state.now + offer.job.limit_ms, _LIMIT, step.job, step.attempt)

    def _run(
        self,
        job: JobId,
        attempt: int,
        placements: tuple[Placement, ...],
        work: int | None,
        speed: int,
        pause_ms: int = 0,
    ) -> None:
        state = self.state
        since = state.now + pause_ms
        ends = None if work is None else since + duration_ms(work, speed)
        state.running[job] = Running(attempt, placements, since, work, speed, ends)
        if ends is not None:
            self._push(state, ends, _END, job, attempt)
        self._come(job)

    def _shares(self, job: JobId, running: Running) -> bool:
        """Whether its speed depends on who else is on its cards, and theirs on it."""
        offer = self._offer_of.get(job)
        return offer is not None and offer.job.may_share and running.outcome is Outcome.SUCCEEDED

    def _come(self, job: JobId) -> None:
        """It runs: all on its cards go on at the speed of those who are there now."""
        running = self.state.running[job]
        if self._shares(job, running):
            self._set_paces(self._abreast.enter(job, running.cards))

    def _go(self, job: JobId) -> None:
        """It does nothing any more: those who stay on its cards are faster by that."""
        running = self.state.running.pop(job)
        if self._shares(job, running):
            self._set_paces(self._abreast.leave(job, running.cards))

    def _set_paces(self, there: Sequence[JobId]) -> None:
        state = self.state
        jobs = [self._offer_of[job].job for job in there]
        for job, offer in zip(there, map(self._offer_of.__getitem__, there), strict=True):
            running = state.running[job]
            alone = self._speed(offer, running.placements)
            speed = max(1, alone * company_milli(offer.job, jobs) // FULL_SPEED)
            if speed == running.speed_milli:
                continue
            again = at_speed(running, speed, state.now, offer.job.stop.checkpoint_ms)
            state.running[job] = again
            if again.ends_ms is not None:
                self._push(state, again.ends_ms, _END, job, again.attempt)

    def _kill(self, step: Kill) -> None:
        """End the attempt. One that never began will not begin later, and is over at once."""
        state = self.state
        running = state.running.get(step.job)
        if running is not None and running.attempt == step.attempt:
            if running.outcome is not Outcome.SUCCEEDED:
                return  # it is ending
            self._go(step.job)
            if step.evicted or step.resized:
                job = self._offer_of[step.job].job
                self._save(step.job, running, warned=step.resized and job.elastic is not None)
                slow = job.stop.stop_ms
                slow = min(slow, step.grace_ms) if step.evicted or step.grace_ms else slow
                if slow:
                    self._wind_down(step, running, slow)
                    return
        elif step.attempt <= state.begun.get(step.job, 0):
            return
        state.begun[step.job] = step.attempt
        state.fresh.append(Ended(state.now, step.job, step.attempt, Outcome.FAILED))

    def _wind_down(self, step: Kill, running: Running, takes_ms: int) -> None:
        """Its processes still hold everything for a while, and do nothing."""
        ends = self.state.now + takes_ms
        self.state.running[step.job] = Running(
            running.attempt, running.placements, self.state.now, 0, running.speed_milli, ends, Outcome.FAILED
        )
        self._push(self.state, ends, _END, step.job, step.attempt)

    def _save(self, job: JobId, running: Running, *, warned: bool = False) -> None:
        """What is left to do once the job goes on from its last checkpoint; all, where it makes none.

        `warned`: an elastic job saves all it did before it goes on at another width, as if that changed in
        place; a gang loses what it has not saved, as when it is stopped.
        """
        left = self._left(running) if warned else running.work_left_ms
        if left is None:
            return
        if warned:
            self.state.left[job] = left
            return
        every = self._offer_of[job].job.stop.checkpoint_ms
        self.state.left[job] = -(-saved_milli(running, self.state.now, every) // FULL_SPEED)

    def _move(self, step: Move) -> None:
        """Go on elsewhere with the work that is left; moving itself takes no time here."""
        state = self.state
        running = state.running.get(step.job)
        if running is None or running.attempt != step.attempt or running.outcome is not Outcome.SUCCEEDED:
            return
        placements = tuple(
            step.placement if member == step.member else placement
            for member, placement in enumerate(running.placements)
        )
        if placements != running.placements:
            left = self._left(running)
            self._go(step.job)
            self._run(
                step.job, step.attempt, placements, left, self._speed(self._offer_of[step.job], placements)
            )
        state.fresh.append(Started(state.now, step.job, step.attempt))

    def _left(self, running: Running) -> int | None:
        """Work that is left now of an attempt under way; None: it never ends."""
        if running.work_left_ms is None:
            return None
        ran = max(0, self.state.now - running.since_ms)
        return max(0, running.work_left_ms - ran * running.speed_milli // 1000)

    def _resize(self, step: Resize) -> None:
        """Go on at another width after the pause that a restart takes; nothing is lost."""
        state = self.state
        running = state.running.get(step.job)
        if running is None or running.attempt != step.attempt or running.outcome is not Outcome.SUCCEEDED:
            return
        if step.placements != running.placements:
            offer = self._offer_of[step.job]
            left = self._left(running)
            speed = self._speed(offer, step.placements)
            self._run(step.job, step.attempt, step.placements, left, speed, offer.job.stop.restart_ms)
        state.fresh.append(Started(state.now, step.job, step.attempt))

    def _speed(self, offer: Offer, placements: tuple[Placement, ...]) -> int:
        return pace_of(offer, placements, self._nodes, self._speeds)

    @staticmethod
    def _push(state: State, at: int, kind: int, subject: str, attempt: int) -> None:
        state.seq += 1
        heappush(state.due, Due(at, kind, state.seq, subject, attempt))


def _copy(state: State) -> State:
    return msgspec.convert(msgspec.to_builtins(state), State)
