"""How four cards may be cut into GPU instances: the tables that the simulated driver answers from.

Figures as the vendor's guide and real listings show them. The order and the numbers matter: a profile has an
id (what is created) and an enumeration (what is asked about), and they differ.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Cut(NamedTuple):
    """A profile. `engines`: copy, decode, encode, JPEG, optical flow. `starts` in memory units."""

    name: str
    id: int
    enumeration: int
    slices: int
    size: int
    memory_mib: int
    sm_count: int
    engines: tuple[int, int, int, int, int]
    most: int
    starts: tuple[int, ...]


class Cuts(NamedTuple):
    """A card's table: memory units, compute slices, profiles."""

    units: int
    slices: int
    profiles: tuple[Cut, ...]


_ALL_7: Final = (0, 1, 2, 3, 4, 5, 6)

CUTS: Final = {
    "a100-40": Cuts(8, 7, (
        Cut("1g.5gb", 19, 0, 1, 1, 4864, 14, (1, 0, 0, 0, 0), 7, _ALL_7),
        Cut("1g.5gb+me", 20, 7, 1, 1, 4864, 14, (1, 1, 0, 1, 1), 1, _ALL_7),
        Cut("1g.10gb", 15, 9, 1, 2, 9856, 14, (1, 1, 0, 0, 0), 4, (0, 2, 4, 6)),
        Cut("2g.10gb", 14, 1, 2, 2, 9856, 28, (2, 1, 0, 0, 0), 3, (0, 2, 4)),
        Cut("3g.20gb", 9, 2, 3, 4, 19968, 42, (3, 2, 0, 0, 0), 2, (0, 4)),
        Cut("4g.20gb", 5, 3, 4, 4, 19968, 56, (4, 2, 0, 0, 0), 1, (0,)),
        Cut("7g.40gb", 0, 4, 7, 8, 40192, 98, (7, 5, 0, 1, 1), 1, (0,)),
    )),
    "a100-80": Cuts(8, 7, (
        Cut("1g.10gb", 19, 0, 1, 1, 9856, 14, (1, 0, 0, 0, 0), 7, _ALL_7),
        Cut("1g.10gb+me", 20, 7, 1, 1, 9856, 14, (1, 1, 0, 1, 1), 1, _ALL_7),
        Cut("1g.20gb", 15, 9, 1, 2, 19968, 14, (1, 1, 0, 0, 0), 4, (0, 2, 4, 6)),
        Cut("2g.20gb", 14, 1, 2, 2, 19968, 28, (2, 1, 0, 0, 0), 3, (0, 2, 4)),
        Cut("3g.40gb", 9, 2, 3, 4, 40192, 42, (3, 2, 0, 0, 0), 2, (0, 4)),
        Cut("4g.40gb", 5, 3, 4, 4, 40192, 56, (4, 2, 0, 0, 0), 1, (0,)),
        Cut("7g.80gb", 0, 4, 7, 8, 80384, 98, (7, 5, 0, 1, 1), 1, (0,)),
    )),
    "h100-80": Cuts(8, 7, (
        Cut("1g.10gb", 19, 0, 1, 1, 9984, 16, (1, 1, 0, 1, 0), 7, _ALL_7),
        Cut("1g.10gb+me", 20, 7, 1, 1, 9984, 16, (1, 1, 0, 1, 1), 1, _ALL_7),
        Cut("1g.20gb", 15, 9, 1, 2, 20090, 26, (1, 1, 0, 1, 0), 4, (0, 2, 4, 6)),
        Cut("2g.20gb", 14, 1, 2, 2, 20090, 32, (2, 2, 0, 2, 0), 3, (0, 2, 4)),
        Cut("3g.40gb", 9, 2, 3, 4, 40448, 60, (3, 3, 0, 3, 0), 2, (0, 4)),
        Cut("4g.40gb", 5, 3, 4, 4, 40448, 64, (4, 4, 0, 4, 0), 1, (0,)),
        Cut("7g.80gb", 0, 4, 7, 8, 81152, 132, (8, 7, 0, 7, 1), 1, (0,)),
    )),
    "a30": Cuts(4, 4, (
        Cut("1g.6gb", 14, 0, 1, 1, 5949, 14, (1, 0, 0, 0, 0), 4, (0, 1, 2, 3)),
        Cut("1g.6gb+me", 21, 7, 1, 1, 5949, 14, (1, 1, 0, 1, 1), 1, (0, 1, 2, 3)),
        Cut("2g.12gb", 5, 1, 2, 2, 11970, 28, (2, 2, 0, 0, 0), 2, (0, 2)),
        Cut("2g.12gb+me", 6, 8, 2, 2, 11970, 28, (2, 2, 0, 1, 1), 1, (0, 2)),
        Cut("4g.24gb", 0, 3, 4, 4, 24002, 56, (4, 4, 0, 1, 1), 1, (0,)),
    )),
}  # fmt: skip  # a table reads by columns
