"""The policies that need no document: where jobs are placed, who goes next, and presets for a site."""

from __future__ import annotations

from typing import Final

from aliquot.config.objectives import PRESETS, weighed
from aliquot.config.policies import PLACEMENTS
from aliquot.core.room.disciplines import EASY
from aliquot.core.settings import Backfill, Discipline, Preemption, Settings

Policies = tuple[tuple[str, Settings], ...]
_BEST_FIT: Final = (("best-fit", 1.0),)

# Where sharing itself is the question: whole cards as most sites hand them out, and slices as one could.
COMPARED: Final[Policies] = (
    (
        "whole-card-fifo",
        Settings(policy=(("spread", 1.0),), shared=False, discipline=Discipline.STRICT, by_priority=False),
    ),
    ("binpack-slices", Settings(policy=_BEST_FIT)),
)
ONE_QUEUE: Final[Policies] = (
    ("backfill", Settings(policy=_BEST_FIT, backfill=Backfill())),
    ("easy", Settings(policy=_BEST_FIT, backfill=EASY)),
    ("skip-ahead", Settings(policy=_BEST_FIT)),
    ("fifo", Settings(policy=_BEST_FIT, discipline=Discipline.STRICT, by_priority=False)),
)
"""Who goes next, whoever asks."""

SHARING: Final[Policies] = (
    ("fair", Settings(policy=_BEST_FIT, backfill=Backfill())),
    ("reclaim", Settings(policy=_BEST_FIT, preemption=Preemption())),
)
"""Between queues: by share and decayed usage, and with what was lent taken back."""

BUILTIN: Final[Policies] = (
    *((placement, Settings(policy=((placement, 1.0),))) for placement in PLACEMENTS),
    *COMPARED,
    *ONE_QUEUE,
    *SHARING,
    *((preset.name, weighed(Settings(), preset.objectives)) for preset in PRESETS),
)
"""(name, settings), the default first."""

ABOUT: Final = {
    "future-packing": "the default: shut out as little as possible of the demand that is likely to come",
    "fgd": "where fragmentation grows least, as published",
    "best-fit": "the fullest node that will do (binpack)",
    "spread": "the emptiest node",
    "gpu-packing": "cards in use first, then nodes in use",
    "gpu-clustering": "beside jobs that ask alike",
    "dot-product": "where what is asked looks like what is left",
    "random": "any that will do",
    "whole-card-fifo": "to compare with: whole cards in order of arrival, spread over the nodes",
    "binpack-slices": "to compare with: slices, packed, by priority",
    "backfill": "shorter jobs fill gaps, long waits get reservations, wide jobs sooner",
    "easy": "to compare with: EASY backfill, one reservation for the first in line",
    "skip-ahead": "to compare with: whoever fits starts, and wide jobs wait",
    "fifo": "to compare with: strictly in order of arrival",
    "fair": "queues by share and decayed use, with backfill",
    "reclaim": "as a queue's own cards are needed, they are taken back from who borrowed them",
    **{preset.name: preset.about for preset in PRESETS},
}
"""What each is, in a line."""
