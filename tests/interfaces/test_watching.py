"""A running service on simulated NVML cards and real processes: what is measured, and what follows."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

from aliquot.client import Submission
from aliquot.engines.local.leftovers import find_supervisors
from aliquot.engines.local.places import find_runtime
from tests.support.command import ROOT, Done, complaint
from tests.support.local import wait_for
from tests.support.nvml.build import CannotBuildError, build_library
from tests.support.nvml.state import VARIABLE, SimulatedNvml
from tests.support.service import LiveService

MIB: Final = "MiB"
QUICK: Final = ("--watch", "0.1s", "--tolerance", "0.3s")


class Watched(LiveService):
    """A service on the machine `sim`, and programs that use its cards."""

    def __init__(self, sim: SimulatedNvml, *options: str) -> None:
        variables = {name: sim.env()[name] for name in ("LD_LIBRARY_PATH", VARIABLE)}
        super().__init__(*(options or QUICK), shape=None, **variables)
        self.sim = sim

    def occupy(self, memory_mib: int, granted: str, seconds: float = 60, **more: Any) -> str:
        """A job that is granted so much of one card, and uses as much as it likes."""
        spec = {"gpu": {"count": 1, "memory": granted}}
        words = program(memory_mib, seconds)
        asked = Submission(
            command=words, spec=spec, env=self.variables | PYTHON, cwd=str(ROOT), grace="0.5s", **more
        )
        return self.client.submit(asked)

    def card(self, index: int = 0) -> Any:
        """One card as `gpus` shows it, once there are some."""
        wait_for(self.client.gpus, "the cards")
        return self.client.gpus()[index]


PYTHON: Final = {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}


def program(memory_mib: int, seconds: float = 60) -> tuple[str, ...]:
    """The words that start a stand-in for a GPU program."""
    module = (sys.executable, "-m", "tests.support.nvml.occupy")
    return (*module, "--memory-mib", str(memory_mib), "--seconds", str(seconds), "--sm", "20")


@contextmanager
def a_foreigner(sim: SimulatedNvml, memory_mib: int, card: int) -> Iterator[int]:
    """A process that no job is, on a card."""
    with subprocess.Popen(
        program(memory_mib),
        cwd=ROOT,
        env=sim.env(CUDA_VISIBLE_DEVICES=sim.uuid(card), **PYTHON),
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process.pid
        finally:
            process.kill()


@pytest.fixture
def sim() -> Iterator[SimulatedNvml]:
    try:
        build_library()
    except CannotBuildError as error:
        pytest.skip(str(error))
    with SimulatedNvml("a100-40x8") as machine:
        yield machine


def test_who_uses_more_than_he_was_granted_is_ended_and_his_neighbour_is_not(sim: SimulatedNvml) -> None:
    with Watched(sim) as service:
        good = service.occupy(8_000, "10GiB")
        bad = service.occupy(16_000, "10GiB")
        detail = service.client.wait(bad)
        (ending,) = detail.attempts[0].exits
        assert ending is not None
        assert (detail.job.phase, ending.reason) == ("failed", "MemoryLimit")
        assert service.client.job(good).job.phase == "running"
        shared = detail.attempts[0].holds[0].cards
        assert service.client.job(good).attempts[0].holds[0].cards == shared, "they were on one card"
        service.client.cancel(good)


def test_b47_two_processes_of_one_job_are_counted_together(sim: SimulatedNvml) -> None:
    """Each of them is within the grant; what the job holds in all is not."""
    both = " & ".join([" ".join(program(8_000))] * 2) + " & wait"
    with Watched(sim) as service:
        spec = {"gpu": {"count": 1, "memory": "10GiB"}}
        asked = Submission(
            command=("sh", "-c", both), spec=spec, env=service.variables | PYTHON, cwd=str(ROOT), grace="0.5s"
        )
        detail = service.client.wait(service.client.submit(asked))
        (ending,) = detail.attempts[0].exits
        assert ending is not None
        assert (detail.job.phase, ending.reason) == ("failed", "MemoryLimit")
        wait_for(lambda: not service.card().jobs, "both processes to be gone")


def test_a_short_excess_is_tolerated(sim: SimulatedNvml) -> None:
    with Watched(sim, "--watch", "0.1s", "--tolerance", "30s") as service:
        job = service.occupy(16_000, "10GiB", seconds=1.0)
        assert service.client.wait(job).job.phase == "succeeded"


def test_what_a_job_uses_is_booked_to_it_and_what_others_use_is_not_offered(sim: SimulatedNvml) -> None:
    with Watched(sim) as service:
        job = service.occupy(5_000, "10GiB")
        wait_for(lambda: service.card().jobs and service.card().jobs[0].used_mib == 5_000, "the job's use")
        alone = service.card().free_memory_mib
        with a_foreigner(sim, 6_000, card=0) as pid:
            wait_for(lambda: service.card().foreign, "the foreigner")
            (foreign,) = service.card().foreign
            assert (foreign.pid, foreign.memory_mib, foreign.user) == (pid, 6_000, user())
            wait_for(lambda: service.card().free_memory_mib <= alone - 6_000, "the offer to fall")
            assert "foreign" in service.run("gpus").out
        wait_for(lambda: service.card().free_memory_mib == alone, "the offer to rise")
        service.client.cancel(job)


def test_a_card_that_somebody_else_is_on_is_no_whole_card(sim: SimulatedNvml) -> None:
    with Watched(sim) as service, a_foreigner(sim, 1_000, card=3):
        wait_for(lambda: service.card(3).free_compute_milli < 1000, "the offer to fall")
        job = service.submit("sleep 60", gpus=8)
        wait_for(lambda: service.client.explain(job).wait is not None, "it to wait")
        seven = service.submit("echo $CUDA_VISIBLE_DEVICES", gpus=7)
        service.client.wait(seven)
        assert sim.uuid(3) not in service.client.output(seven).body.decode()
        service.client.cancel(job)


def test_lost_cards_and_fatal_errors_take_no_new_work(sim: SimulatedNvml) -> None:
    with Watched(sim) as service:
        wait_for(lambda: service.card().used_mib is not None, "a look")
        sim.lose(2)
        sim.raise_xid(5, 95)
        sim.raise_xid(6, 13)
        wait_for(lambda: service.card(2).state == service.card(5).state == "faulty", "the verdict")
        assert service.card(6).state == "ok", "a program's own fault"
        job = service.submit("echo $CUDA_VISIBLE_DEVICES", gpus=6)
        service.client.wait(job)
        said = service.client.output(job).body.decode()
        assert sim.uuid(2) not in said
        assert sim.uuid(5) not in said


def test_a_card_out_for_an_error_comes_back_when_somebody_says_that_it_is_well(sim: SimulatedNvml) -> None:
    with Watched(sim) as service:
        wait_for(lambda: service.card().used_mib is not None, "a look")
        sim.raise_xid(5, 95)
        wait_for(lambda: service.card(5).state == "faulty", "the verdict")
        job = service.submit("true", gpus=8)
        assert service.client.job(job, phase="pending", timeout=0.3).job.phase == "pending"
        assert f"aliquot undrain {sim.uuid(5)}" in " ".join(service.client.site().notes)
        assert "is a card" in complaint(service.run("drain", "5"))
        assert service.run("undrain", "5").code == 0
        assert service.client.wait(job).job.phase == "succeeded"
        assert "somebody says that it is well" in service.client.site().notes[-1]
        sim.raise_xid(5, 95)
        wait_for(lambda: service.card(5).state == "faulty", "the same again")
        assert "no node or card" in complaint(service.run("undrain", "GPU-none"))


def test_of_a_card_that_need_not_or_cannot_be_called_well_that_is_said(sim: SimulatedNvml) -> None:
    sim.set_card(1, compute_mode=2)
    with Watched(sim) as service:
        wait_for(lambda: service.card(1).fault == "prohibited", "the verdict")
        assert service.run("undrain", "3") == Done(0, "", "card 3 was not out\n")
        said = "card 1 stays out: its compute mode is PROHIBITED"
        assert complaint(service.run("undrain", "1")) == said


def test_a_card_that_was_lost_and_answers_again_counts_as_reset(sim: SimulatedNvml) -> None:
    with Watched(sim) as service:
        wait_for(lambda: service.card().used_mib is not None, "a look")
        sim.lose(2)
        wait_for(lambda: service.card(2).state == "faulty", "the verdict")
        sim.find_again(2)
        wait_for(lambda: service.card(2).state == "ok", "its return")
        assert any("answers again after Xid 79" in note for note in service.client.site().notes)
        sim.raise_xid(2, 95)
        wait_for(lambda: service.card(2).state == "faulty", "a new error to be heard")


def test_of_a_card_that_takes_no_work_everybody_says_why(sim: SimulatedNvml) -> None:
    """Prohibited, cut, lost, after an error: in the list, in the notes, and to who waits for it."""
    sim.set_card(1, compute_mode=2)
    sim.set_mig(2, enabled=True)
    with Watched(sim) as service:
        wait_for(lambda: service.card().used_mib is not None, "a look")
        sim.lose(6)
        sim.raise_xid(5, 95)
        why = {1: "prohibited", 2: "mig", 5: "xid 95", 6: "lost"}
        wait_for(
            lambda: {card.index: card.fault for card in service.client.gpus() if card.fault} == why,
            "all four",
        )
        wait_for(lambda: {service.card(at).state for at in why} == {"faulty"}, "the verdicts")
        assert {(service.card(at).free_compute_milli, service.card(at).free_memory_mib) for at in why} == {
            (0, 0)
        }
        rows = service.run("gpus").out.splitlines()[1:]
        assert [at for at in why if why[at] not in rows[at]] == []
        notes = " ".join(service.client.site().notes)
        for at, text in (
            (1, "its compute mode is PROHIBITED"),
            (2, "MIG is on, and only whole cards are given to jobs"),
            (6, "it does not answer"),
        ):
            assert (
                notes.count(f"card {at} ({sim.uuid(at)}) of {service.card(at).node} takes no work: {text}")
                == 1
            )
        job = service.submit("true", gpus=5)
        wait_for(lambda: service.client.explain(job).taken, "it to wait")
        said = service.run("why", job).out
        assert f"Card 1 of node {service.card(1).node} takes no work: its compute mode is PROHIBITED." in said
        assert all(f"Card {at} of node {service.card(at).node} takes no work: " in said for at in why)
        assert "0 of 8 cards granted" in service.run("top", "--once").out
        sim.set_mig(2, enabled=False)


def test_a_card_that_may_be_used_again_is_told_and_used(sim: SimulatedNvml) -> None:
    script = "echo $CUDA_VISIBLE_DEVICES"
    with Watched(sim) as service:
        wait_for(lambda: service.card().used_mib is not None, "a look")
        sim.set_card(1, compute_mode=2)
        wait_for(lambda: service.card(1).fault == "prohibited", "the verdict", 30)
        job = service.submit(script, gpus=8)
        sim.set_card(1, compute_mode=0)
        service.client.wait(job)
        assert sim.uuid(1) in service.client.output(job).body.decode()
        note = f"card 1 ({sim.uuid(1)}) of {service.card(1).node} takes work again"
        assert note in service.client.site().notes


def test_an_exclusive_card_takes_one_job(sim: SimulatedNvml) -> None:
    for card in range(8):
        sim.set_card(card, compute_mode=3)
    with Watched(sim) as service:
        jobs = [service.occupy(1_000, "4GiB") for _ in range(3)]
        for job in jobs:
            service.until_running(job)
        cards = {service.client.job(job).attempts[-1].holds[0].cards for job in jobs}
        assert len(cards) == 3, "each has a card to itself, however much room there was"
        for job in jobs:
            service.client.cancel(job)


def test_b47_clients_of_mps_are_booked_to_their_job_by_their_own_pids(sim: SimulatedNvml) -> None:
    """B47: two clients within the grant are one job above it; the server that serves them is not the job."""
    with Watched(sim) as service:
        script = "sleep 60 & echo $!; sleep 60 & echo $!; wait"
        spec = {"gpu": {"memory": "4GiB"}}
        job = service.client.submit(Submission(command=("sh", "-c", script), spec=spec, grace="0.5s"))
        wait_for(lambda: len(service.client.output(job).body.split()) == 2, "its clients")
        first, second = map(int, service.client.output(job).body.split())
        at = cards_of(service, job)[0]
        sim.add_process(at, os.getpid(), memory_mib=30, kind="mps")  # the server: nobody's job
        sim.add_process(at, first, memory_mib=3_000, kind="mps")
        wait_for(lambda: service.card(at).jobs[0].used_mib == 3_000, "the first client's use")
        assert [(one.pid, one.memory_mib) for one in service.card(at).foreign] == [(os.getpid(), 30)]
        assert service.client.job(job).job.phase == "running"
        sim.add_process(at, second, memory_mib=3_000, kind="mps")
        (ending,) = service.client.wait(job).attempts[0].exits
        assert ending is not None
        assert ending.reason == "MemoryLimit"


@pytest.mark.parametrize(
    ("machine", "usable"),
    [
        pytest.param("a100-40x8", 7, id="the mode stays, the slices do not"),
        pytest.param("dgx-h100", 8, id="the mode is lost, the card is whole again"),
    ],
)
def test_b39_after_a_reboot_a_cut_card_is_what_it_is_now_and_the_others_work_on(
    machine: str, usable: int
) -> None:
    """B39, as far as whole cards go: a cut card is no whole one, old ids are dead, jobs go on on new ones."""
    with SimulatedNvml(machine) as sim:
        sim.set_mig(0, enabled=True)
        with Watched(sim) as service:
            wait_for(lambda: service.card(0).state == "faulty", "the cut card to be seen as such")
            job = service.submit("echo $CUDA_VISIBLE_DEVICES; sleep 60", gpus=7)
            service.until_running(job)
            assert sim.uuid(0) not in service.client.job(job).attempts[0].holds[0].cards
            lose_power(service)
            sim.reboot()
            service.start()
            wait_for(
                lambda: service.client.job(job).attempts[-1].number == 2, "it to be queued and bound again"
            )
            assert service.client.job(job).attempts[0].outcome == "lost"
            service.until_running(job)
            wait_for(lambda: usable_cards(service) == usable, "what the card is now")
            service.client.cancel(job)
            service.client.wait(job)
            wide = service.submit("true", gpus=usable)
            assert service.client.wait(wide).job.phase == "succeeded"
            if usable < 8:
                assert "MIG is on and there is no slice" in " ".join(service.client.site().notes)


def test_b56_detection_that_fails_is_unknown_and_not_no_cards(sim: SimulatedNvml) -> None:
    """A driver that answers nothing for a while takes no card away and ends nobody."""
    with Watched(sim) as service:
        job = service.occupy(5_000, "10GiB")
        wait_for(lambda: service.card().jobs and service.card().jobs[0].used_mib == 5_000, "the job's use")
        sim.inject("*", "UNKNOWN")
        wait_for(lambda: service.card().jobs[0].used_mib is None, "its use to be unknown")
        assert len(service.client.gpus()) == 8
        assert service.client.job(job).job.phase == "running"
        assert "?" in service.run("gpus").out
        sim.clear_faults()
        wait_for(lambda: service.card().jobs[0].used_mib == 5_000, "its use again")
        service.client.cancel(job)


def test_a_job_on_a_card_that_it_was_not_granted_is_a_foreigner_there_and_named(sim: SimulatedNvml) -> None:
    """It may hide which cards it was granted, and use another's; what it takes there is nobody's grant."""
    with Watched(sim) as service:
        words = " ".join(program(6_000))
        spec = {"gpu": {"memory": "10GiB"}}
        script = f"CUDA_VISIBLE_DEVICES={sim.uuid(5)} exec {words}"
        env = service.variables | PYTHON
        asked = Submission(command=("sh", "-c", script), spec=spec, env=env, cwd=str(ROOT), grace="0.5s")
        job = service.client.submit(asked)
        assert cards_of(service.until_running(job), job) != [5]
        wait_for(lambda: service.card(5).foreign, "it to be seen where it is")
        (foreign,) = service.card(5).foreign
        assert (foreign.job, foreign.memory_mib) == (job, 6_000)
        assert f"of job {job}, foreign)" in service.run("gpus").out
        wait_for(lambda: service.card(5).free_compute_milli < 1000, "the offer to fall")
        wide = service.submit("true", gpus=8)
        wait_for(lambda: service.client.explain(wide).taken, "it to wait")
        assert f"of job {job})" in service.run("explain", wide).out
        service.client.cancel(wide)
        service.client.cancel(job)


def test_b06_memory_that_is_still_in_use_when_its_process_is_gone_is_offered_to_nobody(
    sim: SimulatedNvml,
) -> None:
    """B06: what the driver says is in use counts, whoever left it there; no start is tried in vain."""
    with Watched(sim) as service:
        full = service.card().free_memory_mib
        for card in range(8):
            sim.use_memory(card, 6_000)
        wait_for(lambda: service.card(7).free_memory_mib <= full - 6_000, "it to be seen")
        job = service.submit("true", gpus=8)
        wait_for(lambda: service.client.explain(job).taken, "it to wait")
        small = service.client.submit(Submission(command=("true",), spec={"gpu": {"memory": "20GiB"}}))
        assert service.client.wait(small).job.phase == "succeeded", "there is room for that beside it"
        for card in range(8):
            sim.use_memory(card, 0)
        detail = service.client.wait(job)
        assert (detail.job.phase, len(detail.attempts)) == ("succeeded", 1)


def cards_of(service: Watched, job: str) -> list[int]:
    """Numbers of the cards that a job holds."""
    held = service.client.job(job).attempts[-1].holds[0].cards
    return [card.index for card in service.client.gpus() if card.uuid in held and card.index is not None]


def usable_cards(service: Watched) -> int:
    return sum(card.state == "ok" for card in service.client.gpus())


def lose_power(service: Watched) -> None:
    """No process and nothing in memory is left; the disk is."""
    service.kill()
    attempts = find_runtime(service.state) / "attempts"
    for folder in find_supervisors(attempts):
        for pid in (folder.holder(), getattr(folder.begun(), "pid", None)):
            if pid is not None:
                os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not find_supervisors(attempts), "supervisors to go")
    shutil.rmtree(attempts)


def user() -> str:
    """Whoever runs the tests."""
    import getpass

    return getpass.getuser()


def test_b02_a_board_that_was_swapped_leaves_its_job_listed_and_is_a_card_of_its_own(
    sim: SimulatedNvml,
) -> None:
    """B02, with B33's alarm: a service that comes back finds card A gone and card C in its place."""
    with Watched(sim) as service:
        first = service.occupy(5_000, "20000MiB")
        service.until_running(first)
        old = service.client.job(first).attempts[0].holds[0].cards[0]
        at = [card.uuid for card in service.client.gpus()].index(old)
        service.kill()
        new = "GPU-11111111-2222-3333-4444-555555555555"
        sim.set_card(at, uuid=new)
        service.start()
        wait_for(lambda: len(service.client.gpus()) == 9, "the old card to be listed behind the new")
        others, gone = service.client.gpus()[:-1], service.client.gpus()[-1]
        assert (gone.uuid, gone.state, [use.job for use in gone.jobs]) == (old, "gone", [first])
        assert {card.free_compute_milli for card in others} == {1000}
        assert any("over-committed by 1 card" in note for note in service.client.site().notes)
        detail = service.client.job(first)
        assert (detail.job.phase, detail.gone) == ("running", (old,))
        assert f"its card {old} is gone" in service.run("job", first).out
        assert " gone " in service.run("gpus").out
        wide = service.submit("echo $CUDA_VISIBLE_DEVICES", gpus=8)
        assert service.client.wait(wide).job.phase == "succeeded"
        assert new in service.client.output(wide).body.decode()
        service.kill().start()
        assert any("over-committed by 1 card" in note for note in service.client.site().notes), "said again"
        service.client.cancel(first)
        service.client.wait(first)
        assert [card.uuid for card in service.client.gpus()] == [card.uuid for card in others]


