"""What the loop needs from outside. Each port has one contract suite, run over all implementations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from aliquot.core.events import Event
from aliquot.core.inventory import CardModel, Node
from aliquot.core.jobs import Request
from aliquot.core.steps import Work
from aliquot.core.workload import Offer


class Clock(Protocol):
    """Milliseconds on the engine's own time line; virtual or real."""

    def now(self) -> int:
        """The time now; never goes back."""
        ...

    def wake_at(self, at: int) -> None:
        """See to it that the loop turns again by `at`, even if nothing happens."""
        ...


class Journal(Protocol):
    """The record. What `append` has returned from is durable in the engine's own sense."""

    def append(self, events: Sequence[Event]) -> None:
        """Record events, in order, all or none."""
        ...

    def replay(self) -> Iterator[Event]:
        """Everything recorded, in order."""
        ...


class Cluster(Protocol):
    """The machines and those who submit to them. Speaks only in events, obeys only steps."""

    @property
    def is_over(self) -> bool:
        """Whether nothing will happen any more unless a step is carried out; never so for live machines."""
        ...

    @property
    def resizes_in_place(self) -> bool:
        """Whether a running job may change its width at once; else it gets no Resize, but a Kill and a Start.

        `Settings.resizes_in_place` of the plans it is given say the same.
        """
        ...

    def observe(self) -> Sequence[Event]:
        """What happened since the last call, in order; may be empty."""
        ...

    def carry_out(self, steps: Sequence[Work]) -> None:
        """Begin carrying out; each step may come again and must then change nothing."""
        ...


class TraceSource(Protocol):
    """A public trace or a document, as nodes and offers."""

    def nodes(self) -> Sequence[Node]:
        """The machines, in the fixed node order."""
        ...

    def offers(self) -> Iterable[Offer]:
        """Jobs in order of submission."""
        ...

    def demand(self) -> tuple[tuple[Request, int], ...] | None:
        """The demand mix of the whole list, or None where it is not to be known beforehand."""
        ...


class Catalog(Protocol):
    """Facts about hardware."""

    def models(self) -> Mapping[str, CardModel]:
        """GPU models by name."""
        ...
