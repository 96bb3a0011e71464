"""The live view: one picture of a running service."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading

from tests.support.service import LiveService, environment


def test_top_shows_cards_and_jobs() -> None:
    with LiveService() as service:
        job = service.submit("sleep 60", gpus=2, name="train")
        service.submit("sleep 60", gpus=8, name="large")
        service.until_running(job)
        done = service.run("top", "--once")
        assert done.code == 0, done.err
        head, *rows = done.out.splitlines()
        assert "2 of 8 cards granted" in head
        assert "1 running, 1 waiting" in head
        assert any("train" in row and "running" in row for row in rows)
        assert any("large" in row and "pending" in row for row in rows)
        service.client.cancel(job)


def test_top_into_a_pipe_is_one_picture_as_plain_text() -> None:
    with LiveService() as service:
        name = "a-name-that-is-longer-than-any-terminal-would-like-it-to-be-and-is-shown-whole-all-the-same"
        service.submit("sleep 60", gpus=9, name=name)
        with service.spawn("top", TERM="xterm", COLUMNS="40") as piped:
            out, err = piped.communicate(timeout=60)
        assert (piped.returncode, err) == (0, "")
        assert "0 of 8 cards granted" in out.splitlines()[0]
        assert len([line for line in out.splitlines() if "A100" in line]) == 8
        assert name in out
        assert "\x1b" not in out


def test_top_survives_a_restart_of_the_service_and_ends_at_an_interrupt() -> None:
    with LiveService() as service:
        here, there = os.openpty()
        words = [sys.executable, "-m", "aliquot", "top", "--every", "0.2"]
        variables = environment() | {"ALIQUOT_SOCKET": str(service.socket), "TERM": "xterm"}
        with subprocess.Popen(words, env=variables, stdout=there, stderr=subprocess.PIPE) as watching:
            os.close(there)
            try:
                read_until(here, b"cards granted")
                service.kill()
                read_until(here, b"no service answers")
                service.start()
                read_until(here, b"cards granted")
                # who draws waits for somebody to read, so reading goes on until it is gone
                drain = threading.Thread(target=read_all, args=(here,), daemon=True)
                drain.start()
                watching.send_signal(signal.SIGINT)
                _, err = watching.communicate(timeout=60)
            finally:
                watching.kill()
        drain.join(timeout=10)
        os.close(here)
        assert (watching.returncode, b"Traceback" in err) == (130, False), err


def read_until(terminal: int, words: bytes) -> None:
    """Take what is drawn until it says `words`."""
    seen = b""
    while words not in seen:
        ready, _, _ = select.select([terminal], [], [], 60)
        assert ready, f"nothing drawn for a minute, and no {words!r} in {seen!r}"
        seen += os.read(terminal, 4096)


def read_all(terminal: int) -> None:
    """Take what is drawn until nobody draws any more."""
    try:
        while os.read(terminal, 4096):
            pass
    except OSError:  # the other end is closed
        return


def test_run_under_a_key_is_one_job() -> None:
    with LiveService() as service:
        first = service.run("run", "--detach", "--key", "night", "--", "sleep", "60").out
        assert service.run("run", "--detach", "--key", "night", "--", "sleep", "60").out == first
        service.client.cancel(first.strip())
