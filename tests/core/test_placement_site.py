"""A small site of bare columns to place on, and the few things that hold for the builder itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aliquot.core.columns import CHUNK, NodeChunk, blank_chunk, copy_chunk
from aliquot.core.placement.mix import DemandMix, mix_of
from aliquot.core.placement.placer import Choice, Placer
from aliquot.core.placement.shapes import Hardware, Shape

FULL = (1000, 16_000, 1000)


class Site:
    """Nodes in columns. Booking copies the chunk first, as a world does."""

    def __init__(
        self, *cards: int, cpu: int = 64_000, host: int = 256_000, kinds: Sequence[int] = ()
    ) -> None:
        """One node per entry of `cards`; `kinds` numbers them where they differ (0 for all by default)."""
        width = max(cards, default=1)
        self.node_count = len(cards)
        self.kinds = list(kinds) or [0] * len(cards)
        self.hardware = [
            Hardware(
                (FULL,) * max((c for c, k in zip(cards, self.kinds, strict=True) if k == kind), default=1),
                cpu,
            )
            for kind in range(max(self.kinds, default=0) + 1)
        ]
        self.chunks: list[NodeChunk] = []
        for row, count in enumerate(cards):
            if row % CHUNK == 0:
                self.chunks.append(blank_chunk(CHUNK, width))
            chunk, at = self.chunks[-1], row % CHUNK
            chunk.kind[at] = self.kinds[row]
            chunk.usable[at] = chunk.idle[at] = (1 << count) - 1
            chunk.cpu[at], chunk.host[at] = cpu, host
            chunk.left[at, :count] = FULL

    def book(self, row: int, mask: int, shape: Shape, sign: int = 1) -> None:
        """Book `shape` on the cards `mask` of `row`, or give it back with `sign` -1."""
        place, at = divmod(row, CHUNK)
        chunk = copy_chunk(self.chunks[place])
        self.chunks[place] = chunk
        chunk.cpu[at] -= sign * shape.cpu
        chunk.host[at] -= sign * shape.host
        chunk.version[at] += 1
        for card in range(mask.bit_length()):
            if mask >> card & 1:
                ask = FULL if shape.whole else shape.ask[int(chunk.kind[at])]
                chunk.left[at, card] -= np.array(ask, np.int32) * sign
                full = bool((chunk.left[at, card] == FULL).all())
                chunk.idle[at] = (
                    chunk.idle[at] | np.uint32(1 << card) if full else chunk.idle[at] & ~np.uint32(1 << card)
                )

    def shape(
        self, milli: int, *, cards: int = 1, cpu: int = 1000, host: int = 0, only: int | None = None
    ) -> Shape:
        """A request for `milli` of each of `cards` cards, on kind `only` where given; 0 cards: cpu only."""
        whole = cards > 0 and milli >= 1000
        ask = tuple(part * milli // 1000 for part in FULL)
        eligible = tuple(
            0 if only not in (None, kind) else (1 << len(facts.full)) - 1 if cards else 1
            for kind, facts in enumerate(self.hardware)
        )
        return Shape(
            cpu, host, cards, whole, ((ask[0], ask[1], ask[2]),) * len(self.hardware), eligible, cards * milli
        )

    def placer(
        self, policy: str = "best-fit", mix: DemandMix | None = None, engine: str = "python", **more: object
    ) -> Placer:
        """A placer that has seen the site, in epoch 1."""
        placer = Placer(self.hardware, policy, engine=engine, **more)  # type: ignore[arg-type] # tests pass what fits
        placer.set_epoch(mix if mix is not None else self.mix(), 1, seed=7)
        placer.sync(self)
        return placer

    def mix(self) -> DemandMix:
        """Mostly halves and whole cards, some odd parts, a pair now and then."""
        return mix_of(
            [
                (self.shape(500, cpu=4000), 40),
                (self.shape(1000, cpu=8000), 30),
                (self.shape(310, cpu=2000), 20),
                (self.shape(1000, cards=2, cpu=16_000), 5),
                (self.shape(0, cards=0, cpu=6000), 10),
            ]
        )

    def place(self, placer: Placer, shape: Shape) -> Choice | None:
        """Choose and book."""
        choice = placer.choose(shape)
        if choice is not None:
            self.book(choice.row, choice.mask, shape)
            placer.refresh(self, (choice.row,))
        return choice


def test_booking_leaves_the_old_chunk_alone() -> None:
    site = Site(2)
    before = site.chunks[0]
    site.book(0, 0b01, site.shape(400))
    assert before.left[0, 0].tolist() == list(FULL)
    assert site.chunks[0].left[0, 0].tolist() == [600, 9600, 600]


def test_giving_back_is_the_opposite_of_booking() -> None:
    site = Site(2)
    shape = site.shape(1000)
    site.book(0, 0b10, shape)
    assert int(site.chunks[0].idle[0]) == 0b01
    site.book(0, 0b10, shape, sign=-1)
    assert int(site.chunks[0].idle[0]) == 0b11
