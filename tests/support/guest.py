"""What runs inside a machine whose power will be cut: `aliquot up` on simulated NVML cards, and people at it.

    python -m tests.support.guest STATE SEED load|finish [PRELOAD]

It says on its console, one word and its rest a line:

    HAS ID PHASE    a job that the service knows, once it answers
    NOTE TEXT       what the service says of itself
    READY           all of these were said
    ACK ID          a submission was acknowledged
    GONE ID         a cancellation was acknowledged
    OVER ID PHASE   somebody was told that a job is over
    RUN ID          said by the job itself, and TWICE ID where it found itself running already
    DONE            with `finish`: no job is left
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from random import Random
from typing import Final

from aliquot.client import Client, Submission
from aliquot.core.errors import AliquotError
from aliquot.engines.local.compiled import put
from tests.support.nvml.state import VARIABLE, SimulatedNvml

PATIENCE_S: Final = 60
QUEUE: Final = 40  # living jobs, from which on nobody submits more
PEOPLE: Final = 3
RUNS: Final = "/run/runs"
SCRIPT: Final = """
mkdir {runs}/$ALIQUOT_JOB || echo "TWICE $ALIQUOT_JOB" > /dev/console
echo "RUN $ALIQUOT_JOB" > /dev/console
{work}
rmdir {runs}/$ALIQUOT_JOB
exit {code}
"""

_console = threading.Lock()


def main() -> None:
    """Serve, say what is known, and then what was asked."""
    state, seed, what, *preload = sys.argv[1:]
    Path(RUNS).mkdir()
    keep_supervisor(Path(state) / "bin")
    with SimulatedNvml("a100-40x8") as sim:
        variables = {name: sim.env()[name] for name in ("LD_LIBRARY_PATH", VARIABLE)}
        if preload:
            variables["LD_PRELOAD"] = preload[0]
        client = start(Path(state), variables)
        for job in client.jobs():
            say(f"HAS {job.id} {job.phase}")
        for note in client.site().notes:
            say(f"NOTE {note}")
        for path in Path(state).iterdir():
            say(f"FILE {path.name}")
        say("READY")
        if what == "load":
            load(client, seed)
        finish(client)
        say("DONE")


def keep_supervisor(folder: Path) -> None:
    """The program compiled outside, where it takes no time."""
    folder.mkdir(parents=True, exist_ok=True)
    outside = Path(os.environ["SUPERVISOR"])
    if not (folder / outside.name).exists():
        put(Path(shutil.copy2(outside, folder / "copying")), folder / outside.name)


def start(state: Path, variables: dict[str, str]) -> Client:
    """A service that answers; what it prints goes to the console."""
    words = [sys.executable, "-m", "aliquot", "up", "--state", str(state), "--socket", "/run/aliquot.sock"]
    up = subprocess.Popen(words, env=os.environ | variables)
    client = Client(Path("/run/aliquot.sock"))
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end and up.poll() is None:
        try:
            client.site()
        except AliquotError:
            time.sleep(0.02)
        else:
            return client
    raise SystemExit(f"the service does not answer, its exit status is {up.poll()}")


def load(client: Client, seed: str) -> None:
    """People who submit, give up and look, until the power goes."""
    people = [
        threading.Thread(target=submit_for_ever, args=(client, Random(f"{seed} {one}")))
        for one in range(PEOPLE)
    ]
    for one in people:
        one.start()
    told: set[str] = set()
    while True:
        for job in client.jobs(limit=4 * QUEUE):
            if job.over_ms is not None and job.id not in told:
                told.add(job.id)
                say(f"OVER {job.id} {job.phase}")
        time.sleep(0.1)


def submit_for_ever(client: Client, random: Random) -> None:
    """Singles, batches, a cancellation now and then."""
    while True:
        while len(client.jobs(over=False)) > QUEUE:
            time.sleep(0.05)
        if random.random() < 0.2:
            for job in client.submit_all([a_job(random) for _ in range(random.randrange(2, 8))]):
                say(f"ACK {job}")
            continue
        job = client.submit(a_job(random))
        say(f"ACK {job}")
        if random.random() < 0.15:
            try:
                client.cancel(job)
            except AliquotError:
                continue  # over already
            say(f"GONE {job}")


def a_job(random: Random) -> Submission:
    """Short, of a few cards, and one in five fails and may be tried again."""
    work = random.choice(["true", "true", "sleep 0.1", "sleep 0.5", "sleep 2 & sleep 0.2; kill $!"])
    code = int(random.random() < 0.2)
    script = SCRIPT.format(runs=RUNS, work=work, code=code)
    spec = {"gpu": {"count": random.choice([1, 1, 1, 2, 8])}}
    retries = random.randrange(2) if code else 0
    return Submission(command=("sh", "-c", script), spec=spec, retries=retries, grace="0.5s")


def finish(client: Client) -> None:
    """Wait for all jobs, and say how each ended."""
    while client.jobs(over=False):
        time.sleep(0.1)
    for job in client.jobs():
        say(f"OVER {job.id} {job.phase}")


def say(line: str) -> None:
    """A line on the console, whole."""
    with _console:
        os.write(1, f"{line}\n".encode())


if __name__ == "__main__":
    main()
