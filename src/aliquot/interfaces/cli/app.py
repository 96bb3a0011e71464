"""The command line. Each command reads its options, asks `control`, and prints what comes back.

Nothing heavy is imported before a command runs. A person's mistake is one line on standard error and exit
code 2; nothing is written then.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from aliquot import __version__
from aliquot.core.errors import AliquotError
from aliquot.interfaces.cli.commands import ROWS, Doors, Shelf
from aliquot.interfaces.cli.help import describe_mistake, examples
from aliquot.interfaces.cli.leaving import INTERRUPTED, describe_trouble, stop_unwinding
from aliquot.interfaces.cli.quick import BAD_INPUT, COMPLETES
from aliquot.interfaces.cli.spelling import spell_explain, spell_json

if TYPE_CHECKING:
    from aliquot.control.experiments import Experiments
    from aliquot.control.live import Live
    from aliquot.interfaces.cli.policies import Policies

WRITES_JSON: Final = ("simulate", "compare", "replay")


def run_app(
    arguments: Sequence[str],
    experiments: Callable[[], Experiments],
    live: Callable[[], Live] | None = None,
    policies: Policies | None = None,
) -> int:
    """Run one command; its exit code. Never lets a traceback of a person's mistake through.

    Raises BrokenOutputError where nobody reads what is printed any more.

    Without `live` there are no commands for a running service, without `policies` no list of them.
    """
    if COMPLETES in os.environ:
        _know_shells()
    group = make_group(Doors(experiments, live, policies))
    words = spell_json(spell_explain(arguments or ["--help"]), WRITES_JSON)
    try:
        try:
            return int(group.main(words, "aliquot", standalone_mode=False) or 0)
        finally:
            stop_unwinding()
    except (typer.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except typer.TyperException as error:
        return _complain(describe_mistake(error))
    except AliquotError as error:
        return _complain(str(error))
    except OSError as error:
        return _complain(describe_trouble(error))


def make_group(doors: Doors) -> Shelf:
    """All commands, none of which is made before it is asked for."""
    app = typer.Typer(
        name="aliquot",
        cls=Shelf,
        help="Plan, compare and explain how GPUs are shared: documents of machines and jobs in, "
        "numbers, pictures and reasons out.",
        epilog=examples(
            "aliquot simulate examples/first",
            "aliquot compare examples/case/*.yaml -p whole-card-fifo -p binpack-slices",
            "aliquot explain examples/first/first.yaml train",
            "nvidia-smi topo -m | aliquot topology -",
        )
        + "\n\n'aliquot COMMAND --help' has the options of a command.",
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        rich_markup_mode=None,
    )
    app.callback()(_root)
    group = typer.main.get_group(app)
    assert isinstance(group, Shelf)
    group.put(ROWS, doors)
    return group


def _know_shells() -> None:
    """The parser knows none until it is asked for its own options about them, which we do not offer."""
    from typer.completion import get_completion_inspect_parameters

    get_completion_inspect_parameters()


def _complain(message: str) -> int:
    from aliquot.interfaces.cli.plain import complain

    complain(message)
    return BAD_INPUT


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"aliquot {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_show_version),
    ] = False,
) -> None:
    """Nothing to do: `--version` answers while it is read."""
