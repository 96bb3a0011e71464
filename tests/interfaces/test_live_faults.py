"""Faults that other systems had, told to a running service. Numbers such as B01 are of the list of faults.

Those of one subject are with it: watching (B02, B47), queues (B38), failures at each step (B08, B14).
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from aliquot.client import Submission
from aliquot.control.errors import ConflictError
from aliquot.core.errors import SpecError
from aliquot.core.events import Ended, Event, Granted
from aliquot.engines.local.journal import SqliteJournal
from aliquot.engines.local.leftovers import find_supervisors
from aliquot.engines.local.places import find_runtime
from tests.support.local import wait_for
from tests.support.service import LiveService

SHOWN: Final = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "ALIQUOT_CARD_MEMORY_MIB")
SHOW: Final = "; ".join(f"echo {name}=${name}" for name in SHOWN)


@pytest.fixture(scope="module")
def service() -> Iterator[LiveService]:
    with LiveService() as running:
        yield running


def recorded(service: LiveService) -> list[Event]:
    """All that is on record, of a service that is stopped for it."""
    service.stop()
    with SqliteJournal(service.state / "journal.db", durable=False) as journal:
        events = list(journal.replay())
    service.start()
    return events


def shown(service: LiveService, job: str) -> dict[str, str]:
    """The variables that the job printed of itself."""
    lines = service.client.output(job).body.decode().splitlines()
    return dict(line.split("=", 1) for line in lines)


def shares(service: LiveService) -> list[int]:
    """What is free of each card."""
    return [card.free_compute_milli for card in service.client.gpus()]


# --- B01 and B06: whoever waits for a whole machine ------------------------------------------------------

STUBBORN: Final = "trap '' TERM; sleep 60 & sleep 60; sleep 60"


def delete(service: LiveService, job: str) -> None:
    service.client.cancel(job)


def terminate(service: LiveService, job: str) -> None:
    """Its processes end, by nobody of ours."""
    for folder in find_supervisors(find_runtime(service.state) / "attempts"):
        begun = folder.begun()
        if folder.held.job == job and begun is not None:
            os.kill(begun.pid, signal.SIGKILL)


def wait_until_over(service: LiveService, job: str) -> None:
    service.client.wait(job)


def outage(service: LiveService, job: str) -> None:
    """The service is gone; all of the job's processes end meanwhile."""
    service.kill()
    attempts = find_runtime(service.state) / "attempts"
    for folder in find_supervisors(attempts):
        folder.command("kill cancelled")
    wait_for(lambda: not find_supervisors(attempts), "all of it to end")
    service.start()


def late_update(service: LiveService, job: str) -> None:
    """Whatever is still said of it when it is over."""
    for update in (service.client.cancel, lambda name: service.client.signal(name, signal.SIGUSR1)):
        with pytest.raises(ConflictError):
            update(job)


Happening = Callable[[LiveService, str], None]


@pytest.mark.parametrize(
    "news",
    [
        pytest.param([delete, terminate], id="delete, terminate-done"),
        pytest.param([terminate, wait_until_over, late_update], id="terminate-done, delete"),
        pytest.param([delete], id="delete only"),
        pytest.param([delete, outage], id="delete during an outage, then resync"),
        pytest.param([delete, wait_until_over, late_update], id="an update that arrives after delete"),
    ],
)
def test_b01_whoever_comes_next_has_all_cards_as_soon_as_the_last_process_is_gone(
    service: LiveService, news: list[Happening]
) -> None:
    """B01: eight cards, in all five orders, without a restart to help; what is over never comes back."""
    first = service.submit(STUBBORN, gpus=8)
    service.until_running(first)
    second = service.submit("sleep 60", gpus=8)
    for happens in news:
        happens(service, first)
    service.until_running(second)
    over = service.client.job(first)
    assert over.job.phase in {"cancelled", "failed"}
    assert len(over.attempts) == 1
    service.client.cancel(second)
    service.client.wait(second)
    assert shares(service) == [1000] * 8
    events = [event for event in recorded(service) if isinstance(event, (Ended, Granted))]
    ended = max(at for at, event in enumerate(events) if isinstance(event, Ended) and event.job == first)
    granted = [at for at, event in enumerate(events) if isinstance(event, Granted) and event.job == second]
    assert granted == [ended + 1], "in the first cycle after, and in one try"
    assert service.client.job(first).job.phase == over.job.phase


def test_b06_finished_is_not_gone_and_the_next_is_told_what_it_waits_for(service: LiveService) -> None:
    """B06: the work is done, a child has its grace; the next waits for it, and no start is tried in vain."""
    spec = {"gpu": {"count": 8}}
    script = f"({STUBBORN}) & sleep 0.1"
    first = service.client.submit(Submission(command=("sh", "-c", script), spec=spec, grace="60s"))
    wait_for(lambda: service.client.job(first).job.phase == "stopping", "the work to be done")
    second = service.submit("true", gpus=8)
    said = service.run("explain", second).out
    assert "those who hold its room are still ending" in said
    assert f"It waits for {first}." in said
    assert "8 needed, at most 0 free" in said
    assert {use.job for card in service.client.gpus() for use in card.jobs} == {first}
    for folder in find_supervisors(find_runtime(service.state) / "attempts"):
        folder.command("kill test")  # its grace is over
    one, two = service.client.wait(first), service.client.wait(second)
    assert two.job.phase == "succeeded"
    assert len(two.attempts) == 1
    assert (one.attempts[0].ended_ms or 0) <= two.attempts[0].granted_ms


