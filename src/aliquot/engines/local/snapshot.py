"""A world as bytes and back, so that a restart folds the last few thousand events instead of all."""

from __future__ import annotations

import msgspec

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
