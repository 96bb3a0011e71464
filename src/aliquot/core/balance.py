"""Slices of a gang over domains, evenly: how many go where.

The fewest domains that hold all slices, or `over` of them where that many have room. Over so many the counts
differ as little as the rooms allow: by at most one where they can; otherwise the roomiest domains are filled
like communicating vessels, which leaves the highest as low and the lowest as high as can be.
"""

from __future__ import annotations

from collections.abc import Sequence


def spread_slices(room: Sequence[int], slices: int, over: int = 1) -> list[tuple[int, int]] | None:
    """(domain, slices in it), by domain; `room` says how many slices each holds. None: they hold too few.

    Three slices in rooms for 4, 2 and 9, over 2: two in the first and one in the second.
    """
    open_to = sorted((at for at, least in enumerate(room) if least > 0), key=lambda at: (room[at], at))
    many = _fewest([room[at] for at in reversed(open_to)], slices)
    if many is None:
        return None
    many = max(many, min(over, len(open_to), slices))
    shares = _even(room, open_to, slices, many)
    if shares is None:
        shares = _filled(room, open_to[-many:], slices)
    return sorted(shares.items())


def _fewest(rooms: Sequence[int], slices: int) -> int | None:
    held = 0
    for many, one in enumerate(rooms, 1):
        held += one
        if held >= slices:
            return many
    return None


def _even(room: Sequence[int], open_to: Sequence[int], slices: int, many: int) -> dict[int, int] | None:
    """Shares that differ by one at most, in the tightest domains; None where the rooms do not allow it."""
    low, more = divmod(slices, many)
    enough = [at for at in open_to if room[at] >= low]
    few = enough[: many - more]
    rest = [at for at in enough[many - more :] if room[at] > low][:more]
    if len(few) + len(rest) < many:
        return None
    return dict.fromkeys(few, low) | dict.fromkeys(rest, low + 1)


def _filled(room: Sequence[int], domains: Sequence[int], slices: int) -> dict[int, int]:
    """As water does: every domain to one level, those that are full below it; `domains` by rising room."""
    shares: dict[int, int] = {}
    left = slices
    for done, at in enumerate(domains):
        waiting = len(domains) - done
        shares[at] = min(room[at], left // waiting)
        left -= shares[at]
    return shares
