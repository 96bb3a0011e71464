"""The core is pure: values in, values out. It imports only what is listed here and calls nothing impure.

The list says what may be used, so a clock, a socket or a logger is refused without being named.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

import pytest

from tests.architecture.conftest import Source

ALLOWED_MODULES: Final = {
    "__future__",
    "abc",
    "array",
    "bisect",
    "collections",
    "dataclasses",
    "decimal",
    "importlib",  # compiled kernels are loaded only where they are used
    "enum",
    "fractions",
    "functools",
    "hashlib",
    "heapq",
    "itertools",
    "math",
    "operator",
    "re",
    "types",
    "typing",
    # columns, kernels, tables with cheap snapshots, frozen records
    "immutables",
    "msgspec",
    "numba",
    "numpy",
    # ourselves; the layers are checked elsewhere
    "aliquot",
}
IMPURE_CALLS: Final = {
    "print": "the core tells by values",
    "input": "the core asks nobody",
    "open": "the core reads no files",
    "exec": "code is written, not made",
    "eval": "code is written, not made",
    "__import__": "imports stand at the top",
    "hash": "differs from run to run for text; use a stable key",
    "id": "an address differs from run to run; use an identity from `ids`",
}
# The pure side of numpy.random: generators made from a seed.
SEEDED: Final = {"default_rng", "Generator", "PCG64", "Philox", "SeedSequence", "BitGenerator"}


def test_core_imports_only_what_is_pure(core_sources: list[Source]) -> None:
    found = [
        f"{source.path}:{line} imports {module}"
        for source in core_sources
        for line, module in imported(source.tree)
        if module.split(".")[0] not in ALLOWED_MODULES
    ]
    assert found == []


def test_core_calls_nothing_impure(core_sources: list[Source]) -> None:
    found = [
        f"{source.path}:{line} calls {name}: {IMPURE_CALLS[name]}"
        for source in core_sources
        for line, name in impure_calls(source.tree)
    ]
    assert found == []


def test_randomness_in_core_comes_from_a_seed_argument(core_sources: list[Source]) -> None:
    found = [
        f"{source.path}:{line} {what}" for source in core_sources for line, what in unseeded(source.tree)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("code", "complaints"),
    [
        pytest.param("np.random.shuffle(a)", 1, id="the hidden global generator"),
        pytest.param("np.random.default_rng()", 1, id="a generator without a seed"),
        pytest.param("np.random.default_rng(None)", 1, id="a seed of None is no seed"),
        pytest.param("np.random.default_rng(seed)", 0, id="a generator from an argument"),
        pytest.param("rng.random()", 0, id="a generator handed in"),
    ],
)
def test_unseeded_randomness_is_recognised(code: str, complaints: int) -> None:
    assert len(list(unseeded(ast.parse(code)))) == complaints


def imported(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, module) of every import, at any depth of the file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, node.module or "."


def impure_calls(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, builtin) of every call of IMPURE_CALLS; a class with its own `__hash__` may call hash."""
    excused = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and any(is_named(part, "__hash__") for part in node.body)
        for inner in ast.walk(node)
        if is_named(inner, "hash")
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func in excused:
            continue
        if node.func.id in IMPURE_CALLS:
            yield node.lineno, node.func.id


def is_named(node: ast.AST, name: str) -> bool:
    """Whether `node` is the variable or the function of that name."""
    return getattr(node, "id", None) == name or getattr(node, "name", None) == name


def unseeded(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, what) of every use of numpy's global generator or of a generator without a seed."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr not in SEEDED:
            if ast.unparse(node.value) in {"np.random", "numpy.random"}:
                yield node.lineno, f"uses the global generator: np.random.{node.attr}"
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("default_rng"):
            seed = [*node.args, *(keyword.value for keyword in node.keywords)]
            if not seed or (isinstance(seed[0], ast.Constant) and seed[0].value is None):
                yield node.lineno, "makes a generator without a seed"
