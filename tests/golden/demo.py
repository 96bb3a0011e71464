"""What the demo prints, normalised. `python -m tests.golden.demo` prints it anew."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
GOLDEN = Path(__file__).with_name("demo.txt")


def run_demo(out: Path) -> str:
    """The output of `scripts/demo.sh OUT`, normalised."""
    done = subprocess.run(
        ["scripts/demo.sh", str(out)], cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return normalised(done.stdout)


def normalised(text: str) -> str:
    """Without trailing blanks, the report's place, and the scores that follow the policy's tuning."""
    text = re.sub(r"^Report: .*$", "Report: OUT/case.html", text, flags=re.MULTILINE)
    text = re.sub(
        r"^(It costs|Runner-up: \S+,|  )( ?)-?\d+\.\d\d( cards| of | since )",
        r"\1\2N\3",
        text,
        flags=re.MULTILINE,
    )
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        sys.stdout.write(run_demo(Path(folder)))
