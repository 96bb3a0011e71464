"""When the demand mix is frozen anew, and what it then is.

The mix (which requests, how often) steers placement. It is part of the world, frozen for an epoch, because a
mix that moved with every request would void every cached score.
"""

from __future__ import annotations

from aliquot.core.events import EpochBegan
from aliquot.core.settings import MixSource, Settings
from aliquot.core.world import World


def next_epoch(world: World, settings: Settings, at: int) -> EpochBegan | None:
    """The epoch that is due, or None. With a window: one every `mix_epoch` submissions.

    The first begins with the first submission, so a site that starts empty has a mix at once.
    """
    if settings.mix_source is not MixSource.WINDOW or world.tally.submitted == 0:
        return None
    due = 1 + world.tally.submitted // settings.mix_epoch
    if world.epoch.number >= due:
        return None
    return EpochBegan(at, due, settings.seed, world.recent_demand())
