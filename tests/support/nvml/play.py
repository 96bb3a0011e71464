"""Runs a command on a simulated machine, to try things by hand.

    python -m tests.support.nvml.play a100-40x8 -- nvitop -1
    python -m tests.support.nvml.play mixed -- bash      # a whole session; see `occupy` for GPU programs

Ends with the command's exit code; the machine ends with it.
"""

from __future__ import annotations

import subprocess
import sys

from tests.support.nvml.machines import MACHINES
from tests.support.nvml.state import SimulatedNvml


def main(arguments: list[str]) -> int:
    name, _, *command = arguments if "--" in arguments[1:2] else ["", "--"]
    if name not in MACHINES or not command:
        sys.stderr.write(f"usage: play MACHINE -- COMMAND...\nmachines: {', '.join(MACHINES)}\n")
        return 2
    with SimulatedNvml(name) as sim:
        return subprocess.run(command, env=sim.env(), check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
