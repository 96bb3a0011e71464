"""A number that changes now and then, and its exact integral over time.

An integral is brought up to date only where its number changes, so a quantity that stands still costs
nothing. Everything is an integer: milli-cards times milliseconds, MiB times milliseconds.
"""

from __future__ import annotations

from typing import Final

import msgspec


class Gauge:
    """A piecewise constant number. `at` never goes back; whoever calls sees to that."""

    __slots__ = ("since", "total", "value")

    def __init__(self, at: int = 0) -> None:
        self.value = 0
        self.total = 0
        self.since = at

    def add(self, delta: int, at: int) -> None:
        """From `at` on the number is `delta` more."""
        self.total += self.value * (at - self.since)
        self.since = at
        self.value += delta

    def put(self, value: int, at: int) -> None:
        """From `at` on the number is `value`."""
        if value != self.value:
            self.total += self.value * (at - self.since)
            self.since = at
            self.value = value

    def until(self, at: int) -> int:
        """The integral from the first moment to `at`, which is not before the last change."""
        return self.total + self.value * (at - self.since)


class Totals(msgspec.Struct, frozen=True):
    """Integrals over the window, each its unit times milliseconds. `milli` is 1/1000 of a card."""

    up_milli: int = 0  # cards of nodes that answer, drained and unhealthy ones too
    up_mib: int = 0  # their usable memory
    closed_milli: int = 0  # of these: drained nodes, unhealthy cards
    lost_milli: int = 0  # cards of nodes that stopped answering
    booked_milli: int = 0  # compute held by grants
    booked_mib: int = 0
    asked_mib: int = 0  # of what is held: memory the jobs asked for
    surplus_milli: int = 0  # compute held beyond what was asked for
    busy_milli: int = 0  # SM activity of running jobs
    dark_milli: int = 0  # compute held by running jobs whose activity is unknown
    idle_cards: int = 0  # cards of answering nodes with nothing booked
    free_cards: int = 0  # of these: open to work
    largest_cards: int = 0  # the most free cards on one node
    blocked_cards: int = 0  # free cards while the widest waiting request fits their sum but no node
    stranded_cards: int = 0  # free cards that no request can use for lack of cpu or host memory
    idle_cents: int = 0  # price of the idle cards
    surplus_millicents: int = 0  # price of what is held beyond the ask, in thousandths of a cent
    unpriced_cards: int = 0  # cards of answering nodes whose price is unknown
    waiting_jobs: int = 0
    scattered: int = 0  # the widest waiting request fits the sum of free cards but no node
    crowded: int = 0  # it does not even fit the sum
    held_back: int = 0  # a node has the cards: it waits for its turn, or for cpu, memory or links


QUANTITIES: Final = Totals.__struct_fields__


class Sums:
    """One gauge for every field of `Totals`, as attributes of the same names."""

    __slots__ = QUANTITIES

    up_milli: Gauge
    up_mib: Gauge
    closed_milli: Gauge
    lost_milli: Gauge
    booked_milli: Gauge
    booked_mib: Gauge
    asked_mib: Gauge
    surplus_milli: Gauge
    busy_milli: Gauge
    dark_milli: Gauge
    idle_cards: Gauge
    free_cards: Gauge
    largest_cards: Gauge
    blocked_cards: Gauge
    stranded_cards: Gauge
    idle_cents: Gauge
    surplus_millicents: Gauge
    unpriced_cards: Gauge
    waiting_jobs: Gauge
    scattered: Gauge
    crowded: Gauge
    held_back: Gauge

    def __init__(self, at: int) -> None:
        for name in QUANTITIES:
            setattr(self, name, Gauge(at))

    def until(self, at: int) -> Totals:
        """All integrals up to `at`."""
        return Totals(*(getattr(self, name).until(at) for name in QUANTITIES))
