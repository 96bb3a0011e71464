"""Reads the plain values of the command line, text, numbers and paths, without a library that checks them.

The parser hands every value to a validating library, which takes longer to load than everything else that a
short command does. What is plainly right is read here; anything else goes the usual way, so that a mistake
is told in the same words as ever.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, get_args, get_origin

import typer

NOT_PLAIN: Final = object()
_WHOLE: Final = re.compile(r"-?[0-9]{1,18}")
_DECIMAL: Final = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?")


def read_plainly(param: Any) -> None:
    """From now on `param`, an option or argument of the parser, reads plain values by itself."""
    usual = getattr(param, "get_runtime_param", None)
    descriptor = getattr(param, "type_descriptor", None)
    if usual is None or descriptor is None or isinstance(getattr(usual, "__self__", None), _Plain):
        return
    kind, info = descriptor.annotation, descriptor.parameter_info
    is_list = get_origin(kind) is list
    read = _READERS.get(get_args(kind)[0] if is_list else kind)
    if read is not None and info.parser is None and not info.clamp:
        plain = _Plain(usual, read, info, is_list=is_list)
        param.get_runtime_param = plain.itself


class _Plain:
    """Stands where the parser keeps what reads the values of one parameter."""

    def __init__(
        self,
        usual: Callable[[], Any],
        read: Callable[[Any, Any], Any],
        info: Any,
        *,
        is_list: bool,
    ) -> None:
        self._usual, self._read, self._info, self._is_list = usual, read, info, is_list

    def itself(self) -> _Plain:
        """What the parser asks for."""
        return self

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value for the command; raises as the parser does."""
        is_many = param.multiple or param.nargs == -1
        if value is None:
            return () if is_many else None
        if self._read is _path and "" in (value if is_many else (value,)):
            # a variable of the shell that is not set; as a path it would be the folder one is in
            raise typer.BadParameter("it is empty; a path is right", ctx=ctx, param=param)
        if is_many == self._is_list and not (is_many and isinstance(value, str)):
            read = (
                [self._read(one, self._info) for one in value] if is_many else self._read(value, self._info)
            )
            if read is not NOT_PLAIN and not (is_many and NOT_PLAIN in read):
                return read
        return self._usual().coerce(value, param=param, ctx=ctx)


def _text(value: Any, info: Any) -> Any:
    return value if isinstance(value, str) else NOT_PLAIN


def _whole(value: Any, info: Any) -> Any:
    if isinstance(value, str):
        value = int(value) if _WHOLE.fullmatch(value) else NOT_PLAIN
    return _within(value, info) if type(value) is int else NOT_PLAIN


def _decimal(value: Any, info: Any) -> Any:
    if isinstance(value, str):
        value = float(value) if _DECIMAL.fullmatch(value) else NOT_PLAIN
    return _within(value, info) if type(value) is float else NOT_PLAIN


def _path(value: Any, info: Any) -> Any:
    if info.exists or info.resolve_path or info.allow_dash or info.writable or info.path_type is not None:
        return NOT_PLAIN
    if not (info.file_okay and info.dir_okay and isinstance(value, str)):
        return NOT_PLAIN
    is_barred = info.readable and os.access(value, os.F_OK) and not os.access(value, os.R_OK)
    return NOT_PLAIN if is_barred else Path(value)


def _flag(value: Any, info: Any) -> Any:
    return NOT_PLAIN


def _within(value: float, info: Any) -> Any:
    is_low = info.min is not None and value < info.min
    is_high = info.max is not None and value > info.max
    return NOT_PLAIN if is_low or is_high else value


_READERS: Final[dict[Any, Callable[[Any, Any], Any]]] = {
    str: _text,
    int: _whole,
    float: _decimal,
    Path: _path,
    bool: _flag,
}
