"""What a live service goes by, out of documents: policies, queues, slice classes and rates.

Kinds and fields are those of a simulation. Machines are what is there, so nodes of documents are read,
checked and then not used; jobs are submitted, not configured.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from aliquot.config.builtin import BUILTIN
from aliquot.config.documents import Documents, read_documents
from aliquot.config.queues import known_queues, queue_notes
from aliquot.config.readers import name
from aliquot.config.scenario import complete
from aliquot.config.shelf import Shelf
from aliquot.config.source import read_text
from aliquot.config.spoken import item_of
from aliquot.config.tree import nearest
from aliquot.config.windows import read_live_reservation
from aliquot.control.reservation_views import Reservation
from aliquot.core.errors import SpecError
from aliquot.core.inventory import Node
from aliquot.core.settings import Settings
from aliquot.core.windows import Window


class LiveSite(NamedTuple):
    """`policy` with its settings, queues and all; `notes`: what a person should know about them."""

    policy: str
    settings: Settings
    notes: tuple[str, ...]
    windows: tuple[Window, ...] = ()  # reservations, at dates


def read_live_site(
    files: Sequence[tuple[str, str]], policy: str | None, shelf: Shelf, nodes: Sequence[Node]
) -> LiveSite:
    """What `files` (name, text) say about a site of `nodes`, under one policy of theirs or a built-in one.

    `policy` None: the first of the documents', else the first built-in one. Raises DocumentError that names
    file, line and field, and SpecError for a policy that is not there.
    """
    found = read_documents([item for file, text in files for item in read_text(text, file)], shelf)
    if found.groups:
        job = found.groups[0].spec
        job.fail("a job among the settings of a service", "submit it: aliquot submit FILE")
    policies = {**dict(found.policies), **dict(BUILTIN)}
    chosen = policy or next(iter(policies))
    if chosen not in policies:
        raise SpecError(
            f"no policy {chosen!r}", field="policy", value=chosen, hint=nearest(chosen, list(policies))
        )
    settings = complete(policies[chosen], found)
    windows = (read_live_reservation(word, spec, nodes, found.reachable) for word, spec in found.reservations)
    return LiveSite(chosen, settings, _notes(found, chosen, settings, nodes), tuple(windows))


def read_asked_reservation(asked: Reservation, nodes: Sequence[Node], settings: Settings) -> Window:
    """A reservation that somebody asks for at a service of `nodes`, in the words of the documents.

    Raises SpecError that names the field.
    """
    word = name(item_of(asked.name, "name"))
    return read_live_reservation(word, item_of(asked.spec, "spec"), nodes, known_queues(settings.queues))


def _notes(found: Documents, chosen: str, settings: Settings, nodes: Sequence[Node]) -> tuple[str, ...]:
    notes = list(queue_notes(found.queues, nodes, found.rates))
    if found.nodes:
        what = "node of the documents is" if len(found.nodes) == 1 else "nodes of the documents are"
        notes.append(f"{len(found.nodes)} {what} not used: a service has the cards that are there")
    if found.failing:
        notes.append("failures of nodes in the documents are not used: they happen, or do not")
    unused = [word for word, _ in found.policies if word != chosen]
    if unused:
        notes.append(f"policy {chosen} is used; {', '.join(unused)} of the documents is not")
    if settings.idling is not None:
        notes.append("idle jobs are not stopped: this service does not measure whether a job is idle")
    return tuple(notes)
