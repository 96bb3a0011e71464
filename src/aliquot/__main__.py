"""The `aliquot` command. Parts are loaded when a command needs them, so that help is quick."""

from __future__ import annotations

TYPE_CHECKING = False  # as `typing` has it, which takes longer to load than the rest of this
if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from aliquot.config.spelling import PolicyPage
    from aliquot.control.experiments import Experiments
    from aliquot.control.live import Live


def main() -> None:
    """Run the command line and exit with its code."""
    from aliquot.interfaces.cli.leaving import leave, leave_on_interrupt, open_output

    leave_on_interrupt()  # first of all: what is loaded from here on may be interrupted
    import sys

    open_output()
    sys.exit(leave(_run(sys.argv[1:])))


def _run(words: Sequence[str]) -> int:
    from aliquot.interfaces.cli.leaving import NOBODY_READS, BrokenOutputError, Reading
    from aliquot.interfaces.cli.quick import run_quickly

    try:
        with Reading():
            code = run_quickly(words, _live)
            if code is None:
                from aliquot.interfaces.cli.app import run_app

                code = run_app(words, _experiments, _live, _policies)
    except BrokenOutputError:
        return NOBODY_READS
    return code


def _experiments() -> Experiments:
    from aliquot.bootstrap import make_experiments

    return make_experiments()


def _live() -> Live:
    from aliquot.bootstrap_live import make_live

    return make_live()


def _policies(files: Sequence[Path]) -> list[PolicyPage]:
    from aliquot.catalog import load_catalog
    from aliquot.config.spelling import list_policies

    return list_policies(files, load_catalog())


if __name__ == "__main__":
    main()
