"""A world as bytes and back, so that a restart folds the last few thousand events instead of all.

Everything is kept that a fold of the whole record would have given, versions of rows apart. The columns are
not: they are recounted from the grants, which is what they are made of. Bytes are the same under every hash
seed. The world's private fields are read and written here, and nowhere else outside the core.
"""

from __future__ import annotations

import immutables
import msgspec
from msgspec.structs import replace

from aliquot.core.grants import Grant
from aliquot.core.ids import GrantId, JobId
from aliquot.core.inventory import NodeKind
from aliquot.core.jobs import Request
from aliquot.core.lifecycle import Phase
from aliquot.core.records import Epoch, JobRecord, NodeRecord, Tally
from aliquot.core.world import World


class WorldImage(msgspec.Struct, frozen=True):
    """All tables of a world. Nodes are in row order; `residents[row]` in the order they came."""

    version: int
    cards: int
    nodes: tuple[NodeRecord, ...]
    kinds: tuple[NodeKind, ...]
    jobs: tuple[JobRecord, ...]
    grants: tuple[tuple[Grant, ...], ...]
    residents: tuple[tuple[int, tuple[GrantId, ...]], ...]
    epoch: Epoch
    tally: Tally
    window: tuple[Request, ...]
    over: tuple[JobId, ...]
    owed: tuple[JobId, ...]
    owed_moves: tuple[GrantId, ...]


_ENCODER = msgspec.json.Encoder(order="deterministic")
_DECODER = msgspec.json.Decoder(WorldImage)


def encode_world(world: World) -> bytes:
    """`world` as JSON; equal worlds give equal bytes but for `version`."""
    return _ENCODER.encode(_image(world))


def decode_world(image: bytes, *, window: int = 2000) -> World:
    """The world of `image`. Raises msgspec.DecodeError where it cannot be read."""
    return _world(_DECODER.decode(image), window)


def _image(world: World) -> WorldImage:
    return WorldImage(
        version=world.version,
        cards=world.ledger.cards,
        nodes=tuple(replace(world.nodes[name], index_of={}) for name in world.node_at),
        kinds=world.kinds,
        jobs=tuple(world.jobs[job] for job in sorted(world.jobs)),
        grants=tuple(world.grants[job] for job in sorted(world.grants)),
        residents=tuple((row, held) for row, held in sorted(world.residents.items()) if held),
        epoch=world.epoch,
        tally=world.tally,
        window=tuple(world._window),
        over=tuple(sorted(world._over)),
        owed=tuple(world._owed),
        owed_moves=tuple(world._owed_moves),
    )


def _world(image: WorldImage, window: int) -> World:
    world = World(window=window)
    world.version = image.version
    world.kinds = image.kinds
    world._kind_index = {kind: at for at, kind in enumerate(image.kinds)}
    world.jobs = immutables.Map({record.job.id: record for record in image.jobs})
    world.grants = immutables.Map({held[0].id.job: held for held in image.grants if held})
    world.residents = immutables.Map(dict(image.residents))
    world.epoch, world.tally = image.epoch, image.tally
    world._window.extend(image.window)
    world._over.update(image.over)
    world._owed = dict.fromkeys(image.owed)
    world._owed_moves = dict.fromkeys(image.owed_moves)
    world.ledger.widen(image.cards)
    for record in image.nodes:
        _add_node(world, record)
    for job in image.jobs:
        if job.phase is Phase.PENDING:
            world._enqueue(job.job)
    return world


def _add_node(world: World, record: NodeRecord) -> None:
    """The node in its row, which is recounted from the grants that are there already."""
    node = record.node
    whole = replace(record, index_of={card.uuid: at for at, card in enumerate(node.cards)})
    world.ledger.add_row()
    world.node_at = (*world.node_at, node.id)
    world.nodes = world.nodes.set(node.id, whole)
    world._recount(whole)