def test_who_is_over_his_grant_and_tolerated_is_shown_with_numbers_and_since_when(sim: SimulatedNvml) -> None:
    with Watched(sim, "--watch", "0.1s", "--tolerance", "60s") as service:
        job = service.occupy(16_000, "10GiB")
        wait_for(lambda: service.client.job(job).excesses, "the excess")
        (excess,) = service.client.job(job).excesses
        card = service.card()
        assert (excess.card, excess.used_mib, excess.granted_mib) == (card.uuid, 16_000, 10_240)
        assert excess.until_ms == excess.since_ms + 60_000
        assert card.jobs[0].over_since_ms == excess.since_ms
        said = service.run("job", job).out
        assert f"over its grant on {card.uuid}: uses 16000 MiB of 10 GiB since " in said
        assert "is ended (MemoryLimit) in " in said
        for words in (("gpus",), ("top", "--once")):
            assert "over its grant for" in service.run(*words).out
            assert ": 16000 MiB of 10 GiB" in service.run(*words).out
        service.client.cancel(job)
        wait_for(lambda: service.client.job(job).is_over, "its end")
        assert service.client.job(job).excesses == ()


def test_who_waits_for_a_card_that_a_foreign_process_holds_is_told_whose_it_is(sim: SimulatedNvml) -> None:
    with Watched(sim) as service, a_foreigner(sim, 6_000, card=0) as pid:
        wait_for(lambda: service.card().foreign, "the foreigner")
        wait_for(lambda: service.card().free_compute_milli < 1000, "it to be taken off")
        job = service.submit("true", gpus=8)
        said = service.run("why", job).out
        (line,) = [line for line in said.splitlines() if "is not offered whole" in line]
        node = service.client.site().nodes[0]
        assert f"Card 0 of node {node} is not offered whole: 6 GiB and " in line
        assert line.endswith(f"taken by pid {pid} ({user()}, 6000 MiB), no job here.")
        (taken,) = service.client.explain(job).taken
        assert [(one.pid, one.user, one.memory_mib) for one in taken.foreign] == [(pid, user(), 6_000)]
        assert f"pid {pid} ({user()}, 6000 MiB, foreign)" in service.run("gpus").out
        service.client.cancel(job)
        assert service.client.explain(job).taken == ()
