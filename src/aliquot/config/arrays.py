"""Arrays: many jobs alike, with an index each, and how many of them may be under way at once.

array: 100                        # indices 0 to 99
array: {size: 100, width: 10}     # ten at a time
array: 0-99%10                    # the same, as Slurm writes it
array: 1,5,10-20:2                # these indices: 1, 5, 10, 12, ... 20
"""

from __future__ import annotations

import re
from typing import Final

from aliquot.config.fields import Field, Table, fail_at, read_fields
from aliquot.config.readers import whole
from aliquot.config.tree import Item
from aliquot.core.errors import SpecError
from aliquot.core.jobs import Array
from aliquot.core.queueing.deps import check_array

MOST_JOBS: Final = 1_000_000
ARRAY: Final[Table] = {"size": Field(whole, required=True), "width": Field(whole)}
_HINT: Final = "a number of jobs, {size: 100, width: 10}, or indices such as 0-99%10 or 1,5,10-20:2"
_PART: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?")


def read_array(word: str, item: Item) -> tuple[Array, tuple[int, ...]]:
    """The array called `word`, and the indices of its jobs, rising."""
    if item.text is not None and not item.text.lstrip("-").isdigit():
        indices, width = _read_indices(item)
        array = Array(word, len(indices), width)
    else:
        said = {"size": whole(item)} if item.text is not None else read_fields(item, ARRAY)
        array = Array(word, **said)
        indices = None
    try:
        check_array(array, "array")
    except SpecError as error:
        fail_at(item, error)
    if array.size > MOST_JOBS:
        (item.get("size") or item).fail(f"an array of {array.size} jobs", f"{MOST_JOBS} at most")
    return array, tuple(range(array.size)) if indices is None else indices


def _read_indices(item: Item) -> tuple[tuple[int, ...], int | None]:
    text, percent, most = item.scalar().partition("%")
    if percent and not most.isdigit():
        item.fail(f"{most!r} is not how many may run at once", _HINT)
    found: set[int] = set()
    for part in text.split(","):
        match = _PART.fullmatch(part.strip())
        if match is None:
            item.fail(f"{part!r} is no index and no range of them", _HINT)
        first, last = int(match[1]), int(match[2] or match[1])
        step = int(match[3] or 1)
        if last < first or not step:
            item.fail(f"{part!r} holds no index", "the lower index first, and a step of 1 or more")
        if (last - first) // step >= MOST_JOBS:
            item.fail(f"an array of {(last - first) // step + 1} jobs", f"{MOST_JOBS} at most")
        found.update(range(first, last + 1, step))
    return tuple(sorted(found)), int(most) if percent else None
