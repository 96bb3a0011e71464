"""Host cpu and memory on the NUMA nodes of the cards, as far as they go, then on the others in order."""

from __future__ import annotations

from aliquot.core.columns import NodeChunk
from aliquot.core.grants import bits
from aliquot.core.inventory import NodeKind


def split_host(
    chunk: NodeChunk, place: int, kind: NodeKind, mask: int, cpu: int, host: int
) -> tuple[tuple[int, int, int], ...]:
    """(numa node, milli-cores, MiB) taken for a member on cards `mask`; empty where NUMA is unknown.

    Spread evenly over the NUMA nodes of the cards first; what they lack comes from the others.
    """
    if kind.numa_nodes == 0:
        return ()
    columns = range(chunk.numa_cpu.shape[1])
    near = sorted({numa for at in bits(mask) if (numa := kind.card_numa[at]) is not None and numa in columns})
    order = near + [at for at in columns if at not in near]
    cpus = _take(cpu, [int(chunk.numa_cpu[place, at]) for at in order], len(near))
    hosts = _take(host, [int(chunk.numa_host[place, at]) for at in order], len(near))
    return tuple((at, c, h) for at, c, h in zip(order, cpus, hosts, strict=True) if c or h)


def _take(need: int, free: list[int], near: int) -> list[int]:
    """Split `need` over `free`: even shares of the first `near`, the rest first come."""
    taken = [0] * len(free)
    for at in range(near):
        taken[at] = min(free[at], need // near)
    rest = need - sum(taken)
    for at, room in enumerate(free):
        more = min(rest, room - taken[at])
        taken[at] += more
        rest -= more
    return taken
