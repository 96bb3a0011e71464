"""One scenario out of a set of files: the public door of this package."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from aliquot.config.builtin import BUILTIN
from aliquot.config.documents import Documents, read_documents
from aliquot.config.shelf import Shelf
from aliquot.config.source import read_items
from aliquot.config.windows import read_reservation
from aliquot.core.errors import DocumentError
from aliquot.core.settings import Rates, Settings
from aliquot.core.workload import Announced, Offer, Scenario

LACKS: Final = "write a document of kind Cluster whose nodes have a shape or cards"


def load_scenario(paths: Sequence[Path], shelf: Shelf) -> Scenario:
    """The scenario that the documents of `paths` (files or folders) describe together.

    Policies are those of the documents, in order, then the built-in ones; each has the queues and slice
    classes of all documents. Offers are in the order of submission, then of the files. Raises DocumentError,
    with file, line and field, for the first thing that is wrong; a job that can never fit is none.
    """
    found = read_documents(read_items(paths), shelf)
    if not any(node.cards for node in found.nodes):
        missing = "no cluster" if not found.nodes else "a cluster without a single card"
        raise DocumentError(missing, file=", ".join(str(path) for path in paths), hint=LACKS)
    return Scenario(
        name=", ".join(found.sites) or paths[0].stem,
        nodes=tuple(found.nodes),
        offers=_in_order(found.offers),
        policies=tuple((name, complete(settings, found)) for name, settings in (*found.policies, *BUILTIN)),
        speeds=found.speeds,
        standing=found.standing,
        notes=(*found.said, *found.notes),
        failures=tuple(sorted(found.failures, key=lambda failure: failure[:2])),
        windows=_windows(found),
    )


def _windows(found: Documents) -> tuple[Announced, ...]:
    jobs = {group.word for group in found.groups} | {offer.job.id for offer in found.offers}
    return tuple(
        read_reservation(word, spec, found.nodes, found.reachable, jobs) for word, spec in found.reservations
    )


def _in_order(offers: Sequence[Offer]) -> tuple[Offer, ...]:
    """By submit time, then as written; that order becomes `seq`."""
    ordered = sorted(offers, key=lambda offer: offer.job.submitted_ms)
    return tuple(
        msgspec.structs.replace(offer, job=msgspec.structs.replace(offer.job, seq=seq))
        for seq, offer in enumerate(ordered)
    )


def complete(settings: Settings, found: Documents) -> Settings:
    """`settings` of a policy with the queues, slice classes and rates of all documents."""
    rates = settings.rates if settings.rates != Rates() else found.rates
    return msgspec.structs.replace(settings, queues=found.queues, slices=tuple(found.slices), rates=rates)
