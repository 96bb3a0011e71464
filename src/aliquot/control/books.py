"""What is on record of a live site's jobs, and who may know and change what of it.

Reading looks at values that are never changed, so it holds nothing up and may be done in any thread. Everyone
sees every job; what a job runs, prints and becomes is up to its owner and to root.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from aliquot.control.arrays import body_id
from aliquot.control.card_views import CardView, Excess, TakenCard
from aliquot.control.chronicle import Chronicle, Life
from aliquot.control.end_views import GivenUp
from aliquot.control.errors import ConflictError, ForbiddenError
from aliquot.control.giving_up import given_up
from aliquot.control.kept import Kept, decode_kept
from aliquot.control.listing import card_views, describe, list_jobs, peak_of, taken_cards, where_it_stands
from aliquot.control.looking import Lookout
from aliquot.control.naming import no_job
from aliquot.control.parts import Parts
from aliquot.control.progress import ProgressBoard, Whose
from aliquot.control.quotas import queue_views
from aliquot.control.reservation_views import ReservationView
from aliquot.control.reserving import find_strangers, reservation_views
from aliquot.control.views import (
    Accepted,
    Caller,
    InForce,
    JobDetail,
    JobSummary,
    Progress,
    QueueView,
)
from aliquot.control.watching import Watch
from aliquot.control.words import quoted
from aliquot.core.errors import NotFoundError
from aliquot.core.health import Fault, Reading
from aliquot.core.ids import CardId, JobId, NodeId
from aliquot.core.lifecycle import Phase
from aliquot.core.records import Frozen
from aliquot.core.windows import Inside


class Books:
    """All of it; whoever keeps it up to date sets `frozen`, the world as recorded, and `lookout`."""

    frozen: Frozen
    lookout: Lookout

    def __init__(self, parts: Parts) -> None:
        self.parts, self.rules = parts, parts.rules
        self.chronicle = Chronicle(self._kept_of, parts.exits, self._forget)
        self.progress = ProgressBoard(parts.clock.now, self._whose, lambda uid: uid in {0, parts.uid})
        self.watch: Watch | None = None

    def accepted(self, job: str) -> Accepted:
        """What is known of a job, or by its first of an array, that was just accepted."""
        lives = self.lives(job)
        return replace(where_it_stands(lives[0], self.frozen, self.lookout), id=job, jobs=len(lives))

    def is_foreseen(self, job: str) -> bool:
        """Whether the last look ahead knows of it, or it does not wait."""
        life = self.lives(job)[0]
        return life.phase is not Phase.PENDING or life.job.id in self.lookout.seen.table

    def jobs(
        self,
        *,
        over: bool = True,
        owner: int | None = None,
        most: int | None = None,
        folded: bool = False,
        array: str = "",
    ) -> list[JobSummary]:
        """Jobs in order of submission, newest last; the last `most` of those asked for.

        `folded`: one row for each array. `array`: only its jobs. Raises NotFoundError.
        """
        lives = self.lives(array) if array else list(self.chronicle.lives.values())
        table, name = self.lookout.seen.table, self.parts.user_name
        return list_jobs(lives, name, table, over=over, owner=owner, most=most, folded=folded)

    def job(self, caller: Caller, job: str) -> JobDetail:
        """All about one job. Raises NotFoundError."""
        life = self.chronicle.in_full(self.life(job))
        is_own = self._may_control(caller, life)
        kept = self._kept_of(body_id(life.job.id)) if is_own else None
        output = None
        if is_own and life.attempts:
            output = str(self.parts.output(life.job.id, life.attempts[-1].number, 0))
        progress = self._progress_of(life) if is_own else ()
        grants = self.frozen.grants.get(life.job.id, ())
        unenforced = self.parts.unenforced(life.job.id, tuple(grant.placement for grant in grants))
        detail = describe(
            life, self.frozen, self.parts.user_name, kept, output, progress, unenforced, self.lookout
        )
        excesses = () if detail.is_over else self._excesses().get(life.job.id, ())
        return replace(detail, excesses=excesses, given_up=self._given_up(life))

    def _given_up(self, life: Life) -> GivenUp | None:
        return given_up(life, self.chronicle.lives.get, self.parts.user_name)

    def output(self, caller: Caller, job: str, attempt: int | None, member: int) -> Path | None:
        """Where the output of one member goes; None before the first attempt. Raises as `cancel`."""
        life = self.own(caller, job)
        if not life.attempts:
            return None
        return self.parts.output(life.job.id, attempt or life.attempts[-1].number, member)

    def cards(self) -> list[CardView]:
        """Every card, what is granted of it and how it is used."""
        lives = self.chronicle.lives
        return card_views(
            self.frozen,
            lambda job: _owner_name(lives.get(job), self.parts.user_name),
            self._readings(),
            self.parts.user_of_pid,
            self._excesses(),
            self._faults(),
        )

    def taken(self) -> tuple[TakenCard, ...]:
        """What of the cards is taken by no grant, and by whom."""
        return taken_cards(self.frozen, self._readings(), self.parts.user_of_pid, self._faults())

    def queues(self) -> list[QueueView]:
        """Every queue that is configured or in use."""
        seen = self.lookout.seen
        lives = list(self.chronicle.lives.values())
        now = self.parts.clock.now()
        return queue_views(self.frozen, self.rules.settings, lives, now, seen.promises, seen.crowding)

    def reservations(self) -> list[ReservationView]:
        """Every reservation in force that is not over."""
        return reservation_views(self.frozen.closures, self.rules, self.parts.clock.now(), self._strangers)

    def _strangers(self, inside: Inside) -> tuple[str, ...]:
        """Who of those let in is nobody here; where no queue is configured, any name is one."""
        queues = {queue.name for queue in self.rules.settings.queues}
        lives, arrays = self.chronicle.lives, self.chronicle.arrays
        return find_strangers(
            inside,
            self.parts.is_user,
            lambda name: not queues or name in queues,
            lambda name: (
                name in arrays or ((life := lives.get(JobId(name))) is not None and life.over_ms is None)
            ),
        )

    def life(self, job: str) -> Life:
        """The life of a job, or NotFoundError."""
        life = self.chronicle.lives.get(JobId(job))
        if life is not None:
            return life
        array = list(self.chronicle.arrays.get(job, ()))
        if array:
            raise NotFoundError(f"{job} is an array; its jobs are {array[0]} to {array[-1]}")
        raise no_job(job, self.chronicle.lives.values())

    def lives(self, job: str) -> list[Life]:
        """The life of a job, or of all of an array, or NotFoundError."""
        array = self.chronicle.arrays.get(job)
        lives = self.chronicle.lives
        found = [lives[one] for one in list(array or ()) if one in lives]
        return found or [self.life(job)]

    def own(self, caller: Caller, job: str) -> Life:
        """The same where the caller may control it, else ForbiddenError."""
        return self._owned(caller, [self.life(job)])[0]

    def owned(self, caller: Caller, job: str) -> list[Life]:
        """The same of a job or an array."""
        return self._owned(caller, self.lives(job))

    def find_place(self, name: str) -> NodeId | CardId:
        """A node by its name, or a card by its UUID or its number on the only node. Raises NotFoundError."""
        nodes = self.frozen.nodes
        node = next((node for node in nodes if name in {str(node), node.name}), None)
        if node is not None:
            return node
        cards = [card.uuid for record in nodes.values() for card in record.node.cards]
        if name in cards:
            return CardId(name)
        if len(nodes) == 1 and (at := {str(number): card for number, card in enumerate(cards)}.get(name)):
            return at
        there = ", ".join(sorted(str(node) for node in nodes))
        raise NotFoundError(
            f"no node or card {quoted(name)}; there is {there or 'none'}, 'aliquot gpus' lists cards"
        )

    def is_out(self, name: str) -> bool:
        """Whether a card takes no work; of a node always, since to say so twice is no mistake."""
        found = self.find_place(name)
        return isinstance(found, NodeId) or self.watch is None or self.watch.is_out(CardId(found))

    def is_admin(self, caller: Caller) -> bool:
        """Root, and whoever runs the service."""
        return caller.uid in {0, self.parts.uid}

    def must_administer(self, caller: Caller) -> None:
        """ForbiddenError for everyone else."""
        if not self.is_admin(caller):
            raise ForbiddenError("only root, and whoever runs the service, may do this")

    def in_force(self) -> InForce:
        """What the service goes by."""
        rules = self.rules
        queues = tuple(queue.name for queue in rules.settings.queues)
        return InForce(rules.policy, queues, rules.configuration, rules.notes)

    def _readings(self) -> Mapping[CardId, Reading]:
        return {} if self.watch is None else self.watch.readings()

    def _faults(self) -> Mapping[CardId, Fault]:
        return {} if self.watch is None else self.watch.faults()

    def _excesses(self) -> Mapping[JobId, tuple[Excess, ...]]:
        return {} if self.watch is None else self.watch.excesses()

    def _progress_of(self, life: Life) -> tuple[Progress, ...]:
        if not life.attempts:
            return ()
        last = life.attempts[-1]
        world = self.frozen
        return self.progress.of(life.job.id, last.number, lambda member: peak_of(world, last.holds[member]))

    def _whose(self, job: JobId) -> Whose | None:
        life = self.chronicle.lives.get(job)
        if life is None or life.over_ms is not None or not life.attempts:
            return None
        last = life.attempts[-1]
        return Whose(life.owner, last.number, len(last.holds))

    def _forget(self, jobs: Sequence[JobId]) -> None:
        """On a full disk what lies beside old jobs stays; the events seen are on record all the same."""
        with contextlib.suppress(*self.parts.passing):
            self.parts.record.forget(jobs)

    def _kept_of(self, job: JobId) -> Kept | None:
        body = self.parts.record.payload(job)
        return None if body is None else decode_kept(body)

    def _owned(self, caller: Caller, lives: list[Life]) -> list[Life]:
        life = lives[0]
        if not self._may_control(caller, life):
            owner = "nobody known" if life.owner is None else self.parts.user_name(life.owner)
            raise ForbiddenError(f"job {life.job.id} belongs to {owner}; only its owner and root may do this")
        return lives

    def _living(self, caller: Caller, job: str) -> list[Life]:
        """Of a job or an array what is not over; ConflictError where all of it is."""
        lives = self.owned(caller, job)
        living = [life for life in lives if life.over_ms is None]
        if not living:
            raise ConflictError(f"job {job} is over already: {lives[-1].phase.value}")
        return living

    def _may_control(self, caller: Caller, life: Life) -> bool:
        return self.is_admin(caller) or caller.uid == life.owner


def _owner_name(life: Life | None, name: Callable[[int], str]) -> str:
    return "" if life is None or life.owner is None else name(life.owner)
