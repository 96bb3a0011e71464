"""How help and mistakes of the command line look: plain text, options in groups, one line for an error.

It knows the library that parses arguments and none of the commands. Plain text and no markup: help is then as
quick to start as the interpreter lets it be, and reads the same in a pipe.
"""

from __future__ import annotations

from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from aliquot.interfaces.cli.values import read_plainly

Params = list[Any]

_PLAINLY: Final = {
    "Input should be a valid integer, unable to parse string as an integer": "a whole number is right",
    "Input should be a valid number, unable to parse string as a number": "a number is right",
}
"""What the parser says of numbers, as a person would."""


class Page:
    """What commands and groups share: how their help ends, and how they read what they are given."""

    epilog: str | None

    def get_params(self, ctx: Any) -> Params:
        """Options and arguments, which read plain values by themselves."""
        params: Params = super().get_params(ctx)  # type: ignore[misc]  # of the parser's class beside this one
        for param in params:
            read_plainly(param)
        return params

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the end of the page as it is: examples are not wrapped."""
        if self.epilog:
            formatter.write(f"\n{self.epilog}\n")


class Command(Page, TyperCommand):
    """A command whose help lists arguments, then options in the groups they were given, in order."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """`[OPTIONS] FILE... JOB`: arguments as a person writes them."""
        arguments = (param for param in self.params if param.param_type_name == "argument")
        return ["[OPTIONS]", *(str(param.metavar) for param in arguments)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write one section per group; what has none is "Options"."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if param.param_type_name == "argument":
                told = (str(param.metavar), str(getattr(param, "help", None) or ""))
                sections.setdefault("Arguments", []).append(told)
            elif record is not None:
                sections.setdefault(getattr(param, "rich_help_panel", None) or "Options", []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


class Commands(Page, TyperGroup):
    """A group of commands, listed in the order in which they were put there."""


def examples(*lines: str) -> str:
    """The end of a help page."""
    return "\n".join(["Examples:", *(f"  {line}" for line in lines)])


def describe_mistake(error: typer.TyperException) -> str:
    """One line for what is wrong with the arguments, and where to read on."""
    message = " ".join(error.format_message().split()).rstrip(".")
    for said, right in _PLAINLY.items():
        message = message.replace(said, right)
    message = message[:1].lower() + message[1:].replace("Possible options: ", "did you mean ")
    context = getattr(error, "ctx", None)
    page = context.command_path if context is not None else "aliquot"
    return f"{message} (see {page} --help)"
