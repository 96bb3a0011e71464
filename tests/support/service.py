"""`aliquot up` in a process of its own on simulated cards, and its client.

    with LiveService() as service:
        job = service.submit("echo hello")
        service.client.wait(job)

`kill` is kill -9; `start` begins again with what the disk and the kernel know.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import chdir, redirect_stderr, redirect_stdout, suppress
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any, Final, Self

from aliquot.bootstrap import make_experiments
from aliquot.bootstrap_live import make_live
from aliquot.client import Client, Submission
from aliquot.core.errors import AliquotError
from aliquot.engines.local.leftovers import find_supervisors
from aliquot.engines.local.mounts import find_mounts
from aliquot.engines.local.places import find_runtime, site_name
from aliquot.interfaces.cli.app import run_app
from tests.support.command import ROOT, Done
from tests.support.local import supervisor, wait_for, warm_kernels

SHAPE: Final = "a100-40x8"


class LiveService:
    """A service whose state lies in a short-named folder, since a socket's path must be short."""

    def __init__(self, *options: str, shape: str | None = SHAPE, **variables: str) -> None:
        """`options` of `aliquot up`; `shape` None: the cards that NVML shows under `variables`."""
        self.options = [*(() if shape is None else ("--simulate", shape)), *options]
        self.variables = variables
        self.folder = Path(tempfile.mkdtemp(prefix="aliquot-"))
        self.folder.chmod(0o711)
        self.state = self.folder / "s"
        self.socket = self.state / "aliquot.sock"
        self.client = Client(self.socket)
        self.process: subprocess.Popen[str] | None = None
        warm_kernels()
        (self.state / "bin").mkdir(parents=True)
        self.state.chmod(0o711)
        shutil.copy2(supervisor(), self.state / "bin")

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:  # nothing that was begun is left, however it went wrong
            if self.process is not None:
                self.process.kill()
                self.process.wait()
                self.process = None
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        """Ends whatever still runs: a test leaves nothing behind."""
        self.stop()
        runtime = find_runtime(self.state)
        attempts = runtime / "attempts"
        for folder in find_supervisors(attempts):
            folder.command("kill test-over")
        wait_for(lambda: not find_supervisors(attempts), "supervisors to go")
        self._remove_groups()
        shutil.rmtree(self.folder)
        shutil.rmtree(runtime, ignore_errors=True)

    def start(self, stdout: int = subprocess.PIPE, stderr: int = subprocess.STDOUT) -> Self:
        """A service, once it answers."""
        words = [sys.executable, "-m", "aliquot", "up", *self.options, "--state", str(self.state)]
        variables = environment() | self.variables
        self.process = subprocess.Popen(words, env=variables, stdout=stdout, stderr=stderr, text=True)
        wait_for(self._answers, "the service to answer")
        return self

    def kill(self) -> Self:
        """Kill -9: nothing is put in order."""
        assert self.process is not None
        self.process.kill()
        self.process.communicate()
        self.process = None
        return self

    def stop(self) -> str:
        """End it as systemd would; what it has said."""
        if self.process is None:
            return ""
        self.process.send_signal(signal.SIGTERM)
        said, _ = self.process.communicate(timeout=20)
        assert self.process.returncode == 0, said
        self.process = None
        return said

    def submit(self, script: str, gpus: int = 1, **more: Any) -> str:
        """A shell script on whole cards."""
        spec = {"gpu": {"count": gpus}, **more.pop("spec", {})}
        return self.client.submit(Submission(command=("sh", "-c", script), spec=spec, grace="0.5s", **more))

    def run(self, *words: str | Path, **variables: str) -> Done:
        """`aliquot WORDS...` against this service, in our own process and its folder."""
        live = make_live()._replace(environment=lambda: environment() | variables)
        asked = [str(words[0]), "--socket", str(self.socket), *map(str, words[1:])]
        out, err = BytesIO(), BytesIO()
        with (
            chdir(self.folder),
            redirect_stdout(TextIOWrapper(out, write_through=True)),
            redirect_stderr(TextIOWrapper(err, write_through=True)),
        ):
            code = run_app(asked, make_experiments, lambda: live)
            return Done(code, out.getvalue().decode(), err.getvalue().decode())

    def spawn(self, *words: str | Path, **variables: str) -> subprocess.Popen[str]:
        """The same in a process of its own, not waited for."""
        return subprocess.Popen(
            [sys.executable, "-m", "aliquot", *map(str, words)],
            cwd=self.folder,
            env=environment() | {"ALIQUOT_SOCKET": str(self.socket), **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def write(self, name: str, text: str) -> Path:
        """A file of documents beside the service."""
        path = self.folder / name
        path.write_text(text)
        return path

    def until_running(self, job: str) -> Self:
        """Wait for its start."""
        wait_for(lambda: self.client.job(job).job.phase == "running", f"{job} to run")
        return self

    def _remove_groups(self) -> None:
        """Cgroups of jobs that were ended when no service was there to take theirs away."""
        for mount in find_mounts(Path("/")):
            parent = mount.path / site_name(self.state)
            for folder in (*parent.glob("*/"), *([parent] if parent.is_dir() else [])):
                with suppress(OSError):
                    folder.rmdir()

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.process.communicate()[0]
        try:
            self.client.site()
        except AliquotError:
            return False
        return True


def environment() -> dict[str, str]:
    """Ours, without what would lead to another service."""
    own = {key: value for key, value in os.environ.items() if not key.startswith("ALIQUOT_")}
    return own | {"PYTHONPATH": str(ROOT / "src"), "COLUMNS": "100", "NO_COLOR": "1"}
