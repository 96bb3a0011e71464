"""Gangs: a job whose members run on a node each and start together, or at least `minimum` of them.

`members: 4` is four times what the job itself asks for; a list says what each asks for, with a `count` where
several ask for the same.
"""

from __future__ import annotations

from typing import Any, Final

from aliquot.config.fields import Field, Table, fail_at, read_fields
from aliquot.config.readers import asked_cores, asked_memory, count, whole
from aliquot.config.requests import Known, read_request
from aliquot.config.tree import Item
from aliquot.core.errors import SpecError
from aliquot.core.jobs import Request
from aliquot.core.queueing.deps import check_minimum

MOST_MEMBERS: Final = 4096

ASKED: Final[Table] = {
    "cpu": Field(asked_cores, "cpu_milli"),
    "memory": Field(asked_memory, "host_mib"),
    "gpu": Field(lambda item: item),
}
MEMBER: Final[Table] = {"count": Field(count(1, MOST_MEMBERS)), **ASKED}
GANG: Final[Table] = {"members": Field(lambda item: item), "minimum": Field(whole)}


def read_members(spec: Item, values: dict[str, Any], known: Known) -> tuple[Request, ...]:
    """What each member of a job asks for; `values` are those of the job's own map."""
    members: Item | None = values.get("members")
    if members is None or members.items is None:
        request = _request(spec, values, known)
        return (request,) * (1 if members is None else count(1, MOST_MEMBERS)(members))
    for key in ASKED:
        own = spec.get(key)
        if own is not None:
            own.fail(f"both {key!r} of the job and a list of members", "say it of each member")
    found: list[Request] = []
    for item in members.elements():
        entry = read_fields(item, MEMBER)
        found += [_request(item, entry, known)] * entry.get("count", 1)
    if len(found) > MOST_MEMBERS:
        members.fail(f"a gang of {len(found)} members", f"{MOST_MEMBERS} at most")
    return tuple(found)


def read_minimum(spec: Item, values: dict[str, Any], members: int) -> int | None:
    """How many of `members` have to start together; None: nothing is said, so all."""
    minimum: int | None = values.get("minimum")
    try:
        check_minimum(minimum, members, "spec")
    except SpecError as error:
        fail_at(spec, error)
    return minimum


def _request(item: Item, values: dict[str, Any], known: Known) -> Request:
    cpu, memory = values.get("cpu_milli", 0), values.get("host_mib", 0)
    request = read_request(values.get("gpu"), cpu, memory, known)
    if not request.cards and not cpu and not memory:
        item.fail("asks for nothing", "add gpu, cpu or memory")
    return request
