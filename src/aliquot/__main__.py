"""The `aliquot` command. Parts are loaded when a command needs them, so that help is quick."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aliquot.config.spelling import PolicyPage
    from aliquot.control.experiments import Experiments
    from aliquot.control.live import Live


def main() -> None:
    """Run the command line and exit with its code."""
    from aliquot.interfaces.cli.quick import run_quickly

    code = run_quickly(sys.argv[1:], _live)
    if code is None:
        from aliquot.interfaces.cli.app import run_app

        code = run_app(sys.argv[1:], _experiments, _live, _policies)
    sys.exit(code)


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
