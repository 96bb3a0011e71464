"""The columns of the world that placement reads and commits write.

One `NodeChunk` holds the rows of up to `CHUNK` nodes, in the fixed node order. Chunks are shared between
snapshots and copied before the first write (copy on write), so a snapshot costs one tuple of handles.

It is not a ledger: it knows nothing of jobs or owners. Every number is an integer (rule 1): 1/1000 of a
core, MiB, 1/1000 of a card, 1/1000 of a card's memory bandwidth, MB/s on an edge.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

CHUNK: Final = 256
COMPUTE: Final = 0
MEMORY: Final = 1
BANDWIDTH: Final = 2
DIMS: Final = 3
MAX_CARDS: Final = 16
MAX_NUMA: Final = 8
MAX_EDGES: Final = 8

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U32 = npt.NDArray[np.uint32]


class NodeChunk(NamedTuple):
    """Rows of up to CHUNK nodes; `c` runs over the world's widest node (at most MAX_CARDS).

    A card slot that does not exist or may not be used has its bit of `usable` clear; its `left` row is 0.
    """

    kind: I32  # [rows] index into the world's table of node kinds; -1: the node is gone
    usable: U32  # [rows] bit c: card c exists, is healthy and its node accepts work
    idle: U32  # [rows] bit c: nothing at all is booked on card c
    cpu: I64  # [rows] milli-cores left
    host: I64  # [rows] host memory left, MiB
    left: I32  # [rows, c, DIMS] what is left of each card, never negative
    numa_cpu: I32  # [rows, MAX_NUMA] milli-cores left per NUMA node; all 0 where NUMA is unknown
    numa_host: I32  # [rows, MAX_NUMA] MiB left per NUMA node
    traffic: I32  # [rows, MAX_EDGES] MB/s booked on each PCIe uplink or socket link of the node's wiring
    version: I64  # [rows] grows at every change of the row


def blank_chunk(rows: int, cards: int) -> NodeChunk:
    """A chunk of `rows` absent nodes with room for `cards` cards each."""
    return NodeChunk(
        kind=np.full(rows, -1, np.int32),
        usable=np.zeros(rows, np.uint32),
        idle=np.zeros(rows, np.uint32),
        cpu=np.zeros(rows, np.int64),
        host=np.zeros(rows, np.int64),
        left=np.zeros((rows, cards, DIMS), np.int32),
        numa_cpu=np.zeros((rows, MAX_NUMA), np.int32),
        numa_host=np.zeros((rows, MAX_NUMA), np.int32),
        traffic=np.zeros((rows, MAX_EDGES), np.int32),
        version=np.zeros(rows, np.int64),
    )


def copy_chunk(chunk: NodeChunk) -> NodeChunk:
    """An independent copy of every column."""
    return NodeChunk(
        chunk.kind.copy(),
        chunk.usable.copy(),
        chunk.idle.copy(),
        chunk.cpu.copy(),
        chunk.host.copy(),
        chunk.left.copy(),
        chunk.numa_cpu.copy(),
        chunk.numa_host.copy(),
        chunk.traffic.copy(),
        chunk.version.copy(),
    )
