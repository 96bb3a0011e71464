"""Modules and functions stay small enough to read.

A compiled kernel is excepted: numba inlines poorly across calls, so a kernel may be one long loop.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from tests.architecture.conftest import Source

MODULE_LINES: Final = 400
FUNCTION_LINES: Final = 50
COMPILERS: Final = {"njit", "jit", "vectorize", "guvectorize", "compiled"}

# path -> why this one may be longer. Empty is right.
LONG_MODULES: Final[dict[str, str]] = {}
# "path::function" -> why this one may be longer. Empty is right.
LONG_FUNCTIONS: Final[dict[str, str]] = {}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def test_modules_fit_their_bound(sources: list[Source]) -> None:
    long = {source.path: lines for source in sources if (lines := count_lines(source)) > MODULE_LINES}
    assert {path: lines for path, lines in long.items() if path not in LONG_MODULES} == {}


def test_functions_fit_their_bound(sources: list[Source]) -> None:
    long = {name: lines for source in sources for name, lines in long_functions(source)}
    assert {name: lines for name, lines in long.items() if name not in LONG_FUNCTIONS} == {}


def test_exceptions_are_still_needed_and_say_why(sources: list[Source]) -> None:
    long = {source.path for source in sources if count_lines(source) > MODULE_LINES}
    long |= {name for source in sources for name, _ in long_functions(source)}
    exceptions = LONG_MODULES | LONG_FUNCTIONS
    assert [name for name in exceptions if name not in long] == []
    assert [name for name, why in exceptions.items() if len(why.split()) < 3] == []


def count_lines(source: Source) -> int:
    return len(source.text.splitlines())


def long_functions(source: Source) -> Iterator[tuple[str, int]]:
    """Functions over the bound as ("path::name", lines), counted from `def` to the last line."""
    for node in ast.walk(source.tree):
        if isinstance(node, Function) and not is_kernel(node):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES:
                yield f"{source.path}::{node.name}", lines


def is_kernel(function: Function) -> bool:
    return any(decorator_name(decorator) in COMPILERS for decorator in function.decorator_list)


def decorator_name(decorator: ast.expr) -> str:
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    return target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
