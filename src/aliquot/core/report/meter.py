"""The meter: the same events as the world, folded into integrals over time and the times of jobs.

An observer; it decides nothing and holds nothing back. Feed it every event in order with `see`, then take
`readings`. All sums are exact integers. An event costs a few microseconds, whatever the size of the site.
"""

from __future__ import annotations

from collections.abc import Callable

from aliquot.core import lifecycle
from aliquot.core.company import Held
from aliquot.core.events import (
    CardsCrowded,
    CardsFaulty,
    Ended,
    Event,
    Evicting,
    Granted,
    JobCancelled,
    JobSubmitted,
    Moved,
    NodeDrained,
    NodeJoined,
    NodeLost,
    Resized,
    Resizing,
    Started,
    StartRefused,
    Stopping,
)  # fmt: skip  # one list, not one name a line
from aliquot.core.grants import Placement
from aliquot.core.ids import JobId, NodeId
from aliquot.core.inventory import Node
from aliquot.core.lifecycle import News, Phase
from aliquot.core.report.claims import Claims
from aliquot.core.report.contention import Contention
from aliquot.core.report.crowds import Crowds
from aliquot.core.report.doing import Doing
from aliquot.core.report.fitting import Fitting
from aliquot.core.report.gauges import Sums, Totals
from aliquot.core.report.inversions import Inversions
from aliquot.core.report.lives import Life, Lives
from aliquot.core.report.machines import Hold, Machines
from aliquot.core.report.readings import Readings, Window, WindowRule, read_cells, read_waiting
from aliquot.core.report.scatter import Scatter
from aliquot.core.report.watcher import Watcher
from aliquot.core.settings import Settings
from aliquot.core.workload import Offer, Scenario


