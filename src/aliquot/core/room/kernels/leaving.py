"""Many seats of one chunk given back and taken at one go; the twin is `leaving._one_by_one`."""

from __future__ import annotations

from aliquot.core.columns import COMPUTE as CARD_COMPUTE
from aliquot.core.columns import I32, I64, U32
from aliquot.core.placement.kernels.jit import compiled
from aliquot.core.room.leaving import COMPUTE, CPU, HOST, MASK, PLACE, WHOLE
from aliquot.core.units import FULL


@compiled
def change(
    kind: I32,
    usable: U32,
    idle: U32,
    cpu: I64,
    host: I64,
    left: I32,
    version: I64,
    leaving: I64,
    promised: I64,
) -> None:
    """Give back all of `leaving`, then take what is free of `promised`, one after the other."""
    for at in range(leaving.shape[0]):
        place = leaving[at, PLACE]
        shift(left, place, leaving[at], leaving[at, MASK], 1)
        cpu[place] += leaving[at, CPU]
        host[place] += leaving[at, HOST]
        version[place] += 1
        for card in range(left.shape[1]):
            if (leaving[at, MASK] >> card) & 1 and left[place, card, CARD_COMPUTE] == FULL:
                idle[place] |= 1 << card
    for at in range(promised.shape[0]):
        place = promised[at, PLACE]
        mask = promised[at, MASK]
        cores = promised[at, CPU]
        memory = promised[at, HOST]
        if promised[at, WHOLE]:
            mask &= idle[place] & usable[place]
            if mask == 0:
                continue
            cores = min(cores, cpu[place])
            memory = min(memory, host[place])
        elif not fits(kind, usable, cpu, host, left, promised[at]):
            continue
        shift(left, place, promised[at], mask, -1)
        cpu[place] -= cores
        host[place] -= memory
        version[place] += 1
        for card in range(left.shape[1]):
            if (mask >> card) & 1:
                idle[place] &= ~(1 << card)


@compiled
def shift(left: I32, place: int, seat: I64, mask: int, sign: int) -> None:
    """What `seat` takes of each card of `mask`, given (1) or taken (-1)."""
    for card in range(left.shape[1]):
        if (mask >> card) & 1:
            for dim in range(left.shape[2]):
                left[place, card, dim] += sign * seat[COMPUTE + dim]


@compiled
def fits(kind: I32, usable: U32, cpu: I64, host: I64, left: I32, seat: I64) -> bool:
    """Whether a slice is free, with what it takes of the host."""
    place = seat[PLACE]
    mask = seat[MASK]
    if kind[place] < 0 or usable[place] & mask != mask:
        return False
    if seat[CPU] > cpu[place] or seat[HOST] > host[place]:
        return False
    for card in range(left.shape[1]):
        if (mask >> card) & 1:
            for dim in range(left.shape[2]):
                if left[place, card, dim] < seat[COMPUTE + dim]:
                    return False
    return True
