"""A world told as a story: nodes join, jobs are submitted, things happen; every event is kept.

    site = WorldBuilder().node("n1", 8).submit("j1", cards=8).placed().running("j1")
    site.free_cards == 0

Placing goes the real way: `first_fit` on a snapshot, `commit.check`, then fold. `events` is the journal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

from aliquot.core import commit
from aliquot.core.commit import Verdict
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
    Outcome,
    Started,
    StartRefused,
    Stopping,
)
from aliquot.core.grants import Grant, GrantState, Placement
from aliquot.core.ids import CardId, JobId
from aliquot.core.inventory import Node
from aliquot.core.jobs import Request
from aliquot.core.lifecycle import Phase
from aliquot.core.records import Frozen, JobRecord
from aliquot.core.steps import Move, Place, Plan, Step
from aliquot.core.world import World
from tests.support.build import a_job, a_node, node_id
from tests.support.first_fit import first_fit
from tests.support.invariants import broken_rules
from tests.support.same import rows_of


class WorldBuilder:
    """A world, the time, and every event so far. Invariants are checked after each of them."""

    def __init__(self, *, window: int = 2000, quantile_milli: int = 0) -> None:
        self._made = {"window": window, "quantile_milli": quantile_milli}
        self.world = World(**self._made)
        self.events: list[Event] = []
        self.at = 0
        self.verdict = Verdict(())

    # --- what happens ----------------------------------------------------------------------------------

    def happen(self, *events: Event) -> Self:
        """Fold events, and check what must always hold."""
        for event in events:
            self.events.append(event)
            self.world.apply(event)
            broken = broken_rules(self.world.freeze())
            assert broken == [], f"after {event}: {broken}"
        return self

    def later(self, ms: int) -> Self:
        """Time passes."""
        self.at += ms
        return self

    def node(self, name: str | Node, cards: int | Sequence[str] = 8, **how: Any) -> Self:
        """A node joins, or reports anew."""
        node = name if isinstance(name, Node) else a_node(name, cards, **how)
        return self.happen(NodeJoined(self.at, node))

    def nodes(self, count: int, cards: int = 8, **how: Any) -> Self:
        """`count` nodes n0, n1, ... join."""
        for number in range(count):
            self.node(f"n{number}", cards, **how)
        return self

    def lose(self, name: str) -> Self:
        """A node stops answering."""
        return self.happen(NodeLost(self.at, node_id(name)))

    def drain(self, name: str, drained: bool = True) -> Self:
        """No new work for a node, or work again."""
        return self.happen(NodeDrained(self.at, node_id(name), drained))

    def faulty(self, name: str, *cards: str) -> Self:
        """The complete set of a node's bad cards."""
        return self.happen(CardsFaulty(self.at, node_id(name), tuple(map(CardId, cards))))

    def submit(self, name: str, request: Request | Iterable[Request] | None = None, **how: Any) -> Self:
        """A job arrives now; in order of calls where times are equal."""
        job = a_job(name, request, at=self.at, seq=len(self.events), **how)
        return self.happen(JobSubmitted(self.at, job))

    def cancel(self, name: str) -> Self:
        """Its owner gives a job up."""
        return self.happen(JobCancelled(self.at, JobId(name)))

    def started(self, name: str, attempt: int | None = None) -> Self:
        """The engine confirms the job's present attempt, or the one given."""
        return self.happen(Started(self.at, JobId(name), self._attempt(name, attempt)))

    def refused(self, name: str, attempt: int | None = None, reason: str = "in use") -> Self:
        """A node turns the job's attempt away."""
        return self.happen(StartRefused(self.at, JobId(name), self._attempt(name, attempt), reason))

    def stopping(self, name: str, attempt: int | None = None) -> Self:
        """The work is over, the processes are not."""
        return self.happen(Stopping(self.at, JobId(name), self._attempt(name, attempt)))

    def ended(
        self,
        name: str,
        outcome: Outcome = Outcome.SUCCEEDED,
        attempt: int | None = None,
        *,
        unseen: bool = False,
    ) -> Self:
        """The processes are gone."""
        return self.happen(Ended(self.at, JobId(name), self._attempt(name, attempt), outcome, unseen))

    def granted(self, name: str, *placements: Placement) -> Self:
        """Grant by hand, through commit, which must agree."""
        self.check(Place(JobId(name), self._attempt(name, None), placements))
        assert self.verdict.refused == ()
        return self

    def moved(self, name: str, placement: Placement, member: int = 0) -> Self:
        """Move by hand, through commit, which must agree."""
        self.check(Move(JobId(name), self._attempt(name, None), member, placement))
        assert self.verdict.refused == ()
        return self

    def placed(self) -> Self:
        """One cycle of first fit, committed."""
        return self.check(*first_fit(self.frozen, self.at).steps)

    def check(self, *steps: Step, seen: Frozen | None = None) -> Self:
        """Commit a plan made on `seen` (by default now), and fold what was accepted."""
        plan = Plan((seen or self.frozen).version, steps)
        self.verdict = commit.check(plan, self.world.freeze(), self.at)
        return self.happen(*self.verdict.events)

    # --- what is -----------------------------------------------------------------------------------------

    @property
    def frozen(self) -> Frozen:
        """The world now."""
        return self.world.freeze()

    @property
    def waiting(self) -> list[str]:
        """Jobs in the queue, in its order."""
        return [key[-1] for key in self.frozen.pending]

    @property
    def holding(self) -> list[str]:
        """Jobs with grants, sorted."""
        return sorted(self.world.grants)

    @property
    def free_cards(self) -> int:
        """Cards on which nothing is booked and that may be used."""
        return sum(row["idle"].bit_count() for row in rows_of(self.frozen))

    def job(self, name: str) -> JobRecord:
        """What the world knows of a job."""
        return self.world.jobs[JobId(name)]

    def phase(self, name: str) -> Phase | None:
        """Its phase, None where it is over or was never there."""
        record = self.world.jobs.get(JobId(name))
        return record.phase if record else None

    def grant(self, name: str, member: int = 0) -> Grant:
        """What a member of a job holds."""
        return self.world.grants[JobId(name)][member]

    def states(self, name: str) -> list[GrantState]:
        """The state of each of a job's grants."""
        return [grant.state for grant in self.world.grants.get(JobId(name), ())]

    def row(self, name: str) -> dict[str, Any]:
        """The columns of a node."""
        return rows_of(self.frozen)[self.world.nodes[node_id(name)].row]

    def is_strained(self, name: str) -> bool:
        """Whether the node offers less than it has minus what is booked."""
        return self.world.nodes[node_id(name)].row in self.frozen.strained

    def granted_events(self) -> list[Granted]:
        """Every grant ever recorded."""
        return [event for event in self.events if isinstance(event, Granted)]

    def moved_events(self) -> list[Moved]:
        """Every move ever recorded."""
        return [event for event in self.events if isinstance(event, Moved)]

    def rebuilt(self) -> World:
        """A second world from the same events."""
        world = World(**self._made)
        world.apply_all(self.events)
        return world

    def _attempt(self, name: str, attempt: int | None) -> int:
        return attempt if attempt is not None else self.job(name).attempt


def racks(*sizes: int, cards: int = 8) -> WorldBuilder:
    """Racks r0, r1, ... of so many nodes r0-0, r0-1, ... each."""
    site = WorldBuilder()
    for rack, size in enumerate(sizes):
        for number in range(size):
            site.node(a_node(f"r{rack}-{number}", cards, rack=f"r{rack}"))
    return site