# --- B03 and B51: amounts, units and names ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("gpu", "field"),
    [
        pytest.param({"memory": "0%"}, "spec.gpu.memory", id="no share of memory"),
        pytest.param({"memory": "0MiB"}, "spec.gpu.memory", id="no memory"),
        pytest.param({"memory": 0}, "spec.gpu.memory", id="a bare 0"),
        pytest.param({"memory": -1}, "spec.gpu.memory", id="less than none"),
        pytest.param({"memory": "101%"}, "spec.gpu.memory", id="more than all"),
        pytest.param({"memory": "20"}, "spec.gpu.memory", id="20 of nobody knows what"),
        pytest.param({"memory": "20%"}, "spec.gpu.memory", id="a share, where amounts are meant"),
        pytest.param({"compute": "0%"}, "spec.gpu.compute", id="no compute"),
        pytest.param({"compute": "-1%"}, "spec.gpu.compute", id="less than no compute"),
        pytest.param({"compute": "101%"}, "spec.gpu.compute", id="more compute than all"),
        pytest.param({"count": -1}, "spec.gpu.count", id="less than no card"),
    ],
)
def test_b03_what_comes_to_nothing_or_to_too_much_is_refused_with_its_field(
    service: LiveService, gpu: dict[str, Any], field: str
) -> None:
    """B03: never a grant of 0 that some shim reads as no limit."""
    before = len(service.client.jobs())
    with pytest.raises(SpecError) as caught:
        service.client.submit(Submission(command=("true",), spec={"gpu": gpu}))
    assert caught.value.field == field
    assert len(service.client.jobs()) == before


@pytest.mark.parametrize("gpu", [{}, {"count": 1}], ids=["nothing said", "a count alone"])
def test_b03_and_b51_without_an_amount_a_job_has_one_whole_card_and_sees_it_alone(
    service: LiveService, gpu: dict[str, Any]
) -> None:
    """B03: the default is booked as such. B51: a count alone does not expose every card."""
    job = service.client.submit(Submission(command=("sh", "-c", SHOW), spec={"gpu": gpu}))
    detail = service.client.wait(job)
    (held,) = detail.attempts[0].holds
    assert (len(held.cards), held.whole, held.memory_mib, held.compute_milli) == (1, True, 40_960, 1000)
    assert shown(service, job) == dict(zip(SHOWN, (*held.cards * 2, "40960"), strict=True))


EIGHT_T4: Final = "{name: eight, cards: [{model: T4, count: 8}], cores: 32, memory_gib: 256}"
ONE_L40S: Final = "{name: one, cards: [{model: L40S}], cores: 32, memory_gib: 256}"


def on(shape: str) -> LiveService:
    """A service on a machine of that description, not started."""
    service = LiveService(shape=None)
    service.options = ["--simulate", str(service.write("shape.yaml", shape))]
    return service


def test_b51_environment_record_and_api_name_the_same_card_and_the_same_mib() -> None:
    """B51: one truth, the UUID; a unit is part of every amount, however it was written; no capacity is 0."""
    with on(EIGHT_T4) as service:
        capacity = {card.uuid: card.memory_mib for card in service.client.gpus()}
        assert (len(capacity), set(capacity.values())) == (8, {14_917}), (
            "what the driver keeps is not offered"
        )
        jobs = {}
        for written, mib in (("3000MiB", 3000), ("3GiB", 3072), ("3072MiB", 3072), ("3GB", 2862)):
            spec = {"gpu": {"memory": written}}
            job = service.client.submit(Submission(command=("sh", "-c", SHOW), spec=spec))
            (held,) = service.client.wait(job).attempts[0].holds
            assert (held.memory_mib, held.cards[0] in capacity) == (mib, True)
            assert shown(service, job) == dict(zip(SHOWN, (*held.cards * 2, str(mib)), strict=True))
            jobs[job] = (held.cards, mib)
        two = service.client.submit(Submission(command=("sh", "-c", SHOW), spec={"gpu": {"count": 2}}))
        (held,) = service.client.wait(two).attempts[0].holds
        both = ",".join(held.cards)
        assert shown(service, two) == dict(zip(SHOWN, (both, both, "14917"), strict=True))
        events = recorded(service)
        for event in events:
            if isinstance(event, Granted) and event.job in jobs:
                (placement,) = event.placements
                assert (placement.cards, placement.vector.memory) == jobs[event.job]


# --- B09: exact amounts ----------------------------------------------------------------------------------


def test_b09_23_jobs_of_2000_mib_run_on_46068_and_the_24th_waits() -> None:
    """B09: no rounding lets one more in; 68 MiB are free and reported; three exact thirds fit."""
    with on(ONE_L40S) as service:
        jobs = [service.client.submit(slice_of("2000MiB", "sleep 60")) for _ in range(24)]
        wait_for(lambda: running(service) == 23, "23 to run")
        assert service.client.job(jobs[-1]).job.phase == "pending"
        (card,) = service.client.gpus()
        assert (card.free_memory_mib, len(card.jobs)) == (68, 23)
        assert "68 MiB" in service.run("gpus").out
        for job in jobs:
            service.client.cancel(job)
        wait_for(lambda: service.client.gpus()[0].free_memory_mib == 46_068, "all of it back")
        thirds = [service.client.submit(slice_of("15356MiB", "sleep 60")) for _ in range(4)]
        wait_for(lambda: running(service) == 3, "three to run")
        assert service.client.gpus()[0].free_memory_mib == 0
        for job in thirds:
            service.client.cancel(job)


def slice_of(memory: str, script: str) -> Submission:
    """A job that shares a card; a thousandth of its compute, so that memory alone decides."""
    spec = {"gpu": {"memory": memory, "compute": "0.1%"}}
    return Submission(command=("sh", "-c", script), spec=spec, grace="0.2s")


def running(service: LiveService) -> int:
    return sum(job.phase == "running" for job in service.client.jobs(over=False))
