"""A world as one value and back: what a fold of the whole record gives, versions of rows apart.

The columns are not kept: they are recounted from the grants, which is what they are made of. Everything is in
an order of its own, the same under every hash seed.
"""

from __future__ import annotations

from typing import Any

import immutables
import msgspec
from msgspec.structs import replace

from aliquot.core.company import Companies
from aliquot.core.decay import Account
from aliquot.core.grants import Grant
from aliquot.core.history import Alike, History
from aliquot.core.ids import GrantId, JobId
from aliquot.core.inventory import NodeKind
from aliquot.core.jobs import Request
from aliquot.core.lifecycle import Phase
from aliquot.core.records import Asked, Epoch, JobRecord, Kept, NodeRecord, Spent, Tally
from aliquot.core.tide import Tide, Tides, asked_milli
from aliquot.core.windows import Closure
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
    over: tuple[tuple[JobId, bool], ...]
    kept: tuple[Kept, ...]
    usage: tuple[tuple[str, Asked], ...]
    past: tuple[tuple[str, Account], ...]
    arrays: tuple[tuple[str, int], ...]
    elastic: tuple[JobId, ...]
    owed_sizes: tuple[JobId, ...]
    idle: tuple[JobId, ...]
    owed: tuple[JobId, ...]
    owed_moves: tuple[GrantId, ...]
    history: tuple[tuple[Alike, bytes], ...] = ()
    companies: tuple[tuple[JobId, ...], ...] = ()
    tide: Tide = Tide()
    closures: tuple[Closure, ...] = ()
    spent: tuple[tuple[str, str, Spent], ...] = ()


def image_of(world: World) -> WorldImage:
    """All of `world`."""
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
        over=tuple(sorted(world.edges.over.items())),
        kept=world.kept,
        usage=tuple((key[0], asked) for key, asked in sorted(world.accounts.usage.items(), key=_first)),
        past=tuple(sorted(world.accounts.past.items(), key=_first)),
        elastic=tuple(world._elastic),
        idle=tuple(world._idle),
        owed_sizes=tuple(world._owed_sizes),
        arrays=tuple(sorted(world.accounts.arrays.items())),
        owed=tuple(world._owed),
        owed_moves=tuple(world._owed_moves),
        history=world.history.groups,
        companies=world.companies.listed(),
        tide=world.tides.tide,
        closures=world.closures.all,
        spent=tuple((*key, spent) for key, spent in sorted(world.spending.book.items(), key=_first)),
    )


def world_of(
    image: WorldImage, *, window: int = 2000, half_life_ms: int = 0, quantile_milli: int = 0
) -> World:
    """The world of `image`."""
    world = World(window=window, half_life_ms=half_life_ms)
    world.history = History(quantile_milli, image.history)
    world.closures.all = image.closures
    world.spending.book = immutables.Map({(queue, model): spent for queue, model, spent in image.spent})
    world.version = image.version
    world.kinds = image.kinds
    world._kind_index = {kind: at for at, kind in enumerate(image.kinds)}
    world.jobs = immutables.Map({record.job.id: record for record in image.jobs})
    world.grants = immutables.Map({held[0].id.job: held for held in image.grants if held})
    world.residents = immutables.Map(dict(image.residents))
    world.epoch, world.tally = image.epoch, image.tally
    world._window.extend(image.window)
    world.edges.over.update(image.over)
    world.kept = image.kept
    wants = {record.job.id: asked_milli(record.job) for record in image.jobs if record.is_wanted}
    world.companies, world.tides = Companies(image.companies), Tides(image.tide, wants)
    world._idle = dict.fromkeys(image.idle)
    world._elastic = dict.fromkeys(image.elastic)
    world._owed_sizes = dict.fromkeys(image.owed_sizes)
    world.accounts.usage = immutables.Map({(queue, asked.model): asked for queue, asked in image.usage})
    world.accounts.past = immutables.Map(dict(image.past))
    world.accounts.arrays = immutables.Map(dict(image.arrays))
    world._owed = dict.fromkeys(image.owed)
    world._owed_moves = dict.fromkeys(image.owed_moves)
    world.ledger.widen(image.cards)
    for record in image.nodes:
        _add_node(world, record)
    for job in image.jobs:
        world.edges.hold(job.job.id, job.waits_for)
        if job.phase is Phase.PENDING:
            world.lines.enter(job.job)
    return world


def _add_node(world: World, record: NodeRecord) -> None:
    """The node in its row, which is recounted from the grants that are there already."""
    node = record.node
    whole = replace(record, index_of={card.uuid: at for at, card in enumerate(node.cards)})
    world.ledger.add_row()
    world.node_at = (*world.node_at, node.id)
    world.nodes = world.nodes.set(node.id, whole)
    world._recount(whole)


def _first(entry: tuple[Any, object]) -> Any:
    return entry[0]
