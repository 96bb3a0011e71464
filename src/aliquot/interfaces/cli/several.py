"""One command about several things: what goes wrong with one of them does not keep it from the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from aliquot.control.errors import UnavailableError
from aliquot.core.errors import AliquotError
from aliquot.interfaces.cli.plain import complain
from aliquot.interfaces.cli.quick import BAD_INPUT


def do_each(names: Iterable[str], do: Callable[[str], object]) -> int:
    """Do it to each, once; every mistake is told on standard error. The exit code: 0 without any, else 2.

    Raises UnavailableError at once: without a service nothing more can be done.
    """
    code = 0
    for name in dict.fromkeys(names):
        try:
            do(name)
        except UnavailableError:
            raise
        except AliquotError as error:
            complain(str(error))
            code = BAD_INPUT
    return code
