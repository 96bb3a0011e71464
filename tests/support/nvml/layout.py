"""The structures of the state file for Python, read from `state.h`, which stays their only definition.

It reads only the plain form that header keeps to; anything else raises ValueError. Nothing is compiled.
"""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any, Final

HEADER: Final = Path(__file__).with_name("state.h")

_TYPES: Final[dict[str, Any]] = {
    "char": ctypes.c_char,
    "uint8_t": ctypes.c_uint8,
    "uint32_t": ctypes.c_uint32,
    "int32_t": ctypes.c_int32,
    "uint64_t": ctypes.c_uint64,
}
_FIELD: Final = re.compile(r"(struct\s+)?(\w+)\s+(\w+)((?:\[\w+\])*)")


def read_constants(text: str) -> dict[str, int]:
    """Every `#define NAME number` of the header."""
    found = re.findall(r"^#define (\w+) (0x[0-9a-f]+|\d+)$", text, re.MULTILINE)
    return {name: int(number, 0) for name, number in found}


def read_structures(text: str, constants: dict[str, int]) -> dict[str, type[ctypes.Structure]]:
    """Every `struct name { ... };` as a ctypes structure, in order, so one may hold the ones before it."""
    made: dict[str, type[ctypes.Structure]] = {}
    for name, body in re.findall(r"^struct (\w+) \{\n(.*?)^\};", text, re.MULTILINE | re.DOTALL):
        lines = [line.strip() for line in body.split(";") if line.strip()]
        fields = [_read_field(line, made, constants) for line in lines]
        made[name] = type(name, (ctypes.Structure,), {"_fields_": fields})
    return made


def _read_field(
    line: str, made: dict[str, type[ctypes.Structure]], constants: dict[str, int]
) -> tuple[str, Any]:
    match = _FIELD.fullmatch(line)
    if match is None or (match[1] is None and match[2] not in _TYPES):
        raise ValueError(f"{HEADER.name}: cannot read the field {line!r}")
    kind: Any = made[match[2]] if match[1] else _TYPES[match[2]]
    for size in reversed(re.findall(r"\[(\w+)\]", match[4])):
        kind *= constants[size] if size in constants else int(size)
    return match[3], kind


_TEXT: Final = HEADER.read_text(encoding="utf-8")
CONSTANTS: Final = read_constants(_TEXT)
STRUCTURES: Final = read_structures(_TEXT, CONSTANTS)

State: Final[Any] = STRUCTURES["sim_state"]
NA: Final = CONSTANTS["SIM_NA"]
NA64: Final = CONSTANTS["SIM_NA64"]
