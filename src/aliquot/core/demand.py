"""When the demand mix is frozen anew, and what it then is.

The mix (which requests, how often) steers placement. It is part of the world, frozen for an epoch, because a
mix that moved with every request would void every cached score.
"""

from __future__ import annotations

from aliquot.core.events import EpochBegan
from aliquot.core.settings import MixSource, Settings
from aliquot.core.world import World

EARLY_MILLI = (100, 300)
"""Parts of the first epoch after which it begins anew: its first mix is that of a single request."""


def next_epoch(world: World, settings: Settings, at: int) -> EpochBegan | None:
    """The epoch that is due, or None. With a window: one every `mix_epoch` submissions.

    The first begins with the first submission, so a site that starts empty has a mix at once; of 500
    submissions further ones begin after 50 and 150.
    """
    submitted = world.tally.submitted
    if settings.mix_source is not MixSource.WINDOW or submitted == 0:
        return None
    early = (settings.mix_epoch * part // 1000 for part in EARLY_MILLI)
    due = 1 + sum(1 < start <= submitted for start in early) + submitted // settings.mix_epoch
    if world.epoch.number >= due:
        return None
    return EpochBegan(at, due, settings.seed, world.recent_demand())
