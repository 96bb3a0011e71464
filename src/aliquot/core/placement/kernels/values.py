"""What a node state is worth: the future demand it can still pack (EFP), or the fragment in it (FGD).

A state is (profile, cpu left, sorted codes of the cards). The code of a card is its `effective` milli in a
`flat` mix, where every demand takes all dimensions in proportion; else its dimensions side by side. Values
are integers; they are kept in an open-addressing table that compares whole states, never hashes alone.
"""

from __future__ import annotations

import numpy as np

from aliquot.core.placement.cells import I32, I64
from aliquot.core.placement.kernels.jit import compiled
from aliquot.core.placement.worth import BARE, COARSE, CPU_CEILING, PACKED, Demands, Table

FAR = np.int32(1 << 20)


@compiled
def sort_falling(codes: I64) -> None:
    """Insertion sort, largest first."""
    for at in range(1, codes.shape[0]):
        code = codes[at]
        place = at - 1
        while place >= 0 and codes[place] < code:
            codes[place + 1] = codes[place]
            place -= 1
        codes[place + 1] = code


@compiled
def write_key(profile: int, cpu: int, codes: I64, flat: bool, key: I64) -> None:
    """The state as words; word 0 is never 0."""
    key[0] = ((profile + 1) << 48) | cpu
    if not flat:
        for at in range(codes.shape[0]):
            key[1 + at] = codes[at]
        return
    for at in range(1, key.shape[0]):
        key[at] = 0
    for at in range(codes.shape[0]):
        word = 1 + at // PACKED
        key[word] = (key[word] << 10) | codes[at]


@compiled
def place_of(key: I64, last: int) -> int:
    """Where a state's entry is looked for first."""
    mixed = np.uint64(0x9E3779B97F4A7C15)
    for at in range(key.shape[0]):
        mixed = (mixed ^ np.uint64(key[at])) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
    return int(np.int64(mixed & np.uint64(last)))


@compiled
def rehash(old: Table, new: Table) -> None:
    """Copy every entry of `old` into the larger, empty `new`."""
    last = new.keys.shape[0] - 1
    for at in range(old.keys.shape[0]):
        if old.keys[at, 0] == 0:
            continue
        place = place_of(old.keys[at], last)
        while new.keys[place, 0] != 0:
            place = (place + 1) & last
        for word in range(old.keys.shape[1]):
            new.keys[place, word] = old.keys[at, word]
        new.values[place] = old.values[at]
    new.tally[0] = old.tally[0]
    new.tally[1] = old.tally[1]


