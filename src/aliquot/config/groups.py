"""Groups of a gang's members, and wishes for where members are, seen from each other.

groups:
  - {name: launcher, cpu: 4}
  - {name: workers, members: 4, minimum: 2, gpu: 8, topology: {required: rack}}
"""

from __future__ import annotations

from typing import Any, Final

from aliquot.config.fields import Field, Table, fail_at, read_fields
from aliquot.config.members import ASKED, MOST_MEMBERS, read_members
from aliquot.config.readers import choice, count, name, whole
from aliquot.config.requests import Known
from aliquot.config.tree import Item
from aliquot.core.errors import SpecError
from aliquot.core.jobs import Job, Request, gang_of
from aliquot.core.queueing.deps import check_minimum
from aliquot.core.wishes import LEVELS, Group, Level, Wish

WISH: Final[Table] = {
    "required": Field(choice(Level)),
    "preferred": Field(choice(Level)),
    "balanced": Field(choice(Level)),
    "slice": Field(count(1, MOST_MEMBERS)),
    "over": Field(count(1, MOST_MEMBERS)),
}


def read_wish(item: Item) -> Wish:
    """`{required: rack}`, `{preferred: rack}`, `{balanced: rack, slice: 2, over: 2}`, or two of them."""
    values = read_fields(item, WISH)
    required, inner = values.get("required"), values.get("preferred") or values.get("balanced")
    if required is None and inner is None:
        item.fail(
            "says of no level what is wished", "required, preferred or balanced, such as required: rack"
        )
    if "preferred" in values and "balanced" in values:
        item.fail("both preferred and balanced", "keep one: one puts members together, the other apart")
    for key in ("slice", "over"):
        if key in values and "balanced" not in values:
            (item.get(key) or item).fail(
                f"{key!r} has no meaning without balanced", "balanced: rack, or leave it out"
            )
    if required is not None and inner is not None and LEVELS.index(inner) >= LEVELS.index(required):
        item.fail(
            f"what is inside one {required.value} can't be told apart by {inner.value}",
            f"a level below {required.value}, of {', '.join(level.value for level in LEVELS)}",
        )
    return Wish(**values)


GROUP: Final[Table] = {
    "name": Field(name, required=True),
    "members": Field(lambda item: item),
    "minimum": Field(whole),
    "topology": Field(read_wish, "wish"),
    **ASKED,
}
SITED: Final[Table] = {"groups": Field(lambda item: item), "topology": Field(read_wish, "wish")}


def read_members_and_groups(
    spec: Item, values: dict[str, Any], known: Known
) -> tuple[tuple[Request, ...], tuple[Group, ...]]:
    """What each member of a job asks for, and its groups, if it has any."""
    return read_groups(spec, values, known) if "groups" in values else (read_members(spec, values, known), ())


def read_groups(
    spec: Item, values: dict[str, Any], known: Known
) -> tuple[tuple[Request, ...], tuple[Group, ...]]:
    """Members and groups of a job; `values` are those of its own map. What all need to start comes first."""
    given: Item = values["groups"]
    for key in ("members", *ASKED):
        own = spec.get(key)
        if own is not None:
            own.fail(f"both {key!r} of the job and groups", "say it of each group")
    parts: dict[str, tuple[str, tuple[Request, ...], int | None, Wish | None]] = {}
    for item in given.elements():
        entry = read_fields(item, GROUP)
        word: str = entry["name"]
        if word in parts:
            item.fail(f"two groups called {word!r}", "a name for each")
        members = read_members(item, entry, known)
        try:
            check_minimum(entry.get("minimum"), len(members), "group")
        except SpecError as error:
            fail_at(item, error)
        wish: Wish | None = entry.get("wish")
        _check_alike(item, members, wish)
        parts[word] = (word, members, entry.get("minimum"), wish)
    if not parts:
        given.fail("no groups", "a list of maps with a name, or leave it out")
    if sum(len(members) for _, members, _, _ in parts.values()) > MOST_MEMBERS:
        given.fail("too many members in all", f"{MOST_MEMBERS} at most")
    return gang_of(list(parts.values()))


def check_sites(spec: Item, job: Job) -> None:
    """Fail where wishes or groups meet what they do not go with."""
    if not job.is_sited:
        return
    key = "groups" if job.groups else "topology"
    item = spec.get(key) or spec
    for other, is_there, why in (
        ("spread", job.spread, "balanced says how members are spread"),
        (
            "elastic",
            job.elastic is not None and bool(job.groups),
            "which group would change its width is not known",
        ),
        ("scatter", job.scatter and bool(job.groups), "a gang is on several nodes as it is"),
        ("together", job.together is not None, "who shares cards is put where the other is"),
    ):
        if is_there:
            (spec.get(other) or spec).fail(f"both {key} and {other}", f"leave one out: {why}")
    wish = job.wish
    if wish is None:
        return
    item = spec.get("topology") or spec
    if len(job.members) == 1 and not job.scatter:
        item.fail("one member on one node is near itself", "leave it out, or add members")
    if job.groups and wish.balanced is not None:
        item.fail("groups are not cut into slices together", "say balanced of each group")
    _check_alike(item, job.members, wish)


def _check_alike(item: Item, members: tuple[Request, ...], wish: Wish | None) -> None:
    if wish is None or wish.balanced is None:
        return
    if len({*members}) > 1:
        item.fail("slices of members that ask for different things", "a group for each kind, or no balanced")
    if len(members) % wish.slice:
        item.fail(f"{len(members)} members are no slices of {wish.slice}", "a slice that divides the members")
