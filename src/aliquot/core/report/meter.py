"""The meter: the same events as the world, folded into integrals over time and the times of jobs.

An observer; it decides nothing and holds nothing back. Feed it every event in order with `see`, then take
`readings`. All sums are exact integers. An event costs a few microseconds, whatever the size of the site.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from aliquot.core import lifecycle
from aliquot.core.events import (
    CardsFaulty,
    Ended,
    Event,
    Granted,
    JobCancelled,
    JobSubmitted,
    Moved,
    NodeDrained,
    NodeJoined,
    NodeLost,
    Started,
    StartRefused,
    Stopping,
)  # fmt: skip  # one list, not one name a line
from aliquot.core.grants import Placement
from aliquot.core.ids import CardId, JobId, NodeId
from aliquot.core.inventory import Node
from aliquot.core.jobs import Job
from aliquot.core.lifecycle import News, Phase
from aliquot.core.pace import pace_of
from aliquot.core.report.gauges import Sums, Totals
from aliquot.core.report.lives import Life, Lives, Piece
from aliquot.core.report.machines import Hold, Machines
from aliquot.core.report.readings import Readings, Window, WindowRule, read_cells, read_waiting
from aliquot.core.speed import Reach
from aliquot.core.workload import Offer, Scenario


class Watcher(Protocol):
    """Someone who draws what the meter sees, such as `timeline.Recorder`. Times are inside the window."""

    def card(self, card: CardId, booked: int, up: int, at: int) -> None:
        """The milli-cards of one card that are booked, or that are up, changed by so much."""
        ...

    def submitted(self, job: Job, at: int, sums: Sums) -> None:
        """A job comes; `sums` are as they were before."""
        ...

    def placed(self, life: Life, placements: tuple[Placement, ...], at: int) -> None:
        """An attempt was granted."""
        ...

    def over(self, life: Life, outcome: Phase, at: int) -> None:
        """An attempt, or a job without one, is over; it waits again where `outcome` is PENDING."""
        ...

    def tick(self, at: int, sums: Sums) -> None:
        """An event has been folded."""
        ...


class Meter:
    """Measures one run of `scenario`. `window` is (from, to) in ms; `to` None: see `readings`."""

    def __init__(
        self,
        scenario: Scenario,
        *,
        window: tuple[int, int | None] = (0, None),
        watcher: Watcher | None = None,
    ) -> None:
        self.start, self.end = window
        self.now = self.start  # inside the window
        self._clock = 0  # as it is
        self.sums = Sums(self.start)
        self.lives = Lives(self.start)
        requests = {request: None for offer in scenario.offers for request in offer.job.members}
        self.machines = Machines(requests, self.sums, self.start, watcher.card if watcher else None)
        self._offers: dict[JobId, Offer] = {offer.job.id: offer for offer in scenario.offers}
        self._nodes: dict[NodeId, Node] = {}
        self._speeds = scenario.speeds
        self._watcher = watcher
        self._waiting: dict[Piece, int] = {}  # how many members wait for whole cards
        self._placements: dict[JobId, list[Placement]] = {}
        self._holding = 0  # jobs that hold something
        self._emptied: tuple[int, Totals] | None = None  # when nothing was held any more, and the sums then
        self._stale = False  # whether free cards or waiting members changed
        self._blocked = False  # whether a wide member waited when that was last looked at
        self._full_pace = {shared: scenario.speeds.speed(Reach.SINGLE, shared) for shared in (False, True)}

    def see(self, event: Event) -> None:
        """Fold one event. A time that goes back (old news) is taken as the latest time seen.

        What happened before the window counts from its beginning on; what comes after it is left out.
        """
        if self.end is not None and event.at > self.end:
            return
        self._clock = max(event.at, self._clock)
        at = self.now = max(event.at, self.now)
        fold = _FOLD.get(type(event))
        if fold is not None:
            fold(self, event, at)
            if self._stale and (self._waiting or self._blocked):
                self._settle(at)
            if self._watcher is not None:
                self._watcher.tick(at, self.sums)

    def readings(self) -> Readings:
        """What was measured so far.

        The window ends where it was said to; else, where nothing is held any more, with the last release;
        else with the last event.
        """
        window, totals = self._window()
        at = window.end_ms
        return Readings(
            window=window,
            totals=totals,
            cells=read_cells(self.lives, at),
            card_milli_ms=tuple((card, gauge.until(at)) for card, gauge in self.machines.cards.items()),
            waiting=read_waiting(self.lives, self.now),
        )

    def _window(self) -> tuple[Window, Totals]:
        if self.end is not None:
            return Window(self.start, self.end, WindowRule.GIVEN), self.sums.until(self.end)
        if self._emptied is None or self._holding:
            return Window(self.start, self.now, WindowRule.LAST_EVENT), self.sums.until(self.now)
        at, totals = self._emptied
        return Window(self.start, at, WindowRule.LAST_COMPLETION), totals

    # --- nodes -----------------------------------------------------------------------------------------

    def _joined(self, event: NodeJoined, at: int) -> None:
        self._nodes[event.node.id] = event.node
        self.machines.join(event.node, at)
        self._stale = True

    def _lost(self, event: NodeLost, at: int) -> None:
        self.machines.lose(event.node, at)
        self._stale = True

    def _drained(self, event: NodeDrained, at: int) -> None:
        self.machines.drain(event.node, event.drained, at)
        self._stale = True

    def _faulty(self, event: CardsFaulty, at: int) -> None:
        self.machines.fault(event.node, event.cards, at)
        self._stale = True

    # --- jobs ------------------------------------------------------------------------------------------

    def _submitted(self, event: JobSubmitted, at: int) -> None:
        if self._watcher is not None:
            self._watcher.submitted(event.job, at, self.sums)
        life = self.lives.submit(event.job)
        if life is not None:
            self._wait(life, 1, at)

    def _cancelled(self, event: JobCancelled, at: int) -> None:
        life = self.lives.open.get(event.job)
        if life is not None:
            life.cancelled = True
            self._turn(event.job, life.attempt, News.CANCELLED, at)

    def _granted(self, event: Granted, at: int) -> None:
        life = self._turn(event.job, event.attempt, News.GRANTED, at)
        if life is None:
            return
        self._holding += 1
        self.lives.grant(life, self._clock)
        members = len(event.placements)
        for member, placement in enumerate(event.placements):
            hold = Hold(placement, life.cell.share)
            life.holds.append(hold)
            self.machines.hold(hold, life.request_of(member, members), at)
        self._placements[event.job] = list(event.placements)
        if self._watcher is not None:
            self._watcher.placed(life, event.placements, at)

    def _moved(self, event: Moved, at: int) -> None:
        life = self.lives.open.get(event.job)
        if life is None or not life.holds or life.attempt != event.attempt:
            return
        places = self._placements[event.job]
        if places[event.member] == event.placement:
            return
        places[event.member] = event.placement
        life.moves += 1
        life.cell.moved += 1
        self.machines.release(life.holds[event.member], at)
        hold = Hold(event.placement, life.cell.share)
        life.holds[event.member] = hold
        self.machines.hold(hold, life.request_of(event.member, len(life.holds)), at)
        self._stale = True
        if life.phase is Phase.RUNNING:
            self._work(life, at)

    def _started(self, event: Started, at: int) -> None:
        self._turn(event.job, event.attempt, News.STARTED, at)

    def _refused(self, event: StartRefused, at: int) -> None:
        self._turn(event.job, event.attempt, News.REFUSED, at)

    def _stopping(self, event: Stopping, at: int) -> None:
        self._turn(event.job, event.attempt, News.STOPPING, at)

    def _ended(self, event: Ended, at: int) -> None:
        self._turn(event.job, event.attempt, lifecycle.NEWS_OF_OUTCOME[event.outcome], at)

    def _turn(self, job: JobId, attempt: int, news: News, at: int) -> Life | None:
        """Move a job to its next phase, with what it holds and does; None where the news changes nothing."""
        turned = self.lives.turn(job, attempt, news)
        if turned is None:
            return None
        life, before, after = turned
        if before is Phase.PENDING:
            self._wait(life, -1, at)
        if after is Phase.STARTING:
            self._stale = True
        elif after is Phase.RUNNING:
            self.lives.start(life, self._clock)
            self._work(life, at)
        elif after is Phase.STOPPING:
            self._rest(life, at)
        else:
            self._leave(life, after, news, at)
        return life

    def _leave(self, life: Life, after: Phase, news: News, at: int) -> None:
        """An attempt, or a job that never started, is over."""
        self._rest(life, at)
        for hold in life.holds:
            self.machines.release(hold, at)
        if self._watcher is not None:
            self._watcher.over(life, after, at)
        if life.holds:
            life.holds = []
            del self._placements[life.job.id]
            self._stale = True
            self._holding -= 1
            if not self._holding:
                self._emptied = at, self.sums.until(at)
        if after is Phase.PENDING:
            self.lives.requeue(life, news)
            self._wait(life, 1, at)
        else:
            self.lives.close(life, after, self._clock)

    def _work(self, life: Life, at: int) -> None:
        """What the cards of a job do from now on, at the speed of where it runs."""
        offer = self._offers.get(life.job.id)
        busy = offer.busy_milli if offer is not None else None
        pace = 0
        if offer is not None and busy:
            placements = self._placements[life.job.id]
            if offer.linked:
                pace = pace_of(offer, tuple(placements), self._nodes, self._speeds)
            else:
                pace = self._full_pace[any(part.cards and not part.whole for part in placements)]
        for hold in life.holds:
            if hold.cards:
                self.machines.busy(hold, None if busy is None else busy * pace // 1000, at)

    def _rest(self, life: Life, at: int) -> None:
        self.lives.stop(life, self._clock)
        for hold in life.holds:
            if hold.busy != 0:
                self.machines.busy(hold, 0, at)

    def _wait(self, life: Life, change: int, at: int) -> None:
        self.sums.waiting_jobs.add(change, at)
        for key in life.pieces:
            count = self._waiting.get(key, 0) + change
            if count:
                self._waiting[key] = count
            else:
                del self._waiting[key]
            self._stale = True

    # --- scattered cards -------------------------------------------------------------------------------

    def _settle(self, at: int) -> None:
        """After free cards or waiting members changed: what blocks the widest of them."""
        self._stale = False
        sums = self.sums
        width, free, fits = self._widest()
        scattered = width > 0 and not fits and free >= width
        sums.blocked_cards.put(free if scattered else 0, at)
        sums.scattered.put(int(scattered), at)
        sums.crowded.put(int(width > 0 and not fits and free < width), at)
        sums.held_back.put(int(width > 0 and fits), at)
        self._blocked = width > 0

    def _widest(self) -> tuple[int, int, bool]:
        """The widest waiting member that some node could ever hold: (cards, free cards of its kind, fits)."""
        best = (0, 0, False)
        for piece in self._waiting:
            width, profile = piece.cards, piece.profile
            if width >= best[0] and self.machines.ever_fits(width, profile):
                free, fits = self.machines.free_for(width, profile)
                if width > best[0] or (not fits and free > best[1]):
                    best = (width, free, fits)
        return best


_FOLD: dict[type, Callable[..., None]] = {
    NodeJoined: Meter._joined,
    NodeLost: Meter._lost,
    NodeDrained: Meter._drained,
    CardsFaulty: Meter._faulty,
    JobSubmitted: Meter._submitted,
    JobCancelled: Meter._cancelled,
    Granted: Meter._granted,
    Moved: Meter._moved,
    Started: Meter._started,
    StartRefused: Meter._refused,
    Stopping: Meter._stopping,
    Ended: Meter._ended,
}
