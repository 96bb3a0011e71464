"""A queue tree, and who may take what of whom, as arrays: for all groups of tenants at one go."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from aliquot.core.placement.cells import I64, Bool
from aliquot.core.queueing.quota import Charge
from aliquot.core.queueing.tree import ROOT, QueueTree
from aliquot.core.room.reclaim import Claim

NO_END: Final = 2**62


class Law(NamedTuple):
    """[nodes, resources], and [nodes, depth] the paths up, filled with -1."""

    entitled: I64
    shared: I64
    kept: I64
    named: Bool
    lends: I64  # what the node's parent can lend in all; at least NO_END: without end
    weight: I64
    path: I64
    length: I64  # [nodes] of the path


class Side(NamedTuple):
    """The beneficiary."""

    leaf: int
    charge: I64  # [resources]
    reclaims: bool
    most: int  # the last right that may be used


def law_of(tree: QueueTree) -> Law:
    """`tree` as arrays."""
    nodes, slots = len(tree.names), max(1, len(tree.resources))
    named = np.zeros((nodes, slots), np.bool_)
    path: I64 = np.full((nodes, max(map(len, tree.paths))), -1, np.int64)
    for node in range(nodes):
        named[node, list(tree.named[node])] = True
        path[node, : len(tree.paths[node])] = tree.paths[node]
    above = [max(ROOT, parent) for parent in tree.parent]
    return Law(
        _table(tree.entitled, nodes, slots),
        _table(tree.shared, nodes, slots),
        _table(tree.kept, nodes, slots),
        named,
        _table(tuple(tree.reach[node] for node in above), nodes, slots),
        np.array(tree.weight, np.int64),
        path,
        np.array([len(each) for each in tree.paths], np.int64),
    )


def no_law() -> Law:
    """Of no queues."""
    blank: I64 = np.zeros((1, 1), np.int64)
    line: I64 = np.zeros(1, np.int64)
    return Law(blank, blank, blank, np.zeros((1, 1), np.bool_), blank, line, blank, line)


def no_side() -> Side:
    """Of nobody."""
    return Side(0, np.zeros(1, np.int64), False, 0)


def side_of(claim: Claim, slots: int) -> Side:
    """The beneficiary of `claim`."""
    return Side(claim.leaf, line_of(claim.charge, slots), claim.reclaims, int(claim.most))


def line_of(charge: Charge, slots: int) -> I64:
    """[resources] a charge."""
    line: I64 = np.zeros(slots, np.int64)
    for slot, amount in charge:
        line[slot] = amount
    return line


def _table(rows: tuple[tuple[int, ...], ...], nodes: int, slots: int) -> I64:
    found: I64 = np.array(rows, np.int64).reshape(nodes, -1)
    return found if found.shape[1] else np.zeros((nodes, slots), np.int64)
