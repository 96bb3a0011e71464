"""Tables of fields: which keys a map may have, how each value is read, and which core argument it becomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn, TypeVar

from aliquot.config.tree import Item, nearest
from aliquot.core.errors import DocumentError, SpecError

Reader = Callable[[Item], Any]
ValueT = TypeVar("ValueT")


class Field(NamedTuple):
    """How a key is read. `into` is the name its value gets; the key itself where empty."""

    read: Reader
    into: str = ""
    required: bool = False


Table = Mapping[str, Field]


def read_fields(item: Item, table: Table) -> dict[str, Any]:
    """Values by `into`, in the order of the document; absent and null keys are left out.

    Raises DocumentError for a key the table lacks (with the nearest that it has) and for a required one that
    is missing.
    """
    values: dict[str, Any] = {}
    for key, child in item.fields():
        if key not in table:
            child.fail(f"unknown key {key!r}", nearest(key, table))
        values[table[key].into or key] = table[key].read(child)
    for key, field in table.items():
        if field.required and (field.into or key) not in values:
            item.fail(f"{key!r} is missing", f"add {f'{item.path}.{key}' if item.path else key}")
    return values


def quantity(parse: Callable[..., ValueT], **options: object) -> Callable[[Item], ValueT]:
    """A reader that hands the written text to a parser of `core.units` and says where it failed."""

    def read(item: Item) -> ValueT:
        return located(item, lambda: parse(item.scalar(), "", **options))

    return read


def located(item: Item, make: Callable[[], ValueT]) -> ValueT:
    """What `make` returns; a SpecError in it becomes a DocumentError that points at `item`."""
    try:
        return make()
    except SpecError as error:
        where = f"{item.path}: {error.field}" if error.field and item.path else item.path or error.field
        raise DocumentError(
            error.message, file=item.file, line=item.line, field=where, value=item.text, hint=error.hint
        ) from error


def fail_at(item: Item, error: SpecError) -> NoReturn:
    """Say the core's `error` as one of `item`, or of its entry that the last word of the field names."""
    part = item.get(error.field.rpartition(".")[2]) or item
    raise part.error(error.message, error.hint) from error
