"""The moves that make groups of jobs on shared cards; `colocate` says what they are for.

Small compiled functions over columns. A group's members are job indices of one width, -1 an empty place,
empty places last. `line` [widths, places] holds the jobs of a width by falling value, -1 behind the last.
Equal gains go to the earlier group and the earlier job.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from aliquot.core.columns import I64
from aliquot.core.placement.kernels.jit import compiled

F64 = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
SEATS: Final = 4


class Sharing(NamedTuple):
    """What sharing does, by width and kind of job. Kind `kinds` (the last index) is an empty place.

    `period[x, a, b, c, d]`: seconds in which every member of the group (a, b, c, d) does one iteration, the
    same for any order of the four; infinity where they cannot share. `alone[x, a]`: the same without company.
    """

    widths: I64  # [widths] cards, rising
    period: F64  # [widths, kinds + 1, kinds + 1, kinds + 1, kinds + 1]
    alone: F64  # [widths, kinds]


class Groups(NamedTuple):
    """Groups of jobs that run on shared cards."""

    members: I64  # [groups, 4] job or -1
    width: I64  # [groups] index of the width


def line_up(width: I64, value: F64, widths: I64, places: int) -> I64:
    """[widths, places] the jobs of each width by falling value, the first `places` of them."""
    order = np.argsort(-value / widths[width], kind="stable")
    line = np.full((len(widths), max(places, 1)), -1, np.int64)
    for at in range(len(widths)):
        jobs = order[width[order] == at][:places]
        line[at, : len(jobs)] = jobs
    return line


def open_groups(price: float, line: I64, kind: I64, value: F64, sharing: Sharing, capacity: int) -> Groups:
    """The groups that form in line at a `price` per card; at too low a price one too many for `capacity`."""
    return Groups(*_open(price, line, kind, value, *sharing, capacity))


def fill_cards(groups: Groups, line: I64, kind: I64, value: F64, sharing: Sharing, capacity: int) -> Groups:
    """Give cards that are left to whoever gains most per card: one who waits, or one who moves out."""
    at_work = _at_work(groups, len(kind))
    widths, period, alone = sharing
    found = _fill(*groups, line, kind, value, widths, period, alone, capacity, at_work)
    return Groups(*found)


def join_groups(groups: Groups, line: I64, kind: I64, value: F64, sharing: Sharing) -> Groups:
    """Let those who wait join the group that gains most by them, where any does."""
    members = groups.members.copy()
    at_work = _at_work(groups, len(kind))
    _join(members, groups.width, line, kind, value, sharing.period, sharing.alone, at_work)
    return Groups(members, groups.width)


def trade_places(groups: Groups, kind: I64, value: F64, sharing: Sharing, rounds: int) -> Groups:
    """Swap and move members between groups of one width while the total value rises, `rounds` at most."""
    members = groups.members.copy()
    _trade(members, groups.width, kind, value, sharing.period, sharing.alone, rounds)
    return Groups(members, groups.width)


def _at_work(groups: Groups, jobs: int) -> Flags:
    found = np.zeros(jobs, np.bool_)
    found[groups.members[groups.members >= 0]] = True
    return found


@compiled
def worth(x: int, members: I64, kind: I64, value: F64, period: F64, alone: F64) -> float:
    """The value of a group of width `x`: speeds relative to running alone, times the members' values."""
    a = b = c = d = alone.shape[1]
    total = 0.0
    if members[0] >= 0:
        a = kind[members[0]]
        total += value[members[0]] * alone[x, a]
    if members[1] >= 0:
        b = kind[members[1]]
        total += value[members[1]] * alone[x, b]
    if members[2] >= 0:
        c = kind[members[2]]
        total += value[members[2]] * alone[x, c]
    if members[3] >= 0:
        d = kind[members[3]]
        total += value[members[3]] * alone[x, d]
    return float(total / period[x, a, b, c, d])


@compiled
def _put(members: I64, job: int, into: I64) -> None:
    """`into` becomes `members` with `job` in the first empty place."""
    placed = False
    for seat in range(4):
        into[seat] = members[seat]
        if members[seat] < 0 and not placed:
            into[seat] = job
            placed = True


@compiled
def _take(members: I64, seat: int, into: I64) -> None:
    """`into` becomes `members` without the one in `seat`."""
    for at in range(4):
        if at < seat:
            into[at] = members[at]
        elif at < 3:
            into[at] = members[at + 1]
        else:
            into[at] = -1


@compiled
def _open(
    price: float, line: I64, kind: I64, value: F64, widths: I64, period: F64, alone: F64, capacity: int
) -> tuple[I64, I64]:
    # Opening stops with the first group too many: that price is too low, whatever would follow.
    room = capacity // min(widths) + 1
    members = np.full((room, 4), -1, np.int64)
    width = np.zeros(room, np.int64)
    values = np.zeros(room)
    lone = np.full(4, -1, np.int64)
    grown = np.empty(4, np.int64)
    count = 0
    left = capacity
    for x in range(len(widths)):
        first = count
        places = 0
        for job in line[x]:
            if job < 0 or left < 0:
                break
            lone[0] = job
            own = worth(x, lone, kind, value, period, alone)
            best = own - price * widths[x]
            if best <= 0.0 and places == 0:
                break
            where = count if best > 0.0 else -1
            best = max(best, 0.0)
            for group in range(first, count):
                if members[group, 3] >= 0:
                    continue
                _put(members[group], job, grown)
                gain = worth(x, grown, kind, value, period, alone) - values[group]
                if gain > best:
                    best = gain
                    where = group
            if where < 0:
                continue
            if where == count:
                values[count] = own
                members[count, 0] = job
                width[count] = x
                count += 1
                left -= widths[x]
                places += 3
            else:
                values[where] += best
                _put(members[where].copy(), job, members[where])
                places -= 1
    return members[:count].copy(), width[:count].copy()


