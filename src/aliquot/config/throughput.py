"""What a job says it does at full speed, against what the cards of the site could do at the most.

More than that is a slip of the unit or of the number of cards, and makes an MFU that cannot be. The most is
that of the fastest number format a card has facts of: a model trained in FP8 does more than the peak in BF16.
Where no card takes the job, or nothing is known of one that does, whatever is said is taken.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from aliquot.config.tree import Item
from aliquot.core.inventory import CardModel, accepts
from aliquot.core.jobs import Job, Request
from aliquot.core.slices import resolve_ask
from aliquot.core.units import FULL

NO_FLOPS: Final = frozenset({"int8"})
"""Number formats whose operations are no floating-point ones."""


def check_throughput(item: Item, job: Job, gflops: int, models: Iterable[CardModel]) -> None:
    """Fails where `gflops`, which `item` says, are more than any cards of `models` can do for `job`."""
    known = tuple(models)
    most = [_most_of(request, known) for request in _at_first_width(job) if request.cards]
    if None in most:
        return
    peak = sum(filter(None, most))
    if gflops > peak:
        item.fail(
            f"{item.text} TFLOP/s are more than its cards can do",
            f"at most {peak / 1000:g}, what all its cards do together, here the fastest that it may have",
        )


def _at_first_width(job: Job) -> tuple[Request, ...]:
    """What it is asked to run on at the speed of which its throughput is said."""
    if job.elastic is None:
        return job.members
    first = job.elastic.widths[0]
    if len(job.members) == 1:
        return (replace(job.members[0], cards=first),)
    return job.members[:first]


def _most_of(request: Request, models: tuple[CardModel, ...]) -> int | None:
    """GFLOP/s of the fastest cards that `request` may have, in proportion to its part; None: unknown."""
    rates = []
    for model in models:
        vector = resolve_ask(request.ask, model.usable_mib) if accepts(request.profile, model) else None
        if vector is not None:
            rate = max((rate for name, rate in model.gflops if name not in NO_FLOPS), default=None)
            rates.append(None if rate is None else rate * vector.compute * request.cards // FULL)
    known = [rate for rate in rates if rate is not None]
    return max(known) if known and len(known) == len(rates) else None
