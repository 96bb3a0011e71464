"""Piecewise linear interpolation over scattered points, as the triangulation of their lifted hull gives it.

The Delaunay cell around a point is the set of corners that represents the point as a mean with the least mean
squared distance. That is a linear programme with one row per dimension and one for the weights, so no
triangulation is built: a handful of pivots over the table answers one question, and answers are kept by the
caller. Where several cells are equally good (points on a grid) one of them is taken, always the same.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]
TOLERANCE = 1e-9
PIVOTS = 1000


def interpolate(points: F64, values: F64, query: F64) -> F64 | None:
    """The value at `query` [d] from `values` [n, k] at `points` [n, d]; None outside of their hull."""
    scale = np.maximum(np.ptp(points, axis=0), 1.0)
    columns = np.vstack([((points - query) / scale).T, np.ones(len(points))])
    cost = np.square(points - query).sum(axis=1)
    weights = _least_cost(columns, cost / max(cost.max(), 1.0))
    if weights is None:
        return None
    corners, shares = weights
    mixed: F64 = shares @ values[corners]
    return mixed


def _least_cost(columns: F64, cost: F64) -> tuple[npt.NDArray[np.intp], F64] | None:
    """(corners, shares) of the cheapest way to write (0, ..., 0, 1) as a mix of `columns` [rows, n]."""
    rows, count = columns.shape
    target = np.zeros(rows)
    target[-1] = 1.0
    # Artificial columns make a first basis; their price drives them out before anything else counts.
    table = np.hstack([columns, np.eye(rows)])
    price = np.concatenate([cost, np.full(rows, 1e4)])
    basis = np.arange(count, count + rows)
    for pivot in range(PIVOTS):
        square = table[:, basis]
        shares = np.linalg.solve(square, target)
        duals = np.linalg.solve(square.T, price[basis])
        reduced = price - duals @ table
        enters = _entering(reduced, pivot)
        if enters is None:
            break
        direction = np.linalg.solve(square, table[:, enters])
        rising = direction > TOLERANCE
        if not rising.any():
            break
        ratio = np.where(rising, np.maximum(shares, 0.0) / np.where(rising, direction, 1.0), np.inf)
        least = np.flatnonzero(ratio <= ratio.min() + 1e-12)
        basis[least[np.argmin(basis[least])]] = enters
    real = basis < count
    if shares[~real].sum() > 1e-6:
        return None
    return basis[real], shares[real] / shares[real].sum()


def _entering(reduced: F64, pivot: int) -> int | None:
    """The column to take in: the best at first, later the first good one, which cannot cycle."""
    good = np.flatnonzero(reduced < -TOLERANCE)
    if not len(good):
        return None
    return int(good[0]) if pivot > PIVOTS // 4 else int(np.argmin(reduced))