@compiled
def coarse(cpu: int) -> int:
    """Cpu rounded to 1/64 of itself or finer; the twin is in `worth`."""
    quantum = 1
    while cpu >> COARSE >= 2 * quantum:
        quantum *= 2
    return (cpu + quantum // 2) // quantum * quantum


@compiled
def value_of(
    demands: Demands, table: Table, profile: int, cpu: int, codes: I64, key: I64, scratch: I64, left: I32
) -> int:
    """The value of a state, from the table or worked out now. `codes` fall; the rest is room to work."""
    if not demands.fragments:
        cpu = coarse(cpu)
    write_key(profile, cpu, codes, demands.flat, key)
    words = key.shape[0]
    last = table.keys.shape[0] - 1
    place = place_of(key, last)
    while table.keys[place, 0] != 0:
        same = True
        for at in range(words):
            if table.keys[place, at] != key[at]:
                same = False
                break
        if same:
            return int(table.values[place])
        place = (place + 1) & last
    if demands.fragments:
        value = fragment(demands, profile, cpu, codes)
    elif demands.flat:
        value = packed_flat(demands, profile, cpu, codes, left)
    else:
        value = packed(demands, profile, cpu, codes, scratch)
    table.tally[1] += 1
    if table.tally[0] * 10 < table.keys.shape[0] * 7:
        for at in range(words):
            table.keys[place, at] = key[at]
        table.values[place] = value
        table.tally[0] += 1
    return value


@compiled
def packed_flat(demands: Demands, profile: int, cpu: int, codes: I64, left: I32) -> int:
    """GPU milli that all streams together pack: greedily, each request on the tightest card that takes it.

    `left` [16] holds 16 x milli + index, so that the least fitting entry names its card; loops over eight
    entries at a time become vector instructions.
    """
    quick = demands.quick
    length = demands.length
    lanes = 8 if codes.shape[0] <= 8 or codes[8] == 0 else 16
    room = 0
    for card in range(codes.shape[0]):
        room += codes[card]
    if room == 0:
        return 0
    cpu_first = np.int32(min(cpu, CPU_CEILING))
    total = 0
    for stream in range(quick.shape[1]):
        for card in range(lanes):
            left[card] = (codes[card] << 4) | card if card < codes.shape[0] else card
        cpu_left = cpu_first
        room_left = room
        most = np.int32(codes[0])
        for at in range(length[profile, stream]):
            need = quick[profile, stream, at, 0]
            if need > cpu_left:
                continue
            word = quick[profile, stream, at, 1]
            ask = word & 2047
            wanted = word >> 11
            if ask > most:
                continue
            if wanted == 1:
                floor = ask << 4
                best = FAR
                for block in range(0, lanes, 8):
                    for lane in range(8):
                        entry = left[block + lane]
                        best = min(best, entry if entry >= floor else FAR)
                left[best & 15] = best - floor
                room_left -= ask
                if best >> 4 == most:
                    most = np.int32(greatest(left, lanes) >> 4)
            elif wanted > 1:
                if not take_several(left, lanes, wanted, ask):
                    continue
                room_left -= ask * wanted
                most = np.int32(greatest(left, lanes) >> 4)
            cpu_left -= need
            if room_left <= 0:
                break
        total += room - room_left
    return total


@compiled
def greatest(left: I32, lanes: int) -> int:
    """The greatest entry."""
    most = np.int32(0)
    for block in range(0, lanes, 8):
        for lane in range(8):
            most = max(most, left[block + lane])
    return int(most)


@compiled
def take_several(left: I32, lanes: int, wanted: int, ask: int) -> bool:
    """Book `ask` on the `wanted` tightest entries that take it; False: not enough of them."""
    floor = ask << 4
    fitting = 0
    for lane in range(lanes):
        if left[lane] >= floor:
            fitting += 1
    if fitting < wanted:
        return False
    used = 0
    for _ in range(wanted):
        best = int(FAR)
        for lane in range(lanes):
            if floor <= left[lane] < best and not (used >> lane) & 1:
                best = int(left[lane])
        used |= 1 << (best & 15)
        left[best & 15] = best - floor
    return True


@compiled
def packed(demands: Demands, profile: int, cpu: int, codes: I64, left: I64) -> int:
    """As `packed_flat`, dimension by dimension. A code is idle | class | compute | memory | bandwidth."""
    pods = demands.pods
    cards = codes.shape[0]
    total = 0
    for stream in range(pods.shape[1]):
        for card in range(cards):
            left[card] = codes[card]
        cpu_left = cpu
        for at in range(demands.length[profile, stream]):
            pod = pods[profile, stream, at]  # a view: the general path is not the fast one
            if pod[0] > cpu_left:
                continue
            wanted = pod[1]
            taken = 0
            used = 0
            while taken < wanted:
                best = np.int64(1) << 62
                chosen = -1
                for card in range(cards):
                    code = left[card]
                    if code == 0 or (used >> card) & 1 or not (pod[5] >> ((code >> 42) & 15)) & 1:
                        continue
                    if pod[2] != 0:
                        fit = (code >> 46) == 1
                    else:
                        fit = (
                            ((code >> 32) & 1023) >= pod[6]
                            and ((code >> 10) & 0x3FFFFF) >= pod[7]
                            and (code & 1023) >= pod[8]
                        )
                    if fit and code < best:
                        best = code
                        chosen = card
                if chosen < 0:
                    break
                used |= 1 << chosen
                taken += 1
            if taken < wanted:
                continue
            for card in range(cards):
                if (used >> card) & 1:
                    if pod[2] != 0:
                        left[card] = 0
                    else:
                        asked = (np.int64(pod[6]) << 32) | (np.int64(pod[7]) << 10) | np.int64(pod[8])
                        left[card] = (left[card] & BARE) - asked
            cpu_left -= pod[0]
            total += pod[3]
    return total


@compiled
def fragment(demands: Demands, profile: int, cpu: int, codes: I64) -> int:
    """Sum over the typical requests of count x GPU milli they can't use here."""
    pods = demands.pods
    room = 0
    for card in range(codes.shape[0]):
        room += codes[card]
    if room == 0:
        return 0
    total = 0
    for at in range(demands.length[profile, 0]):
        unusable = room
        ask = pods[profile, 0, at, 6]
        wanted = pods[profile, 0, at, 1]
        if wanted > 0 and pods[profile, 0, at, 5] != 0 and pods[profile, 0, at, 0] <= cpu:
            fitting = 0
            small = 0
            for card in range(codes.shape[0]):
                if codes[card] >= ask:
                    fitting += 1
                else:
                    small += codes[card]
            if fitting >= wanted:
                unusable = small
        total += pods[profile, 0, at, 4] * unusable
    return total
