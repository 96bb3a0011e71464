"""Items into documents, documents into parts of a scenario; names are unique and references resolve.

Kinds are read in the order in which they refer to each other, whatever the order in the files, so a job may
stand before the slice class it asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from aliquot.config import bare
from aliquot.config.builtin import BUILTIN
from aliquot.config.clusters import POOL_LABEL, read_groups
from aliquot.config.fields import Field, Table, read_fields
from aliquot.config.jobs import read_job
from aliquot.config.policies import read_policy, read_rates
from aliquot.config.queues import (
    check_together,
    known_queues,
    priorities_of,
    queue_notes,
    read_listed,
    read_queue,
)
from aliquot.config.readers import asked_memory, choice, moment, name, path_name, share, text, words
from aliquot.config.requests import Known
from aliquot.config.shelf import ModelNames, Shelf
from aliquot.config.throughput import check_throughput
from aliquot.config.tree import Item, nearest
from aliquot.config.waits import Group, link_groups
from aliquot.core.inventory import Node
from aliquot.core.queues import Queue
from aliquot.core.settings import Rates, Settings
from aliquot.core.slices import SliceClass
from aliquot.core.speed import Reach, SpeedTable
from aliquot.core.workload import Offer, Standing

API_VERSION: Final = "aliquot.dev/v1"

ENVELOPE: Final[Table] = {
    "apiVersion": Field(text, "version", required=True),
    "kind": Field(text, required=True),
    "metadata": Field(lambda item: item, required=True),
    "spec": Field(lambda item: item, required=True),
}
METADATA: Final[Table] = {
    "name": Field(path_name, required=True),
    "labels": Field(lambda item: tuple((key, text(child)) for key, child in item.fields())),
}
CLUSTER: Final[Table] = {
    "nodes": Field(Item.elements, required=True),
    "speeds": Field(lambda item: item),
    "rates": Field(lambda item: item),
    "failures": Field(Item.elements),
    "notes": Field(words),
    "standing": Field(choice(Standing)),
}
POOL: Final[Table] = {"site": Field(name), "nodes": Field(Item.elements, required=True)}
FAILURE: Final[Table] = {
    "node": Field(name, required=True),
    "at": Field(moment, required=True),
    "back": Field(moment),
}
SLICE: Final[Table] = {
    "memory": Field(asked_memory, "memory_mib", required=True),
    "compute": Field(share, "compute_milli", required=True),
    "bandwidth": Field(share, "bandwidth_milli"),
}
QUEUES: Final[Table] = {"queues": Field(Item.elements, required=True)}
SPEEDS: Final[Table] = {
    **{reach.value: Field(share) for reach in Reach},
    "sharing": Field(share),
}


class Document(NamedTuple):
    """One document with its envelope read."""

    kind: str
    name: str
    labels: tuple[tuple[str, str], ...]
    item: Item
    spec: Item


class Documents:
    """What a set of files says, read and checked. Lists are in the order of the files."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf, self.names = shelf, ModelNames(shelf)
        self.sites: list[str] = []
        self.nodes: list[Node] = []
        self.offers: list[Offer] = []
        self.groups: list[Group] = []
        self.declared: list[tuple[Queue, Item]] = []
        self.priorities: dict[str, int] = {}
        self.reachable: list[str] = []  # queues that jobs may name, where there are any
        self.slices: list[SliceClass] = []
        self.policies: list[tuple[str, Settings]] = []
        self.failing: list[Item] = []
        self.failures: list[tuple[int, str, int | None]] = []
        self.reservations: list[tuple[str, Item]] = []
        self.speeds = SpeedTable()
        self.rates = Rates()
        self.said: list[str] = []
        self.notes: dict[str, None] = {}
        self.standing = Standing.WHAT_IF
        self._claimed: dict[tuple[str, str], Item] = {}
        self._set_at: dict[str, Item] = {}

    def claim(self, kind: str, word: str, item: Item) -> None:
        """Take a name of a kind; fails where it is taken, and says where."""
        earlier = self._claimed.setdefault((kind, word), item)
        if earlier is not item:
            at = f"{earlier.file}:{earlier.line}" if earlier.line else earlier.file
            item.fail(f"a second {kind} named {word!r}", f"the first is at {at}")

    def note(self, text_: str) -> None:
        """Say something once beside every result."""
        self.notes[text_] = None

    @property
    def queues(self) -> tuple[Queue, ...]:
        """All queues, in the order of the files."""
        return tuple(queue for queue, _ in self.declared)

    def add_queue(self, queue: Queue, item: Item) -> None:
        """A queue and the map of its fields."""
        self.claim("queue", queue.name, item)
        self.declared.append((queue, item))

    def settle_queues(self) -> None:
        """Check the tree that all queues make, once all are known."""
        check_together(self.declared)
        self.priorities = priorities_of(self.queues)
        self.reachable = known_queues(self.queues)

    def set_speeds(self, item: Item) -> None:
        """The speed table; one document may set it."""
        self._set_once("speeds", item)
        values = read_fields(item, SPEEDS)
        sharing = values.pop("sharing", self.speeds.sharing_milli)
        table = tuple((reach, values.get(reach.value, milli)) for reach, milli in self.speeds.by_reach)
        self.speeds = SpeedTable(table, sharing)

    def set_rates(self, item: Item) -> None:
        """What cards are worth, for all policies that do not say it themselves; one document may."""
        self._set_once("rates", item)
        self.rates = read_rates(item, self.names)

    def _set_once(self, what: str, item: Item) -> None:
        earlier = self._set_at.setdefault(what, item)
        if earlier is not item:
            item.fail(f"{what} are set twice", f"the first are in {earlier.file}")


