"""Reservations that people ask a service for, without processes: who may, what is kept, what comes of it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from aliquot.control.errors import ConflictError, ForbiddenError, UnavailableError
from aliquot.control.parts import Rules
from aliquot.control.reservation_views import Reservation
from aliquot.control.views import Configuration
from aliquot.core.errors import NotFoundError
from aliquot.core.settings import Settings
from tests.control.test_service import ANN, PATIENCE_S, ROOT, Stage
from tests.support.local import wait_for

ASKED = Reservation("driver", {})


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = Stage()
    yield made
    made.service.stop()


def names(stage: Stage) -> list[str]:
    """Of the reservations in force."""
    return [view.name for view in stage.service.reservations()]


def reserved(stage: Stage) -> Stage:
    """With one in force."""
    stage.service.reserve(ROOT, ASKED).result(PATIENCE_S)
    wait_for(lambda: names(stage) == ["driver"], "the reservation", PATIENCE_S)
    return stage


def test_it_is_on_the_disk_and_in_force_and_jobs_wait_until_it_is_taken_back(stage: Stage) -> None:
    reserved(stage)
    (kept,) = stage.record.documents
    assert [window.name for window in msgspec.json.decode(kept, type=Configuration).reserved] == ["driver"]
    job = stage.submit()
    assert stage.phase(job) == "pending"
    stage.service.unreserve(ROOT, "driver").result(PATIENCE_S)
    stage.until(job, "running")
    assert names(stage) == []


def test_only_who_runs_the_service_and_root_may(stage: Stage) -> None:
    with pytest.raises(ForbiddenError):
        stage.service.reserve(ANN, ASKED)
    with pytest.raises(ForbiddenError):
        stage.service.unreserve(ANN, "driver")
    assert stage.record.documents == []


def test_a_full_disk_reserves_nothing(stage: Stage) -> None:
    stage.record.is_full = True
    with pytest.raises(UnavailableError) as refused:
        stage.service.reserve(ROOT, ASKED).result(PATIENCE_S)
    assert refused.value.is_full
    stage.record.is_full = False
    assert names(stage) == []
    with pytest.raises(NotFoundError):
        stage.service.unreserve(ROOT, "driver").result(PATIENCE_S)


def test_a_name_is_taken_once_and_is_free_again_at_once(stage: Stage) -> None:
    first = stage.service.reserve(ROOT, ASKED)
    second = stage.service.reserve(ROOT, ASKED)
    gone = stage.service.unreserve(ROOT, "driver")
    first.result(PATIENCE_S)
    with pytest.raises(ConflictError):
        second.result(PATIENCE_S)
    gone.result(PATIENCE_S)
    job = stage.submit()
    stage.until(job, "running")
    assert names(stage) == [], "asked for and taken back in one turn, it is not in force"


def test_other_documents_leave_it_and_so_does_what_a_caller_says_is_reserved(stage: Stage) -> None:
    reserved(stage)
    stage.settle = lambda asked: Rules("other", Settings(engine="python"), asked)
    stage.service.apply(ROOT, Configuration(policy="other")).result(PATIENCE_S)
    assert names(stage) == ["driver"]
    assert [window.name for window in stage.service.in_force().configuration.reserved] == ["driver"]
