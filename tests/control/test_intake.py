"""The door to the loop: what is taken up in a turn, and who is told what when the record refuses."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from aliquot.control.errors import UnavailableError
from aliquot.control.intake import SLICE, Intake, Submitted
from aliquot.core.events import Event, JobCancelled, JobSubmitted
from aliquot.core.ids import JobId
from aliquot.core.steps import Work
from aliquot.core.world import World
from tests.support.build import a_job

NEW = Submitted([a_job("new")], b"")


class Machine:
    """Tells nothing; counts who woke it."""

    resizes_in_place = False
    woken = 0

    def tell(self, *events: Event) -> None:
        self.woken += 1

    def wait(self, until: int | None = None) -> None:
        """At once."""

    def resume(self, world: World) -> None:
        """Nothing to take up."""

    def observe(self) -> Sequence[Event]:
        return []

    def carry_out(self, steps: Sequence[Work]) -> None:
        """Nothing to do."""


def an_intake() -> tuple[Intake, Machine]:
    machine = Machine()
    return Intake(machine, lambda: 7, lambda job, body: None), machine


def gone(count: int) -> list[Event]:
    return [JobCancelled(0, JobId(str(at))) for at in range(count)]


def test_many_decisions_are_taken_up_in_slices_and_others_get_their_turn_in_between() -> None:
    intake, machine = an_intake()
    answer = intake.tell_apart(gone(2 * SLICE + 5))
    seen = []
    for turn in range(3):
        if turn == 1:
            (other,) = intake.submit_all([NEW])
        before = machine.woken
        events = intake.observe()
        assert (machine.woken > before) is (turn < 2), "while some are left, the next turn is at once"
        seen.append(len(events))
        assert not answer.done()
        intake.see(events, World())
    assert other.result(0) == "1"
    assert seen == [SLICE, SLICE + 1, 5]
    assert answer.done()


def test_what_is_new_is_refused_alone_and_the_rest_is_offered_again() -> None:
    intake, _ = an_intake()
    (new,) = intake.submit_all([NEW])
    cancelled = intake.tell(*gone(1))
    assert [type(event) for event in intake.observe()] == [JobSubmitted, JobCancelled]
    assert intake.refuse_new(UnavailableError("full", is_full=True))
    with pytest.raises(UnavailableError):
        new.result(0)
    assert not cancelled.done()
    events = intake.observe()
    assert [type(event) for event in events] == [JobCancelled]
    intake.see(events, World())
    assert cancelled.done()
    assert not intake.refuse_new(UnavailableError("full", is_full=True)), "nothing new is left to refuse"


def test_slices_that_the_record_refuses_are_refused_with_the_rest() -> None:
    intake, _ = an_intake()
    answer = intake.tell_apart(gone(SLICE + 1))
    intake.observe()
    intake.refuse(UnavailableError("full", is_full=True))
    with pytest.raises(UnavailableError):
        answer.result(0)
    assert list(intake.observe()) == []