def read_documents(items: Sequence[Item], shelf: Shelf) -> Documents:
    """All of `items`. Raises DocumentError at the first thing that is wrong."""
    found = Documents(shelf)
    bares, opened = [], []
    for item in items:
        if item.entries is not None and {bare.GPU_UNIT, bare.SCHEDULER} & {key for key, _ in item.entries}:
            bares.append(item)
        else:
            opened.append(_open(item))
    for item in bares:
        _take_bare(item, found)
    for kind, take in KINDS.items():
        for document in opened:
            if document.kind == kind:
                take(document, found)
        if kind == "Queues":
            found.settle_queues()
    _link_jobs(found)
    _take_failures(found)
    for text_ in queue_notes(found.queues, found.nodes, found.rates):
        found.note(text_)
    return found


def _open(item: Item) -> Document:
    """Read the envelope: version, kind, name; the spec is left for its kind."""
    values = read_fields(item, ENVELOPE)
    version, kind = item.get("apiVersion"), item.get("kind")
    assert version is not None
    assert kind is not None
    if values["version"] != API_VERSION:
        version.fail(f"unknown version {values['version']!r}", f"write {API_VERSION}")
    if values["kind"] not in KINDS:
        kind.fail(f"unknown kind {values['kind']!r}", nearest(values["kind"], KINDS))
    metadata: Item = values["metadata"]
    head = read_fields(metadata, METADATA)
    word = metadata.get("name")
    if word is not None and kind.text != "Queue":
        name(word)  # only queues have levels
    return Document(values["kind"], head["name"], head.get("labels", ()), item, values["spec"])


def _take_bare(item: Item, found: Documents) -> None:
    values = read_fields(item, {bare.GPU_UNIT: Field(lambda it: it), bare.SCHEDULER: Field(lambda it: it)})
    if bare.GPU_UNIT in values:
        for unit, at in bare.read_units(values[bare.GPU_UNIT]):
            found.claim("slice class", unit.name, at)
            found.slices.append(unit)
    if bare.SCHEDULER in values:
        source: Item = values[bare.SCHEDULER]
        found.claim("policy", bare.SCHEDULER, source)
        scheduler = bare.read_scheduler(source)
        found.policies.append((bare.SCHEDULER, scheduler.settings))
        for queue, at in scheduler.queues:
            found.add_queue(queue, at)


def _take_slice(document: Document, found: Documents) -> None:
    values = read_fields(document.spec, SLICE)
    values.setdefault("bandwidth_milli", values["compute_milli"])
    found.claim("slice class", document.name, document.item)
    found.slices.append(SliceClass(document.name, **values))


def _take_queue(document: Document, found: Documents) -> None:
    found.add_queue(read_queue(document.name, document.spec, found.names), document.spec)


