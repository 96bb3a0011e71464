"""Questions about a job that the loop's thread answers: it alone may use what the planner remembers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final, TypeVar

from msgspec.structs import replace

from aliquot.control.books import Books
from aliquot.control.explaining import explain_live
from aliquot.control.loop import Loop
from aliquot.control.never import Nevers
from aliquot.control.parts import Parts
from aliquot.control.views import LiveExplanation
from aliquot.core.ids import JobId
from aliquot.core.jobs import Job
from aliquot.core.lifecycle import Phase
from aliquot.core.steps import Gate, Never, Place

_OF_ROOM: Final = frozenset(
    {Gate.ORDER, Gate.RESERVATION, Gate.FIT, Gate.GANG, Gate.TOPOLOGY, Gate.FRAGMENTATION}
)
"""Gates at which it matters what of the cards is taken by nobody's grant."""
_T = TypeVar("_T")


class Answering(Books):
    """Whoever has the loop asks it through `_do`, and calls `_note_places` after its turns."""

    loop: Loop

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._places: dict[JobId, Place] = {}
        self._nevers = Nevers()

    def explain(self, job: str) -> Future[LiveExplanation]:
        """Why a job is where it is, or waits; of an array, its first that waits. Raises NotFoundError."""
        lives = self.lives(job)
        life = next((life for life in lives if life.phase is Phase.PENDING), lives[0])
        return self._do(lambda: self._explain(life.job.id))

    def never(self, job: str) -> Future[Never | None]:
        """Why a job that waits, or the first of an array, can't start as things are; None: it may.

        Done at once where it is known of one that asks for the same. Raises NotFoundError.
        """
        life, answer = self.lives(job)[0], Future[Never | None]()
        waits = life.phase is Phase.PENDING
        if waits and not self._nevers.is_known(life.job, self.frozen, self.rules.settings):
            return self._do(lambda: self._never(life.job))
        answer.set_result(self._never(life.job) if waits else None)
        return answer

    @abstractmethod
    def _do(self, errand: Callable[[], _T]) -> Future[_T]:
        """Have the loop's thread do something between two turns. Raises UnavailableError."""

    def _note_places(self) -> None:
        """Keep what choices cost, as long as their jobs live."""
        steps = self.loop.last_plan.steps if self.loop.last_plan is not None else ()
        for step in steps:
            if isinstance(step, Place):
                self._places[step.job] = step
        jobs = self.loop.world.jobs
        if len(self._places) > 2 * len(jobs) + 100:
            self._places = {job: place for job, place in self._places.items() if job in jobs}

    def _explain(self, job: JobId) -> LiveExplanation:
        loop, life = self.loop, self.life(job)
        said = explain_live(
            life, loop.world, self.rules.settings, self.rules.policy,
            self._places.get(job), loop.memo, self.parts.clock.now(), self.lookout,
        )  # fmt: skip  # three lines read better than seven
        if said.wait is None:
            return replace(said, given_up=self._given_up(life))
        wants_cards = any(request.cards for request in life.job.members) and said.wait.gate in _OF_ROOM
        return replace(said, never=self._never(life.job), taken=self.taken() if wants_cards else ())

    def _never(self, job: Job) -> Never | None:
        now = self.parts.clock.now()
        return self._nevers.find(job, self.frozen, self.rules.settings, self.loop.memo, now)
