"""Reservations as people ask for them and see them. Times are milliseconds of the Unix epoch."""

from __future__ import annotations

from typing import Any

import msgspec


class Reservation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A reservation to be made. `spec` is that of a document of kind Reservation, with dates."""

    name: str
    spec: dict[str, Any]


class ReservedPart(msgspec.Struct, frozen=True):
    """What a reservation closes of one node: these cards, or without any the whole of it."""

    node: str
    cards: tuple[str, ...] = ()


class ReservationView(msgspec.Struct, frozen=True):
    """A reservation that is not over. Jobs of these queues, users and names are let in; without any, no job.

    `wanted`: how many cards were asked for, where a number was. `grace_ms`: what still runs when it begins is
    stopped with so long a warning; None: it is left. `is_documented`: documents say it, and nobody else.
    `strangers`: who is let in and nobody here, such as `user 'nosuch'`; most often a name that is misspelt.
    """

    name: str
    start_ms: int
    end_ms: int
    reason: str
    parts: tuple[ReservedPart, ...]
    wanted: int | None = None
    queues: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()
    grace_ms: int | None = None
    is_documented: bool = False
    strangers: tuple[str, ...] = ()
