"""A world as bytes and back, so that a restart folds the last few thousand events instead of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from aliquot.core.events import Event
from aliquot.core.image import WorldImage, image_of, world_of
from aliquot.core.world import World

_ENCODER = msgspec.json.Encoder(order="deterministic")
_DECODER = msgspec.json.Decoder(WorldImage)


def encode_world(world: World) -> bytes:
    """`world` as JSON; equal worlds give equal bytes but for `version`."""
    return _ENCODER.encode(image_of(world))


def decode_world(image: bytes, **how: int) -> World:
    """The world of `image`; `how` as `world_of` takes it. Raises msgspec.DecodeError if unreadable."""
    return world_of(_DECODER.decode(image), **how)


class Shelf(Protocol):
    """What keeps worlds."""

    def save(self, world: World) -> None:
        """Keep `world`, which is the fold of everything recorded."""
        ...


class SnapshotKeeper:
    """Watches a loop and saves its world once per `every` events, so that a restart never folds more."""

    def __init__(self, journal: Shelf, *, every: int = 20_000) -> None:
        self._journal, self._every, self._since = journal, every, 0

    def see(self, events: Sequence[Event], world: World) -> None:
        """Called after `events` were recorded and folded into `world`."""
        self._since += len(events)
        if self._since >= self._every:
            self._since = 0
            self._journal.save(world)
