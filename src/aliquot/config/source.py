"""Files into items: YAML (several documents in one file), JSON, or a folder of both in order of names.

It looks at syntax only. A file that cannot be read, is empty, has a key twice or nests without end is refused
here; what the keys mean is known elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import yaml

from aliquot.config.tree import Item
from aliquot.core.errors import DocumentError

SUFFIXES: Final = (".yaml", ".yml", ".json")
MOST_DEPTH: Final = 24  # deeper than any document goes; ends a YAML anchor that holds itself
FEW_ITEMS: Final = 10_000  # any file may hold that many; a longer one as many as it has signs

_NULL: Final = "tag:yaml.org,2002:null"
_LOADER: Final = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader


def read_items(paths: Sequence[Path]) -> tuple[Item, ...]:
    """Every document of `paths`, in order; a folder is its files by name, not those of folders inside it.

    Raises DocumentError for a file that is missing, unreadable, empty, or not YAML or JSON.
    """
    return tuple(item for path in paths for file in _expand(path) for item in _read_file(file))


def read_text(text: str, name: str) -> tuple[Item, ...]:
    """Every document of one file, which was read before; `name` says where, and by its end what it is."""
    return tuple(_parse(text, Path(name)))


def text_files(paths: Sequence[Path]) -> list[tuple[str, str]]:
    """(name, text) of every file of `paths`, absolute, folders unfolded as in `read_items`."""
    return [(str(file.absolute()), _load(file)) for path in paths for file in _expand(path)]


def _expand(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.iterdir() if file.suffix in SUFFIXES and file.is_file())
    if not files:
        raise DocumentError(
            "no documents in this folder", file=str(path), hint="files in .yaml, .yml or .json"
        )
    return files


def _read_file(file: Path) -> list[Item]:
    return _parse(_load(file), file)


def _load(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise DocumentError("no such file", file=str(file), hint="a file or folder of documents") from error
    except UnicodeDecodeError as error:
        raise DocumentError("not a text in UTF-8", file=str(file), hint="save it as UTF-8") from error
    except OSError as error:
        raise DocumentError(f"cannot be read: {error.strerror}", file=str(file)) from error


def _parse(text: str, file: Path) -> list[Item]:
    read = _read_json if file.suffix == ".json" else _read_yaml
    try:
        items = [item for item in read(text, str(file)) if not item.null]
    except RecursionError as error:
        raise DocumentError("nested too deep", file=str(file), hint=f"{MOST_DEPTH} levels at most") from error
    if not items:
        raise DocumentError("holds no document", file=str(file), hint="apiVersion, kind, metadata and spec")
    return items


def _read_yaml(text: str, file: str) -> Iterator[Item]:
    try:
        nodes = list(yaml.compose_all(text, Loader=_LOADER))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        what = " ".join(part for part in (error.context, error.problem) if part)
        raise DocumentError(f"not YAML: {what}", file=file, line=line) from error
    except yaml.YAMLError as error:
        raise DocumentError(f"not YAML: {error}".split("\n", maxsplit=1)[0], file=file) from error
    budget = _Budget(file, max(FEW_ITEMS, len(text)))
    for node in nodes:
        yield _from_yaml(node, "", file, budget, 0)


class _Budget:
    """Counts items, so that a small file whose anchors double at every level cannot unfold without end."""

    def __init__(self, file: str, items: int) -> None:
        self.file, self.left = file, items

    def spend(self, line: int | None, depth: int) -> None:
        self.left -= 1
        if depth > MOST_DEPTH:
            raise DocumentError(
                "nested too deep", file=self.file, line=line, hint=f"{MOST_DEPTH} levels at most"
            )
        if self.left < 0:
            raise DocumentError(
                "unfolds into too many values", file=self.file, line=line, hint="fewer anchors"
            )


def _from_yaml(node: yaml.Node, path: str, file: str, budget: _Budget, depth: int) -> Item:
    line = node.start_mark.line + 1
    budget.spend(line, depth)
    if isinstance(node, yaml.ScalarNode):
        plain = not node.style
        return Item(file, line, path, text=node.value, plain=plain, null=plain and node.tag == _NULL)
    if isinstance(node, yaml.SequenceNode):
        children = enumerate(node.value)
        listed = tuple(_from_yaml(child, f"{path}[{at}]", file, budget, depth + 1) for at, child in children)
        return Item(file, line, path, items=listed)
    entries: dict[str, Item] = {}
    for key, value in node.value:
        at = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            raise DocumentError("a key that is not a word", file=file, line=at, field=path)
        _claim_key(entries, key.value, path, file, at)
        entries[key.value] = _from_yaml(value, _join(path, key.value), file, budget, depth + 1)
    return Item(file, line, path, entries=tuple(entries.items()))


class _Pairs(tuple[tuple[str, object], ...]):
    """A JSON object as read, repeated keys and all."""

    __slots__ = ()


class _Number(str):
    """A JSON number as written."""

    __slots__ = ()


def _read_json(text: str, file: str) -> Iterator[Item]:
    try:
        value = json.loads(
            text, object_pairs_hook=_Pairs, parse_int=_Number, parse_float=_Number, parse_constant=_Number
        )
    except json.JSONDecodeError as error:
        raise DocumentError(f"not JSON: {error.msg}", file=file, line=error.lineno) from error
    for document in value if isinstance(value, list) else [value]:
        yield _from_json(document, "", file, 0)


def _from_json(value: object, path: str, file: str, depth: int) -> Item:
    """JSON has no lines left once it is parsed; the path is where to look."""
    if depth > MOST_DEPTH:
        raise DocumentError("nested too deep", file=file, field=path, hint=f"{MOST_DEPTH} levels at most")
    if isinstance(value, _Pairs):
        entries: dict[str, Item] = {}
        for key, child in value:
            _claim_key(entries, key, path, file, None)
            entries[key] = _from_json(child, _join(path, key), file, depth + 1)
        return Item(file, None, path, entries=tuple(entries.items()))
    if isinstance(value, list):
        children = enumerate(value)
        return Item(
            file,
            None,
            path,
            items=tuple(_from_json(c, f"{path}[{at}]", file, depth + 1) for at, c in children),
        )
    if isinstance(value, bool):
        return Item(file, None, path, text="true" if value else "false", plain=True)
    if value is None:
        return Item(file, None, path, text="", plain=True, null=True)
    return Item(file, None, path, text=str(value), plain=isinstance(value, _Number))


def _claim_key(entries: dict[str, Item], key: str, path: str, file: str, line: int | None) -> None:
    if key in entries:
        raise DocumentError(
            "this key is given twice",
            file=file,
            line=line,
            field=_join(path, key),
            value=key,
            hint="keep one",
        )


def _join(path: str, key: str) -> str:
    """`spec.gpu.memory`; a key with other signs in quotes: `resource_quota["ai-lab/training"]`."""
    if not key.replace("_", "").replace("-", "").isalnum():
        return f'{path}["{key}"]'
    return f"{path}.{key}" if path else key
