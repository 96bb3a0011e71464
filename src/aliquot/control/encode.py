"""Values of the core as JSON: the same bytes for the same value, on every machine.

Structs and tuples with names become maps, enumerations their words, ids their text. A number that is not
finite has no place in JSON and is a bug of whoever made it.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Mapping
from enum import Enum, IntEnum
from pathlib import Path
from typing import Any

import msgspec

from aliquot.core.errors import BrokenInvariantError
from aliquot.core.ids import GrantId, NodeId


def encode_json(value: object) -> bytes:
    """`value` as indented JSON in UTF-8, with a newline at the end; keys in the order of their fields."""
    return (json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def write_json(path: Path, value: object) -> None:
    """Write `value` to `path`, all or nothing: an error leaves what was there."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    content = encode_json(value)
    try:
        beside.write_bytes(content)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def plain(value: Any) -> Any:
    """`value` in maps, lists, texts, numbers, true, false and null only."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, Enum):
        return value.name.lower() if isinstance(value, IntEnum) else plain(value.value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise BrokenInvariantError(f"{value!r} in a result")
        return value
    if isinstance(value, NodeId):
        return str(value)
    if isinstance(value, GrantId):
        return f"{value.job}/{value.attempt}/{value.member}"
    fields = _fields(value)
    if fields is not None:
        return {name: plain(field) for name, field in fields}
    if isinstance(value, (frozenset, set)):
        return sorted(plain(element) for element in value)
    if isinstance(value, (list, tuple)):
        return [plain(element) for element in value]
    raise BrokenInvariantError(f"{type(value).__name__} has no form in JSON")


def _fields(value: Any) -> list[tuple[str, Any]] | None:
    """Names and values of whatever has both; None for the rest. A field `_x` is the value's own business."""
    if isinstance(value, Mapping):
        return [(str(plain(key)), field) for key, field in value.items()]
    if isinstance(value, msgspec.Struct):
        return [(name, getattr(value, name)) for name in value.__struct_fields__]
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value) if not field.name.startswith("_")]
        return [(name, getattr(value, name)) for name in names]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return [(name, getattr(value, name)) for name in value._fields]
    return None
