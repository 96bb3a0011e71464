"""The service killed again and again under load: nobody's job is lost, and none runs twice at once."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter

import pytest

from aliquot.control.errors import UnavailableError
from tests.support.local import wait_for
from tests.support.service import LiveService

KILLS = 8
SEED = 20


@pytest.mark.slow
def test_every_acknowledged_job_ends_once_whenever_the_service_is_killed() -> None:
    draw = random.Random(SEED)
    with LiveService() as service:
        ran = service.folder / "ran"
        accepted: list[str] = []
        done = threading.Event()

        def submit() -> None:
            while not done.is_set():
                try:
                    script = f"echo $ALIQUOT_JOB $ALIQUOT_ATTEMPT_NUMBER >> {ran}; sleep 0.1"
                    accepted.append(service.submit(script, gpus=1))
                except UnavailableError:
                    time.sleep(0.05)

        submitter = threading.Thread(target=submit)
        submitter.start()
        for _ in range(KILLS):
            time.sleep(draw.uniform(0.05, 0.6))
            service.kill().start()
        done.set()
        submitter.join()

        wait_for(lambda: not service.client.jobs(over=False), "all jobs to end")
        jobs = {job.id: job for job in service.client.jobs()}
        assert set(accepted) <= jobs.keys()
        assert {job.phase for job in jobs.values()} == {"succeeded"}
        begun = Counter(line.split()[0] for line in ran.read_text().splitlines())
        assert begun == dict.fromkeys(jobs, 1)
        assert [card.free_compute_milli for card in service.client.gpus()] == [1000] * 8
