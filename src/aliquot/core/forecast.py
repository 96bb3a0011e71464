"""Virtual time: what would happen if the steps of plans were carried out.

The pure heart of the `sim` engine, of what-if and of predicted starts. Time jumps from one happening to the
next; ties are broken by kind (nodes, ends, arrivals, withdrawals) and then by order of scheduling, so equal
inputs give equal events. The whole state is one value that can be written down and gone on from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush

import msgspec

from aliquot.core.events import (
    Ended,
    Event,
    JobCancelled,
    JobSubmitted,
    NodeJoined,
    NodeLost,
    Outcome,
    Started,
)
from aliquot.core.grants import Placement
from aliquot.core.ids import JobId, NodeId
from aliquot.core.inventory import Node
from aliquot.core.speed import Reach, duration_ms, reach_of
from aliquot.core.steps import Kill, Move, Start
from aliquot.core.workload import Offer, Scenario

_NODE, _END, _ARRIVAL, _WITHDRAWAL, _WAKE = range(5)


class Running(msgspec.Struct, frozen=True):
    """An attempt under way: until when, at which speed, and what was left to do when that was reckoned."""

    attempt: int
    placements: tuple[Placement, ...]
    since_ms: int
    work_left_ms: int | None
    speed_milli: int
    ends_ms: int | None


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
    fresh: list[Event] = []


class Forecast:
    """Happenings of a scenario in virtual time. Call `observe`, plan, `carry_out`, again."""

    def __init__(self, scenario: Scenario, state: State | None = None) -> None:
        self._offers = scenario.offers
        self._offer_of = {offer.job.id: offer for offer in scenario.offers}
        self._nodes: Mapping[NodeId, Node] = {node.id: node for node in scenario.nodes}
        self._by_name: Mapping[str, Node] = {node.id.name: node for node in scenario.nodes}
        self._speeds = scenario.speeds
        self.state = state or self._first_state(scenario)

    def observe(self) -> list[Event]:
        """All that happens at the next instant, after what was started since; empty when nothing is left."""
        state = self.state
        events, state.fresh = state.fresh, []
        at = self._next_instant()
        if at is None:
            return events
        state.now = at
        while state.due and state.due[0].at == at and state.due[0].kind <= _END:
            self._happen(heappop(state.due), events)
        self._arrive(at, events)
        while state.due and state.due[0].at == at:
            self._happen(heappop(state.due), events)
        return events

    def carry_out(self, steps: Sequence[Start | Kill | Move]) -> None:
        """Begin each step once; a repeated step changes nothing."""
        for step in steps:
            match step:
                case Start():
                    self._start(step)
                case Kill():
                    self._kill(step)
                case Move():
                    self._move(step)

    def wake_at(self, at: int) -> None:
        """Make an instant at `at` in which nothing need happen."""
        if not any(due.at == at for due in self.state.due):
            self._push(self.state, at, _WAKE, "", 0)

    def snapshot(self) -> State:
        """A copy of the state, to go on from later with the same scenario."""
        return msgspec.convert(msgspec.to_builtins(self.state), State)

    def _first_state(self, scenario: Scenario) -> State:
        state = State()
        state.fresh.extend(NodeJoined(0, node) for node in scenario.nodes)
        for at, name, back in scenario.failures:
            self._push(state, at, _NODE, name, 0)
            if back is not None:
                self._push(state, back, _NODE, name, 1)
        heapify(state.due)
        return state

    def _next_instant(self) -> int | None:
        state = self.state
        times = [state.due[0].at] if state.due else []
        if state.cursor < len(self._offers):
            times.append(self._offers[state.cursor].job.submitted_ms)
        return max(state.now, min(times)) if times else None

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
                del self.state.running[due.subject]
                events.append(Ended(due.at, JobId(due.subject), due.attempt, Outcome.SUCCEEDED))
        elif due.kind == _WITHDRAWAL and due.subject not in self.state.running:
            events.append(JobCancelled(due.at, JobId(due.subject)))

    def _node(self, due: Due, events: list[Event]) -> None:
        node = self._by_name[due.subject]
        if due.attempt:
            events.append(NodeJoined(due.at, node))
            return
        events.append(NodeLost(due.at, node.id))
        for job, running in list(self.state.running.items()):
            if any(placement.node == node.id for placement in running.placements):
                del self.state.running[job]
                events.append(Ended(due.at, JobId(job), running.attempt, Outcome.LOST))

    def _start(self, step: Start) -> None:
        state = self.state
        known = state.running.get(step.job)
        if known is not None and known.attempt >= step.attempt:
            return
        offer = self._offer_of[step.job]
        speed = self._speed(offer, step.placements)
        self._run(step.job, step.attempt, step.placements, offer.work_ms, speed)
        state.fresh.append(Started(state.now, step.job, step.attempt))

    def _run(
        self, job: JobId, attempt: int, placements: tuple[Placement, ...], work: int | None, speed: int
    ) -> None:
        state = self.state
        ends = None if work is None else state.now + duration_ms(work, speed)
        state.running[job] = Running(attempt, placements, state.now, work, speed, ends)
        if ends is not None:
            self._push(state, ends, _END, job, attempt)

    def _kill(self, step: Kill) -> None:
        running = self.state.running.get(step.job)
        if running is not None and running.attempt == step.attempt:
            del self.state.running[step.job]
            self.state.fresh.append(Ended(self.state.now, step.job, step.attempt, Outcome.FAILED))

    def _move(self, step: Move) -> None:
        """Go on elsewhere with the work that is left; moving itself takes no time here."""
        state = self.state
        running = state.running.get(step.job)
        if running is None or running.attempt != step.attempt:
            return
        placements = tuple(
            step.placement if member == step.member else placement
            for member, placement in enumerate(running.placements)
        )
        if placements != running.placements:
            left = running.work_left_ms
            if left is not None:
                left = max(0, left - (state.now - running.since_ms) * running.speed_milli // 1000)
            self._run(
                step.job, step.attempt, placements, left, self._speed(self._offer_of[step.job], placements)
            )
        state.fresh.append(Started(state.now, step.job, step.attempt))

    def _speed(self, offer: Offer, placements: tuple[Placement, ...]) -> int:
        shared = any(placement.cards and not placement.whole for placement in placements)
        reach = self._reach(placements) if offer.linked else Reach.SINGLE
        return self._speeds.speed(reach, shared)

    def _reach(self, placements: tuple[Placement, ...]) -> Reach:
        if len({placement.node for placement in placements}) > 1:
            return Reach.NETWORK
        node = self._nodes[placements[0].node]
        held = {card for placement in placements for card in placement.cards}
        mask = sum(1 << at for at, card in enumerate(node.cards) if card.uuid in held)
        return reach_of(node.wiring, mask)

    @staticmethod
    def _push(state: State, at: int, kind: int, subject: str, attempt: int) -> None:
        state.seq += 1
        heappush(state.due, Due(at, kind, state.seq, subject, attempt))