def _take_queues(document: Document, found: Documents) -> None:
    for item in read_fields(document.spec, QUEUES)["queues"]:
        found.add_queue(read_listed(item, found.names), item)


def _take_cluster(document: Document, found: Documents) -> None:
    found.claim("cluster", document.name, document.item)
    found.sites.append(document.name)
    values = read_fields(document.spec, CLUSTER)
    _add_nodes(values["nodes"], document.name, document.labels, found)
    if "speeds" in values:
        found.set_speeds(values["speeds"])
    if "rates" in values:
        found.set_rates(values["rates"])
    found.failing += values.get("failures", ())
    found.said += values.get("notes", ())
    found.standing = values.get("standing", found.standing)


def _take_pool(document: Document, found: Documents) -> None:
    found.claim("pool", document.name, document.item)
    values = read_fields(document.spec, POOL)
    site = values.get("site") or (found.sites[0] if len(found.sites) == 1 else "")
    if not site and found.sites:
        document.spec.fail(
            "does not say which cluster it belongs to", f"site: one of {', '.join(found.sites)}"
        )
    if found.sites and site not in found.sites:
        document.spec.fail(f"unknown cluster {site!r}", nearest(site, found.sites))
    _add_nodes(values["nodes"], site, (*document.labels, (POOL_LABEL, document.name)), found)


def _add_nodes(
    items: tuple[Item, ...], site: str, labels: tuple[tuple[str, str], ...], found: Documents
) -> None:
    machines = read_groups(items, site, labels, found.shelf, found.names)
    for node, item in machines.nodes:
        found.claim("node", str(node.id), item)
        found.nodes.append(node)
    for text_ in machines.notes:
        found.note(text_)


def _take_failures(found: Documents) -> None:
    """Failures of nodes, once all nodes are known: a cluster may name those of its pools."""
    nodes = {node.id.name for node in found.nodes}
    for item in found.failing:
        failure = read_fields(item, FAILURE)
        if failure["node"] not in nodes:
            item.fail(f"unknown node {failure['node']!r}", nearest(failure["node"], sorted(nodes)))
        if failure.get("back", failure["at"] + 1) <= failure["at"]:
            item.fail("a node that is back before it fails", "back later than at")
        found.failures.append((failure["at"], failure["node"], failure.get("back")))


def _take_job(document: Document, found: Documents) -> None:
    known = Known({unit.name: unit for unit in found.slices}, found.names)
    queue = document.spec.get("queue")
    if queue is not None and found.declared and queue.text not in found.reachable:
        queue.fail(f"unknown queue {queue.text!r}", nearest(queue.scalar(), found.reachable))
    offers = read_job(document.name, document.spec, known, found.priorities)
    said, gflops = document.spec.get("throughput"), offers[0].gflops
    if said is not None and gflops is not None:
        models = dict.fromkeys(card.model for node in found.nodes for card in node.cards)
        check_throughput(said, offers[0].job, gflops, models)
    for offer in offers:
        found.claim("job", offer.job.id, document.spec)
    found.offers += offers
    found.groups.append(Group(document.name, document.spec, tuple(offer.job.id for offer in offers)))


def _link_jobs(found: Documents) -> None:
    """What jobs wait for, once all jobs are known."""
    edges = link_groups(found.groups)
    if not edges:
        return
    owner = {id_: group.word for group in found.groups for id_ in group.ids}
    found.offers = [
        replace(offer, job=replace(offer.job, after=edges.get(owner[offer.job.id], ())))
        for offer in found.offers
    ]


def _take_reservation(document: Document, found: Documents) -> None:
    found.claim("reservation", document.name, document.item)
    found.reservations.append((document.name, document.spec))


def _take_policy(document: Document, found: Documents) -> None:
    if document.name in dict(BUILTIN):
        document.item.fail(f"{document.name!r} is a policy of Aliquot's own", "choose another name")
    found.claim("policy", document.name, document.item)
    found.policies.append((document.name, read_policy(document.spec, found.names)))


KINDS: Final[dict[str, Callable[[Document, Documents], Any]]] = {
    "SliceClass": _take_slice,
    "Cluster": _take_cluster,
    "Pool": _take_pool,
    "Queue": _take_queue,
    "Queues": _take_queues,
    "Job": _take_job,
    "Reservation": _take_reservation,
    "Policy": _take_policy,
}
