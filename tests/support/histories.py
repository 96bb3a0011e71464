"""Random histories of a site: what nodes, owners and engines may report, in any order, and plans in between.

The choices come from a `random.Random`, so hypothesis can make and shrink a history and a plain seed can
repeat one. Events are only those a real engine could send, plus late and repeated ones; grants and moves come
only from `commit`, on plans that may have been made on an old snapshot.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from msgspec.structs import replace

from aliquot.core import commit
from aliquot.core.demand import next_epoch
from aliquot.core.draft import Draft
from aliquot.core.events import (
    CardsCrowded,
    CardsFaulty,
    Ended,
    Event,
    Idle,
    JobCancelled,
    JobSubmitted,
    NodeDrained,
    NodeJoined,
    NodeLost,
    Outcome,
    Searched,
    Started,
    StartRefused,
    Stopping,
    WindowCancelled,
    WindowMade,
)
from aliquot.core.hosting import companies, invite
from aliquot.core.ids import CardId, JobId
from aliquot.core.inventory import Card, Node
from aliquot.core.jobs import After, Array, Elastic, Request, When
from aliquot.core.lifecycle import Phase
from aliquot.core.records import Frozen
from aliquot.core.settings import MixSource, Settings
from aliquot.core.steps import (
    Cause,
    Company,
    Evict,
    Kill,
    Move,
    Place,
    Plan,
    Reserve,
    Resize,
    Start,
    Step,
    Tidy,
    Unreserve,
    Warn,
    Withdraw,
)
from aliquot.core.together import Together
from aliquot.core.topology.wiring import pcie, uniform
from aliquot.core.windows import Window
from aliquot.core.world import World
from tests.support.build import H100, L40S, T4, a_job, a_node, a_request
from tests.support.first_fit import as_placement, first_fit, seats_for

SHAPES: tuple[Callable[[str], Node], ...] = (
    lambda name: a_node(name, 2, model=T4, cpu=8_000, host=32_000),
    lambda name: a_node(name, 4, model=L40S, cpu=16_000, host=64_000, numa=2, wiring=pcie(4, 2, 2)),
    lambda name: a_node(name, 8, model=H100, cpu=32_000, host=256_000, numa=2, wiring=uniform(8, 18)),
    lambda name: a_node(name, 0, cpu=8_000, host=16_000),
)
REQUESTS: tuple[tuple[Request, ...], ...] = (
    (a_request(1, cpu=1_000, host=1_000),),
    (a_request(4, cpu=5_000, host=9_001, traffic=700),),
    (a_request(8),),
    (a_request(1, memory=2_000, cpu=500),),
    (a_request(1, memory=15_356),),
    (a_request(2, compute=300, traffic=100),),
    (a_request(1, memory=1_000, compute=1_000),),
    (a_request(0, cpu=3_000, host=8_000),),
    (a_request(3), a_request(5)),
    (a_request(1, compute=250), a_request(1, compute=250), a_request(0, cpu=2_000)),
)
MIX = Settings(mix_source=MixSource.WINDOW, mix_window=6, mix_epoch=4, seed=5)


class History:
    """One site living through `step`s. `events` is its journal; `accepted` counts what commit let through."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.at = 0
        self.world = World(window=MIX.mix_window)
        self.events: list[Event] = []
        self.stale: list[Frozen] = [self.world.freeze()]
        self.accepted = 0
        self._names = 0
        for _ in range(2):
            self._join()

    def step(self) -> None:
        """One thing happens, often than not a job or a plan."""
        self.at += self.random.randrange(1, 2_000)
        self.random.choice(_HAPPENINGS)(self)

    def run(self, steps: int) -> History:
        """`steps` things happen."""
        for _ in range(steps):
            self.step()
        return self

    def rebuilt(self, until: int | None = None) -> World:
        """A world from the first `until` events of the journal."""
        world = World(window=MIX.mix_window)
        world.apply_all(self.events[:until])
        return world

    def record(self, *events: Event) -> None:
        """Journal, then fold."""
        for event in events:
            self.events.append(event)
            self.world.apply(event)

    # --- nodes -----------------------------------------------------------------------------------------

    def _join(self) -> None:
        self._names += 1
        self.record(NodeJoined(self.at, self.random.choice(SHAPES)(f"n{self._names}")))

    def _report_anew(self) -> None:
        """A node comes back, whole or smaller, or with another board in one slot."""
        node = self._some_node()
        change = self.random.randrange(5)
        if change == 0 and node.cards:
            node = replace(node, cards=node.cards[: self.random.randrange(len(node.cards))], wiring=None)
        elif change == 1 and node.cards:
            node = replace(node, cards=_swapped(node.cards, self.random.randrange(len(node.cards)), self.at))
        elif change == 2:
            node = replace(node, cpu_milli=node.cpu_milli // 2, host_mib=node.host_mib // 2)
        elif change == 3 and node.cards:
            worn = replace(node.cards[0].model, reserved_mib=node.cards[0].model.memory_mib // 2)
            node = replace(node, cards=(replace(node.cards[0], model=worn), *node.cards[1:]))
        elif change == 4:
            node = SHAPES[self.random.randrange(len(SHAPES))](node.id.name)
        self.record(NodeJoined(self.at, node))

    def _lose(self) -> None:
        self.record(NodeLost(self.at, self._some_node().id))

    def _drain(self) -> None:
        self.record(NodeDrained(self.at, self._some_node().id, self.random.random() < 0.5))

    def _faulty(self) -> None:
        node = self._some_node()
        bad = tuple(card.uuid for card in node.cards if self.random.random() < 0.3)
        self.record(CardsFaulty(self.at, node.id, bad))
        taken = tuple((card.uuid, 100, 1_000) for card in node.cards if self.random.random() < 0.2)
        self.record(CardsCrowded(self.at, node.id, taken))

    def _close(self) -> None:
        """Somebody wants a node, or some of its cards, for a while; or does not want them any more."""
        name = self.random.choice(("v", "w"))
        if self.random.random() < 0.3:
            self.record(WindowCancelled(self.at, name))
            return
        node = self._some_node()
        begins = self.at + self.random.randrange(3_000)
        window = Window(
            name,
            begins,
            begins + self.random.randrange(1, 4_000),
            nodes=(node.id,),
            count=self.random.choice((None, 1)) if node.cards else None,
            grace_ms=self.random.choice((None, 500)),
        )
        self.record(WindowMade(self.at, window))

    def _some_node(self) -> Node:
        return self.world.nodes[self.random.choice(self.world.node_at)].node

    # --- owners ----------------------------------------------------------------------------------------

    def _submit(self) -> None:
        self._names += 1
        elastic = self.random.random() < 0.4
        job = a_job(
            f"j{self._names}",
            REQUESTS[-1] if elastic else self.random.choice(REQUESTS),
            at=self.at,
            seq=self._names,
            priority=self.random.randrange(2),
            queue=self.random.choice(("", "a", "a/b")),
            after=tuple(
                After(self._some_job(), self.random.choice(tuple(When)))
                for _ in range(self.random.randrange(-2, 2))
            ),
            array=Array("array", 9, 2) if self.random.random() < 0.2 else None,
            elastic=Elastic((1, 2, 3), (1000, 1500, 1600)) if elastic else None,
            together=Together(self.random.choice((100, 4_000)), compute_milli=400, bandwidth_milli=300)
            if self.random.random() < 0.7
            else None,
        )
        self.record(JobSubmitted(self.at, job))

    def _cancel(self) -> None:
        self.record(JobCancelled(self.at, self._some_job(), at_once=self.at % 2 == 1))

    def _some_job(self) -> JobId:
        return JobId(self.random.choice([*sorted(self.world.jobs), f"j{self._names}", "never-heard-of"]))

    # --- engines ---------------------------------------------------------------------------------------

    def _carry_out(self) -> None:
        """The engine answers one outstanding step."""
        steps = self.world.outstanding()
        if not steps:
            return
        step = self.random.choice(steps)
        match step:
            case Start() if self.random.random() < 0.3:
                self.record(StartRefused(self.at, step.job, step.attempt, "in use"))
            case Start() | Move() | Resize():
                self.record(Started(self.at, step.job, step.attempt))
            case Kill():
                self.record(Ended(self.at, step.job, step.attempt, Outcome.FAILED))

    def _wind_up(self) -> None:
        """Some attempt that holds something comes to its end, or near it."""
        held = sorted(self.world.grants)
        if not held:
            return
        job = self.random.choice(held)
        attempt = self.world.jobs[job].attempt
        end = self.random.randrange(4)
        if self.random.random() < 0.3:
            self.record(Idle(self.at, job, attempt, self.random.choice((None, self.at, self.at))))
        elif end == 0:
            self.record(Stopping(self.at, job, attempt))
        else:
            outcome = (Outcome.SUCCEEDED, Outcome.FAILED, Outcome.LOST)[end - 1]
            self.record(Ended(self.at, job, attempt, outcome, unseen=self.at % 2 == 0))

    def _repeat(self) -> None:
        """Old news of owners and engines once more; what a node reports replaces what it was."""
        old = self.random.choice(self.events)
        if isinstance(old, (JobSubmitted, JobCancelled, Started, StartRefused, Stopping, Ended)):
            self.record(old)

    # --- plans -----------------------------------------------------------------------------------------

    def _plan(self) -> None:
        self._commit(self.world.freeze())

    def _plan_late(self) -> None:
        self._commit(self.random.choice(self.stale))

    def _look(self) -> None:
        self.stale = [*self.stale[-3:], self.world.freeze()]

    def _epoch(self) -> None:
        epoch = next_epoch(self.world, MIX, self.at)
        if epoch is not None:
            self.record(epoch, Searched(self.at, tuple(sorted(self.world.jobs))[:2], over=True))

    def _commit(self, seen: Frozen) -> None:
        steps = [
            *_some_moves(seen, self.random),
            *_some_room(seen, self.random, self.at),
            *_some_company(seen, self.random),
            *first_fit(seen, self.at).steps,
            Tidy(self.at),
        ]
        verdict = commit.check(Plan(seen.version, tuple(steps)), self.world.freeze(), self.at)
        self.accepted += len(verdict.events) - 1
        self.record(*verdict.events)


def _some_moves(seen: Frozen, random: Random) -> list[Step]:
    """Up to three moves of what runs, of one grant more than once now and then."""
    draft = Draft(seen)
    moves: list[Step] = []
    held = [grant for job in sorted(seen.grants) for grant in seen.grants[job]]
    for _ in range(random.randrange(4) if held else 0):
        grant = random.choice(held)
        record = seen.nodes[seen.node_at[random.randrange(seen.rows)]]
        job = seen.jobs[grant.id.job]
        seat = seats_for(job.job.members[grant.id.member], record, draft)
        if seat is not None and job.phase in {Phase.RUNNING, Phase.STARTING}:
            draft.book(seat)
            moves.append(Move(grant.id.job, job.attempt, grant.id.member, as_placement(seat, record)))
    return moves


def _some_company(seen: Frozen, random: Random) -> list[Step]:
    """Now and then a waiting job comes to the cards of others; whether it pays is nobody's question here."""
    waiting = [seen.jobs[key[3]] for key in seen.pending if seen.jobs[key[3]].job.may_share]
    groups = list(companies(seen))
    steps: list[Step] = []
    for record in random.sample(waiting, min(len(waiting), 3)):
        open_to_it = [hosts for hosts in groups if invite(seen, hosts, record.job) is not None]
        hosts = random.choice(open_to_it) if open_to_it else ()
        parts = invite(seen, hosts, record.job) if hosts else None
        if parts is not None:
            placements = tuple(
                replace(part, cpu=asked.cpu_milli, host=asked.host_mib)
                for part, asked in zip(parts, record.job.members, strict=True)
            )
            company = Company((*hosts, record.job.id), (1000,) * (len(hosts) + 1), 1000)
            steps.append(Place(record.job.id, record.attempt, placements, company=company))
    return steps


def _swapped(cards: tuple[Card, ...], slot: int, at: int) -> tuple[Card, ...]:
    """Another board in `slot`."""
    new = replace(cards[slot], uuid=CardId(f"{cards[slot].uuid}-swapped-{at}"))
    return (*cards[:slot], new, *cards[slot + 1 :])


_HAPPENINGS: tuple[Callable[[History], None], ...] = (
    *[History._submit] * 5,
    *[History._plan] * 4,
    *[History._carry_out] * 4,
    *[History._wind_up] * 3,
    *[History._plan_late] * 2,
    *[History._look] * 2,
    *[History._repeat] * 2,
    *[History._report_anew] * 2,
    History._join,
    History._lose,
    History._drain,
    History._faulty,
    History._close,
    History._cancel,
    History._epoch,
)


def _some_room(seen: Frozen, random: Random, at: int) -> list[Step]:
    """Now and then somebody is stopped for a waiting job, and what it holds is kept for that one."""
    held = sorted(seen.grants)
    if seen.kept and random.random() < 0.3:
        return [Unreserve(random.choice(seen.kept).job)]
    if seen.idle and random.random() < 0.5:
        job = random.choice(seen.idle)
        return [Warn(job, seen.jobs[job].attempt)]
    wide = [job for job in seen.elastic if len(seen.grants[job]) > 1]
    if wide and random.random() < 0.6:
        job = random.choice(wide)
        halved = tuple(grant.placement for grant in seen.grants[job])[: random.randrange(1, 3)]
        return [Resize(job, seen.jobs[job].attempt, halved, restart=at % 2 == 0)]
    if not held or not seen.pending or random.random() < 0.5:
        return []
    victim, waiting = random.choice(held), random.choice(seen.pending)[3]
    placements = tuple(grant.placement for grant in seen.grants[victim])
    cause = random.choice(tuple(Cause))
    return [
        Reserve(waiting, placements, at, at + 5_000, firm=random.random() < 0.5),
        Evict(victim, seen.jobs[victim].attempt, cause, waiting, grace_ms=random.randrange(3)),
        *([Unreserve(random.choice(seen.kept).job)] if seen.kept else []),
        *([Withdraw(random.choice(seen.pending)[3], "never")] if random.random() < 0.2 else []),
    ]