@compiled
def _fill(
    members: I64,
    width: I64,
    line: I64,
    kind: I64,
    value: F64,
    widths: I64,
    period: F64,
    alone: F64,
    capacity: int,
    at_work: Flags,
) -> tuple[I64, I64]:
    count = len(width)
    left = capacity
    for group in range(count):
        left -= widths[width[group]]
    room = count + max(left, 0)
    found = np.full((room, 4), -1, np.int64)
    found[:count] = members
    wide = np.zeros(room, np.int64)
    wide[:count] = width
    lone = np.full(4, -1, np.int64)
    rest = np.empty(4, np.int64)
    while True:
        best = 0.0
        chosen = group_of = seat_of = width_of = -1
        for x in range(len(widths)):
            if widths[x] > left:
                continue
            for job in line[x]:
                if job < 0:
                    break
                if at_work[job]:
                    continue
                lone[0] = job
                gain = worth(x, lone, kind, value, period, alone) / widths[x]
                if gain > best:
                    best = gain
                    chosen = job
                    group_of = -1
                    width_of = x
                break
        for group in range(count):
            x = wide[group]
            if found[group, 1] < 0 or widths[x] > left:
                continue
            together = worth(x, found[group], kind, value, period, alone)
            for seat in range(4):
                job = found[group, seat]
                if job < 0:
                    break
                lone[0] = job
                _take(found[group], seat, rest)
                gain = worth(x, rest, kind, value, period, alone) - together
                gain = (gain + worth(x, lone, kind, value, period, alone)) / widths[x]
                if gain > best and gain * widths[x] > 1e-9 * together:
                    best = gain
                    chosen = job
                    group_of = group
                    seat_of = seat
                    width_of = x
        if chosen < 0:
            break
        if group_of >= 0:
            _take(found[group_of].copy(), seat_of, found[group_of])
        found[count, 0] = chosen
        wide[count] = width_of
        at_work[chosen] = True
        count += 1
        left -= widths[width_of]
    return found[:count].copy(), wide[:count].copy()


@compiled
def _join(
    members: I64, width: I64, line: I64, kind: I64, value: F64, period: F64, alone: F64, at_work: Flags
) -> None:
    values = np.zeros(len(width))
    grown = np.empty(4, np.int64)
    for group in range(len(width)):
        values[group] = worth(width[group], members[group], kind, value, period, alone)
    for x in range(len(line)):
        for job in line[x]:
            if job < 0:
                break
            if at_work[job]:
                continue
            best = 1e-9 * value[job]
            where = -1
            for group in range(len(width)):
                if width[group] != x or members[group, 3] >= 0:
                    continue
                _put(members[group], job, grown)
                gain = worth(x, grown, kind, value, period, alone) - values[group]
                if gain > best:
                    best = gain
                    where = group
            if where >= 0:
                _put(members[where].copy(), job, members[where])
                values[where] += best
                at_work[job] = True


@compiled
def _trade(members: I64, width: I64, kind: I64, value: F64, period: F64, alone: F64, rounds: int) -> None:
    count = len(width)
    values = np.zeros(count)
    first = np.empty(4, np.int64)
    second = np.empty(4, np.int64)
    left = np.empty(4, np.int64)
    right = np.empty(4, np.int64)
    for group in range(count):
        values[group] = worth(width[group], members[group], kind, value, period, alone)
    # A pair is looked at again only if one of the two changed since: in this round or the one before.
    changed = np.zeros(count, np.int64)
    for turn in range(rounds):
        moved = False
        for one in range(count):
            for two in range(one + 1, count):
                x = width[one]
                if width[two] != x or max(changed[one], changed[two]) < turn - 1:
                    continue
                before = values[one] + values[two]
                least = 1e-9 * before
                best = least
                for seat in range(4):
                    for other in range(4):
                        mine = members[one, seat]
                        yours = members[two, other]
                        if mine >= 0 and yours >= 0:
                            if kind[mine] == kind[yours]:
                                continue
                            first[:] = members[one]
                            second[:] = members[two]
                            first[seat] = yours
                            second[other] = mine
                        elif mine >= 0 and yours < 0 and members[one, 1] >= 0:
                            if other > 0 and members[two, other - 1] < 0:
                                continue
                            _take(members[one], seat, first)
                            _put(members[two], mine, second)
                        elif mine < 0 and yours >= 0 and members[two, 1] >= 0:
                            if seat > 0 and members[one, seat - 1] < 0:
                                continue
                            _put(members[one], yours, first)
                            _take(members[two], other, second)
                        else:
                            continue
                        gain = worth(x, first, kind, value, period, alone) - before
                        gain += worth(x, second, kind, value, period, alone)
                        if gain > best:
                            best = gain
                            left[:] = first
                            right[:] = second
                if best > least:
                    members[one] = left
                    members[two] = right
                    values[one] = worth(x, left, kind, value, period, alone)
                    values[two] = worth(x, right, kind, value, period, alone)
                    changed[one] = turn
                    changed[two] = turn
                    moved = True
        if not moved:
            break