class Meter:
    """Measures one run of `scenario`. `window` is (from, to) in ms; `to` None: see `readings`.

    `settings`: the policy it runs under, for its queues; without, queues are those that jobs name.
    """

    def __init__(
        self,
        scenario: Scenario,
        *,
        settings: Settings | None = None,
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
        self._scatter = Scatter(self.machines, self.sums)
        self._offers: dict[JobId, Offer] = {offer.job.id: offer for offer in scenario.offers}
        self.claims = Claims(settings, (offer.job.queue for offer in scenario.offers), self.start)
        self._fitting = Fitting(settings)
        self._inversions = Inversions()
        self._contention = Contention(self.sums.up_milli, self.start)
        self._most_waiting = 0
        self._nodes: dict[NodeId, Node] = {}
        self._watcher = watcher
        self._placements: dict[JobId, list[Placement]] = {}
        self._holding = 0  # jobs that hold something
        self._emptied: tuple[int, Totals] | None = None  # when nothing was held any more, and the sums then
        self._crowds = Crowds(self.sums)
        self._doing = Doing(
            self._offers, scenario.speeds, self._nodes, self._placements, self.machines, self._crowds
        )

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
            self._scatter.settle(at)
            self._crowds.settle(at)
            if self._watcher is not None:
                self._watcher.tick(at, self.sums)

    def readings(self) -> Readings:
        """What was measured so far.

        The window ends where it was said to; else, where nothing is held any more, with the last release;
        else with the last event.
        """
        window, totals = self._window()
        at = window.end_ms
        waiting = self.sums.waiting_jobs
        still = waiting.value if self.now > waiting.since else 0
        return Readings(
            window=window,
            totals=totals,
            cells=read_cells(self.lives, at),
            card_milli_ms=tuple((card, gauge.until(at)) for card, gauge in self.machines.cards.items()),
            waiting=read_waiting(self.lives, self.now, max(self._most_waiting, still)),
            queues=self.claims.read(at),
            stated=self.claims.stated,
            overpromised_ms=self.claims.overpromised_ms(at),
            crowd_ms=self._crowds.until(None, at),
            crowds=tuple((name, self._crowds.until(name, at)) for name in self.claims.names),
            speeds_known=bool(self._offers),
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
        self.claims.join(event.node, at)
        self.machines.join(event.node, at)
        self._contention.ask(0, at)
        self._scatter.stale = True
        for life in self._fitting.join(event.node):
            self._want(life, at)

    def _lost(self, event: NodeLost, at: int) -> None:
        self.claims.lose(event.node, at)
        self.machines.lose(event.node, at)
        self._contention.ask(0, at)
        self._scatter.stale = True

    def _drained(self, event: NodeDrained, at: int) -> None:
        self.machines.drain(event.node, event.drained, at)
        self._scatter.stale = True

    def _faulty(self, event: CardsFaulty, at: int) -> None:
        self.machines.fault(event.node, event.cards, at)
        self._scatter.stale = True

    def _crowded(self, event: CardsCrowded, at: int) -> None:
        self.machines.crowd(event.node, (card for card, _, _ in event.taken), at)
        self._scatter.stale = True

    # --- jobs ------------------------------------------------------------------------------------------

    def _submitted(self, event: JobSubmitted, at: int) -> None:
        if self._watcher is not None:
            self._watcher.submitted(event.job, at, self.sums)
        life = self.lives.submit(event.job)
        if life is not None:
            self._enter(life, at)

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
        if event.beside:
            self._share(self._doing.company.join(event, self._placements, self.lives), at)
        self.lives.grant(life, self._clock, event.placements)
        self._take(life, event.placements, at)
        life.cell.passed += self._inversions.passes(life.job)
        if self._watcher is not None:
            self._watcher.placed(life, event.placements, at)

    def _take(self, life: Life, places: tuple[Placement, ...], at: int) -> None:
        """An attempt holds `places` from now on, and its queue is charged for them."""
        members = len(places)
        for member, placement in enumerate(places):
            hold = Hold(placement, life.cell.share)
            life.holds.append(hold)
            self.machines.hold(hold, life.request_of(member, members), at)
            if 2 * hold.surplus > hold.milli and not life.over_held:
                life.over_held = True
                life.cell.over_held += 1
        self._placements[life.job.id] = list(places)
        life.ticket = self.claims.hold(life.job, places, at)
        self._doing.hold(life, at)

    def _resized(self, event: Resized, at: int) -> None:
        life = self.lives.open.get(event.job)
        if life is None or life.attempt != event.attempt or life.phase is not Phase.RUNNING:
            return
        if event.placements == tuple(self._placements[event.job]):
            return
        self.lives.resize(life, self._clock, event.placements)
        self._hold_anew(life, event.placements, at)

    def _share(self, parts: Held, at: int) -> None:
        """Each of those who share cards goes on with its part of them, as fast as it can there."""
        for job, places in parts.items():
            life = self.lives.open[job]
            self.lives.share(life, self._clock, places)
            self._hold_anew(life, places, at)

    def _hold_anew(self, life: Life, places: tuple[Placement, ...], at: int) -> None:
        for hold in life.holds:
            self.machines.release(hold, at)
        life.holds = []
        if life.ticket is not None:
            self.claims.drop(life.ticket, at)
        self._take(life, places, at)
        self._scatter.stale = True
        if life.phase is Phase.RUNNING:
            self._doing.work(life, self.lives, at)

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
        self._scatter.stale = True
        if life.phase is Phase.RUNNING:
            self._doing.work(life, self.lives, at)

    def _started(self, event: Started, at: int) -> None:
        self._turn(event.job, event.attempt, News.STARTED, at)

    def _refused(self, event: StartRefused, at: int) -> None:
        self._turn(event.job, event.attempt, News.REFUSED, at)

    def _stopping(self, event: Stopping, at: int) -> None:
        self._turn(event.job, event.attempt, News.STOPPING, at)

    def _evicting(self, event: Evicting | Resizing, at: int) -> None:
        life = self._turn(event.job, event.attempt, News.EVICTED, at)
        if life is not None:
            life.evicting = event
            other = self.lives.open.get(event.for_job) if event.for_job is not None else None
            life.evicted_for_others = other is not None and other.job.queue != life.job.queue

    def _ended(self, event: Ended, at: int) -> None:
        self._turn(event.job, event.attempt, lifecycle.NEWS_OF_OUTCOME[event.outcome], at)

    def _turn(self, job: JobId, attempt: int, news: News, at: int) -> Life | None:
        """Move a job to its next phase, with what it holds and does; None where the news changes nothing."""
        turned = self.lives.turn(job, attempt, news)
        if turned is None:
            return None
        life, before, after = turned
        if before is Phase.PENDING:
            self._quit(life, at)
        if after is Phase.STARTING:
            self._contention.ask(life.asked, at)
            self._scatter.stale = True
        elif after is Phase.RUNNING:
            self.lives.start_attempt(life, self._clock)
            for each in (life, *self._doing.company.others(life.job.id, self.lives)):
                self._doing.work(each, self.lives, at)
        elif after is Phase.STOPPING:
            self._rest(life, at)
        else:
            self._leave(life, after, news, at)
        return life

    def _leave(self, life: Life, after: Phase, news: News, at: int) -> None:
        """An attempt, or a job that never started, is over."""
        self._rest(life, at)
        self.lives.end(life, after, self._clock)
        if life.ticket is not None:
            self.claims.drop(life.ticket, at)
            life.ticket = None
        for hold in life.holds:
            self.machines.release(hold, at)
        if self._watcher is not None:
            self._watcher.over(life, after, at)
        if life.holds:
            life.holds = []
            self._doing.hold(life, at)
            self._share(self._doing.company.leave(life.job.id, self._placements, self.lives), at)
            del self._placements[life.job.id]
            self._scatter.stale = True
            self._contention.ask(-life.asked, at)
            self._holding -= 1
            if not self._holding:
                self._emptied = at, self.sums.until(at)
        if after is Phase.PENDING:
            self.lives.requeue(life, news, self._clock)
            self._enter(life, at)
        else:
            self._close(life, after, at)

    def _close(self, life: Life, after: Phase, at: int) -> None:
        """A job is over, and who waited for nothing else is ready."""
        offer = self._offers.get(life.job.id)
        span = at - max(life.ready_ms, self.start)
        contention = self._contention.average(life.contention, span, at)
        work = offer.work_ms if offer is not None else None
        for freed in self.lives.close(life, after, self._clock, contention, work):
            freed.ready_ms = self._clock
            self._ready(freed, at)

    def _rest(self, life: Life, at: int) -> None:
        self.lives.stop(life, self._clock)
        self._doing.rest(life, self.lives, at)

    def _enter(self, life: Life, at: int) -> None:
        """A job waits; unless it waits for other jobs, for nothing but its turn and room."""
        self._queue(1, at)
        life.waits_ms = self._clock
        if not life.edges:
            self._ready(life, at)

    def _ready(self, life: Life, at: int) -> None:
        """A waiting job could start from now on, as far as other jobs are concerned."""
        life.since_ready_ms = at
        self._inversions.enter(life.job)
        self._scatter.count(life.pieces, 1)
        if not self._fitting.holds_back(life):
            self._want(life, at)

    def _want(self, life: Life, at: int) -> None:
        """It waits for nothing but its turn and room: it is demand."""
        self._contention.ask(life.asked, at)
        if life.contention is None:
            life.contention = self._contention.until(at)
        life.ticket = self.claims.want(life.job, at)
        self._crowds.press(life.job.queue, 1, at)

    def _quit(self, life: Life, at: int) -> None:
        """A job waits no more."""
        self._queue(-1, at)
        if life.ticket is not None:
            self.claims.drop(life.ticket, at)
            life.ticket = None
            self._contention.ask(-life.asked, at)
            self._crowds.press(life.job.queue, -1, at)
        elif not self._fitting.forget(life):
            return
        self._inversions.leave(life.job)
        self._scatter.count(life.pieces, -1)
        if life.is_scattered(at):
            life.scattered = True
            life.cell.scattered += 1

    def _queue(self, change: int, at: int) -> None:
        """One job more or less waits; what lasts for an instant only is no queue."""
        waiting = self.sums.waiting_jobs
        if at > waiting.since:
            self._most_waiting = max(self._most_waiting, waiting.value)
        waiting.add(change, at)


_FOLD: dict[type, Callable[..., None]] = {
    NodeJoined: Meter._joined,
    NodeLost: Meter._lost,
    NodeDrained: Meter._drained,
    CardsFaulty: Meter._faulty,
    CardsCrowded: Meter._crowded,
    JobSubmitted: Meter._submitted,
    JobCancelled: Meter._cancelled,
    Granted: Meter._granted,
    Moved: Meter._moved,
    Resized: Meter._resized,
    Started: Meter._started,
    StartRefused: Meter._refused,
    Stopping: Meter._stopping,
    Evicting: Meter._evicting,
    Resizing: Meter._evicting,
    Ended: Meter._ended,
}
