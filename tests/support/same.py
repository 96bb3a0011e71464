"""Two worlds compared, and the columns counted anew from the grants in plain Python.

`fingerprint` holds everything a world says except how often it was written (its version and those of its
rows), in one order under every hash seed.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from aliquot.core.columns import CHUNK, MAX_EDGES, MAX_NUMA
from aliquot.core.draft import Draft
from aliquot.core.grants import GrantState, Seat
from aliquot.core.ledger import Handles, Ledger
from aliquot.core.records import Frozen, NodeRecord
from aliquot.core.slices import Vector

COLUMNS = ("kind", "usable", "idle", "cpu", "host", "left", "numa_cpu", "numa_host", "traffic")
Row = dict[str, Any]


def same_world(a: Frozen, b: Frozen) -> bool:
    """Whether two worlds say the same."""
    return fingerprint(a) == fingerprint(b)


def fingerprint(world: Frozen) -> dict[str, Any]:
    """All that `world` says, as plain values; equal worlds give equal bytes through JSON."""
    content = {
        "columns": rows_of(world),
        "nodes": sorted(world.nodes.items()),
        "node_at": world.node_at,
        "kinds": world.kinds,
        "jobs": sorted(world.jobs.items()),
        "grants": sorted(world.grants.items()),
        "pending": world.pending,
        "epoch": world.epoch,
        "strained": sorted(world.strained),
        "residents": sorted((row, held) for row, held in world.residents.items() if held),
        "tally": world.tally,
        "waiting": sorted(world.waiting.items()),
        "kept": world.kept,
        "usage": sorted(world.usage.items()),
        "past": sorted(world.past.items()),
        "company": sorted(world.company.items()),
        "tide": world.tide,
        "arrays": sorted(item for item in world.arrays.items() if item[1]),
    }
    plain: dict[str, Any] = msgspec.to_builtins(content, order="deterministic")
    return plain


def encoded(world: Frozen) -> bytes:
    """`fingerprint` as JSON."""
    return msgspec.json.encode(fingerprint(world), order="deterministic")


def rows_of(source: Frozen | Draft | Ledger) -> list[Row]:
    """The columns, one dict per row, without versions."""
    chunks: Handles | list[Any] = source.chunks
    count = source.rows if isinstance(source, (Frozen, Ledger)) else source.node_count
    return [
        {name: getattr(chunks[row // CHUNK], name)[row % CHUNK].tolist() for name in COLUMNS}
        for row in range(count)
    ]


def versions_of(source: Frozen) -> list[int]:
    """How often each row was written."""
    return [int(source.chunks[row // CHUNK].version[row % CHUNK]) for row in range(source.rows)]


def recounted(world: Frozen) -> list[Row]:
    """What the columns must hold: each node less what is seated on it, nothing below 0."""
    return [_recount_row(world, world.nodes[node]) for node in world.node_at]


def excess(world: Frozen) -> dict[tuple[int, str, int], int]:
    """(row, dimension, position) -> booked beyond capacity, where it is; empty in a world without strain."""
    over = {}
    for row, node in enumerate(world.node_at):
        for (what, at), free in _balance(world, world.nodes[node]).items():
            if free < 0:
                over[row, what, at] = -free
    return over


def chunks_as_bytes(handles: Handles) -> list[bytes]:
    """Every byte of every column, versions too: what an identity must bring back."""
    return [np.ascontiguousarray(column).tobytes() for chunk in handles for column in chunk]


def _recount_row(world: Frozen, record: NodeRecord) -> Row:
    free = {key: max(0, left) for key, left in _balance(world, record).items()}
    is_open = record.up and not record.drained
    cards = record.node.cards
    usable = [at for at, card in enumerate(cards) if is_open and card.uuid not in record.faulty]
    busy = {at for seat in _seats(world, record) for at in range(len(cards)) if seat.mask >> at & 1}
    traffic = [0] * MAX_EDGES
    for seat in _seats(world, record):
        for edge, rate in seat.edges:
            traffic[edge] += rate
    return {
        "kind": record.kind,
        "usable": sum(1 << at for at in usable),
        "idle": sum(1 << at for at in usable if at not in busy),
        "cpu": free["cpu", 0] if is_open else 0,
        "host": free["host", 0] if is_open else 0,
        "left": [
            [free[what, at] if at in usable else 0 for what in ("compute", "memory", "bandwidth")]
            for at in range(world.cards)
        ],
        "numa_cpu": [free["numa_cpu", at] if is_open else 0 for at in range(MAX_NUMA)],
        "numa_host": [free["numa_host", at] if is_open else 0 for at in range(MAX_NUMA)],
        "traffic": traffic,
    }


def _balance(world: Frozen, record: NodeRecord) -> dict[tuple[str, int], int]:
    """Capacity less bookings in every dimension, below 0 where too much is booked."""
    node = record.node
    left = {("cpu", 0): node.cpu_milli, ("host", 0): node.host_mib}
    for at in range(MAX_NUMA):
        known = node.numa[at] if at < len(node.numa) else None
        left["numa_cpu", at] = known.cpu_milli if known else 0
        left["numa_host", at] = known.host_mib if known else 0
    for at, card in enumerate(node.cards):
        left["compute", at] = left["bandwidth", at] = 1000
        left["memory", at] = card.model.usable_mib
    for seat in _seats(world, record):
        left["cpu", 0] -= seat.cpu
        left["host", 0] -= seat.host
        for at in range(len(node.cards)):
            if seat.mask >> at & 1:
                left["compute", at] -= seat.vector.compute
                left["memory", at] -= seat.vector.memory
                left["bandwidth", at] -= seat.vector.bandwidth
        for numa, cpu, host in seat.numa:
            left["numa_cpu", numa] -= cpu
            left["numa_host", numa] -= host
    return left


def _seats(world: Frozen, record: NodeRecord) -> list[Any]:
    """What is booked on the node: seats found through the grants' placements, not through `residents`.

    And what is taken beyond all grants.
    """
    crowd = [
        Seat(record.row, 1 << at, Vector(compute, memory, 0))
        for at, card in enumerate(record.node.cards)
        for name, compute, memory in record.crowd
        if name == card.uuid
    ]
    return crowd + [
        grant.seat
        for held in world.grants.values()
        for grant in held
        if grant.placement.node == record.node.id and grant.seat is not None
    ]


def orphans(world: Frozen) -> list[str]:
    """Jobs with a grant that names something that is not there, sorted."""
    return sorted(
        job for job, held in world.grants.items() if any(grant.state is GrantState.ORPHANED for grant in held)
    )
