"""What a node state is worth: the future demand it can still pack (EFP), or the fragment in it (FGD).

A state is (profile, cpu left, sorted codes of the cards). The code of a card is its `effective` milli in a
`flat` mix, where every demand takes all dimensions in proportion; else its dimensions side by side. Values are
integers; they are kept in an open-addressing table that compares whole states, never hashes alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from aliquot.core.placement.cells import I32, I64
from aliquot.core.placement.kernels.jit import inlined

PACKED = 6  # flat codes per word: 6 x 10 bits


class Demands(NamedTuple):
    """Streams of future requests per profile, or the typical requests (`fragments`).

    pods    [profiles, streams, length, fields]: cpu, cards, whole, milli, count, eligible, compute, memory, bandwidth
    """

    fragments: bool
    flat: bool
    profile: I32  # [kinds]
    pods: I32
    length: I32  # [profiles, streams]
    ceiling: I32  # [profiles, 1001] most milli that one-card requests can pack into a card with so much left


class Table(NamedTuple):
    """Values by state. `count[0]` entries are in use, `count[1]` values have been worked out."""

    keys: I64  # [capacity, words]; word 0 is 0 where free
    values: I64  # [capacity]
    count: I64  # [2]


@inlined
def sort_falling(codes: I64) -> None:
    """Insertion sort, largest first."""
    for at in range(1, codes.shape[0]):
        code = codes[at]
        place = at - 1
        while place >= 0 and codes[place] < code:
            codes[place + 1] = codes[place]
            place -= 1
        codes[place + 1] = code


@inlined
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


@inlined
def value_of(demands: Demands, table: Table, profile: int, cpu: int, codes: I64, key: I64, scratch: I64) -> int:
    """The value of a state, from the table or worked out now. `codes` fall; `key` and `scratch` are working room."""
    write_key(profile, cpu, codes, demands.flat, key)
    words = key.shape[0]
    mixed = np.uint64(0x9E3779B97F4A7C15)
    for at in range(words):
        mixed = (mixed ^ np.uint64(key[at])) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
    last = np.uint64(table.keys.shape[0] - 1)
    place = np.int64(mixed & last)
    while table.keys[place, 0] != 0:
        same = True
        for at in range(words):
            if table.keys[place, at] != key[at]:
                same = False
                break
        if same:
            return table.values[place]
        place = (place + 1) & np.int64(last)
    if demands.fragments:
        value = fragment(demands, profile, cpu, codes)
    elif demands.flat:
        value = packed_flat(demands, profile, cpu, codes, scratch)
    else:
        value = packed(demands, profile, cpu, codes, scratch)
    table.count[1] += 1
    if table.count[0] * 10 < table.keys.shape[0] * 7:
        for at in range(words):
            table.keys[place, at] = key[at]
        table.values[place] = value
        table.count[0] += 1
    return value


@inlined
def packed_flat(demands: Demands, profile: int, cpu: int, codes: I64, left: I64) -> int:
    """GPU milli that all streams together pack: greedily, each request on the tightest card that takes it."""
    pods = demands.pods
    cards = 0
    room = 0
    idle_at_first = 0
    while cards < codes.shape[0] and codes[cards] > 0:
        room += codes[cards]
        if codes[cards] == 1000:
            idle_at_first += 1
        cards += 1
    if room == 0:
        return 0
    total = 0
    for stream in range(pods.shape[1]):
        for card in range(cards):
            left[card] = codes[card]
        cpu_left = cpu
        idle = idle_at_first
        room_left = room
        for at in range(demands.length[profile, stream]):
            pod = pods[profile, stream, at]
            if pod[0] > cpu_left:
                continue
            wanted = pod[1]
            if wanted == 0:
                cpu_left -= pod[0]
                continue
            if pod[2] != 0:
                if idle < wanted:
                    continue
                taken = 0
                for card in range(cards):
                    if left[card] == 1000:
                        left[card] = 0
                        taken += 1
                        if taken == wanted:
                            break
                idle -= wanted
            else:
                ask = pod[6]
                if wanted == 1:
                    best = 1001
                    chosen = -1
                    for card in range(cards):
                        if ask <= left[card] < best:
                            best = left[card]
                            chosen = card
                    if chosen < 0:
                        continue
                    if best == 1000:
                        idle -= 1
                    left[chosen] = best - ask
                else:
                    fitting = 0
                    for card in range(cards):
                        if left[card] >= ask:
                            fitting += 1
                    if fitting < wanted:
                        continue
                    # ascending value: taking the tightest `wanted` distinct cards
                    used = 0
                    for _ in range(wanted):
                        best = 1001
                        chosen = -1
                        for card in range(cards):
                            if ask <= left[card] < best and not (used >> card) & 1:
                                best = left[card]
                                chosen = card
                        used |= 1 << chosen
                        if best == 1000:
                            idle -= 1
                        left[chosen] = best - ask
            cpu_left -= pod[0]
            total += pod[3]
            room_left -= pod[3]
            if room_left <= 0:
                break
    return total


@inlined
def packed(demands: Demands, profile: int, cpu: int, codes: I64, left: I64) -> int:
    """As `packed_flat`, dimension by dimension. A code is idle | card class | compute | memory | bandwidth."""
    pods = demands.pods
    cards = codes.shape[0]
    total = 0
    for stream in range(pods.shape[1]):
        for card in range(cards):
            left[card] = codes[card]
        cpu_left = cpu
        for at in range(demands.length[profile, stream]):
            pod = pods[profile, stream, at]
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
                        bare = left[card] & ((np.int64(1) << 46) - 1)
                        left[card] = bare - ((np.int64(pod[6]) << 32) | (np.int64(pod[7]) << 10) | np.int64(pod[8]))
            cpu_left -= pod[0]
            total += pod[3]
    return total


@inlined
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
        pod = pods[profile, 0, at]
        unusable = room
        ask = pod[6]
        if pod[1] > 0 and pod[5] != 0 and pod[0] <= cpu:
            fitting = 0
            small = 0
            for card in range(codes.shape[0]):
                if codes[card] >= ask:
                    fitting += 1
                else:
                    small += codes[card]
            if fitting >= pod[1]:
                unusable = small
        total += pod[4] * unusable
    return total
