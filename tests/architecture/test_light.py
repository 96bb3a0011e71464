"""What a service of one machine need not load: a compiler, with 60 MiB and a second of each start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_a_service_starts_without_the_compiler_of_kernels(repository: Path) -> None:
    program = "import sys, aliquot.bootstrap_local; print('numba' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=repository / "src", capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
