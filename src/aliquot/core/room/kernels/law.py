"""`reclaim.reclaim_right` in numbers: by what right a running job may be stopped for another."""

from __future__ import annotations

from aliquot.core.placement.cells import I64, Bool
from aliquot.core.placement.kernels.jit import compiled
from aliquot.core.room.law import NO_END, Law, Side

UNSURE = -2
"""The numbers are too large for 64 bits: it has to be worked out the long way."""

_MILLION = 1_000_000  # shares are billionths per weight of a thousandth: a million times a million
_LARGE = 9_000_000_000_000


@compiled
def right_of(used: I64, law: Law, side: Side, leaf: int, charge: I64) -> int:
    """The right to stop a job of `leaf` with `charge`; -1: none; UNSURE. `used`: as `Book.columns`."""
    total, drawn = used[0], used[1]
    if leaf == side.leaf:
        return 1
    if not side.reclaims:
        return -1
    mine, theirs, above = _meet(law, side.leaf, leaf)
    slots = charge.shape[0]
    borrows = False
    for slot in range(slots):
        if side.charge[slot] and charge[slot] and law.named[leaf, slot]:
            beyond = True
            for at in range(above):
                node = law.path[leaf, at]
                beyond = beyond and drawn[node, slot] > law.shared[node, slot]
            borrows = borrows or beyond
    if not borrows:
        return -1
    within = True
    for slot in range(slots):
        if side.charge[slot] and law.named[side.leaf, slot]:
            within = within and total[mine, slot] + side.charge[slot] <= law.entitled[mine, slot]
    if within:
        return 1
    before = _share(total, law, theirs, charge, 0)
    after = _share(total, law, mine, side.charge, 1)
    without = _share(total, law, theirs, charge, -1)
    if min(before, after, without) == UNSURE:
        return UNSURE
    if without >= before and before < NO_END:
        return -1
    if without >= after and after < NO_END:
        return 1
    if before <= after:
        return -1
    for slot in range(slots):
        named = charge[slot] and law.named[leaf, slot]
        if named and total[theirs, slot] - charge[slot] < law.entitled[theirs, slot]:
            return -1
    return 2


@compiled
def rights_of(
    used: I64, law: Law, side: Side, charge: I64, leaf: I64, may: Bool, right: I64, share: I64
) -> bool:
    """Into `right` and `share` [groups] those by which each that `may` could be stopped; False: unsure."""
    for at in range(leaf.shape[0]):
        if not may[at]:
            continue
        found = right_of(used, law, side, leaf[at], charge[at])
        if found == UNSURE:
            return False
        right[at] = found
        if found > 0 and leaf[at] != side.leaf:
            theirs = _meet(law, side.leaf, leaf[at])[1]
            share[at] = _share(used[0], law, theirs, side.charge, 0)
            if share[at] == UNSURE:
                return False
    return True


@compiled
def take_away(used: I64, law: Law, leaf: int, charge: I64) -> None:
    """`Book.remove` in numbers."""
    for slot in range(used.shape[2]):
        moved = charge[slot]
        for at in range(law.length[leaf]):
            node = law.path[leaf, at]
            before, kept = used[1, node, slot], law.kept[node, slot]
            used[0, node, slot] -= charge[slot]
            used[1, node, slot] = before - moved
            if kept:
                moved = max(0, before - kept) - max(0, before - moved - kept)


@compiled
def _meet(law: Law, one: int, other: int) -> tuple[int, int, int]:
    """The children of the lowest node above both, and how many nodes are on the other's path up to its."""
    shared = 0
    mine, theirs = law.length[one], law.length[other]
    while (
        shared < min(mine, theirs)
        and law.path[one, mine - 1 - shared] == law.path[other, theirs - 1 - shared]
    ):
        shared += 1
    return law.path[one, mine - 1 - shared], law.path[other, theirs - 1 - shared], theirs - shared


@compiled
def _share(total: I64, law: Law, node: int, charge: I64, sign: int) -> int:
    """`share.share_after` with `sign` times `charge` more."""
    largest = 0
    for slot in range(charge.shape[0]):
        if not law.named[node, slot] or law.lends[node, slot] >= NO_END:
            continue
        beyond = total[node, slot] + sign * charge[slot] - law.entitled[node, slot]
        if beyond <= 0:
            continue
        divisor = law.lends[node, slot] * law.weight[node]
        if divisor == 0:
            return NO_END
        if beyond > _LARGE or divisor > _LARGE or law.lends[node, slot] > _LARGE:
            return UNSURE
        # beyond * 10^9 * 1000 // divisor in two steps
        whole = beyond * _MILLION // divisor
        if whole > 4_000_000_000_000:
            return UNSURE
        rest = beyond * _MILLION - whole * divisor
        largest = max(largest, whole * _MILLION + rest * _MILLION // divisor)
    return largest
