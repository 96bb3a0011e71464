"""Which policies a replay has, and which of them know the queues of a history."""

from __future__ import annotations

from pathlib import Path

import pytest

from aliquot.bootstrap_replays import find_machines, load_kueue_shape
from aliquot.catalog import load_catalog
from aliquot.config import BUILTIN
from aliquot.control.replaying import KueueAsk, Site
from aliquot.core.errors import SpecError
from aliquot.core.queues import Queue
from aliquot.core.settings import Settings

CATALOG = load_catalog()
CLUSTER = """\
apiVersion: aliquot.dev/v1
kind: Cluster
metadata: {name: lab}
spec: {nodes: [{name: box, cards: {model: T4, count: 2}, cpu: 16, memory: 64GiB}]}
"""
QUEUE = """---
apiVersion: aliquot.dev/v1
kind: Queue
metadata: {name: dev}
spec: {priority: 5}
"""
OWN = """---
apiVersion: aliquot.dev/v1
kind: Policy
metadata: {name: ours}
spec: {placement: spread}
"""
DEV, NEW = Queue("dev", priority=5), Queue("new")


def documented(folder: Path, *documents: str) -> Site:
    file = folder / "site.yaml"
    file.write_text("".join((CLUSTER, *documents)))
    return Site((file,))


def policies(site: Site, *queues: Queue) -> dict[str, Settings]:
    machines = find_machines(CATALOG, site)
    found = machines.policies((*machines.queues, *queues))
    assert len(found) == len(dict(found)), "no two of one name"
    return dict(found)


def test_textbook_rules_know_one_queue_and_the_rest_those_of_the_history() -> None:
    found = policies(Site(nodes=2, cards=8), NEW)
    assert [*found][:6] == ["backfill", "easy", "skip-ahead", "fifo", "fair", "reclaim"]
    assert {*found} == {name for name, _ in BUILTIN}
    assert {name for name, policy in found.items() if not policy.queues} == {*[*found][:4]}
    assert {policy.queues for policy in found.values() if policy.queues} == {(NEW,)}


def test_documented_queues_bind_every_policy(tmp_path: Path) -> None:
    found = policies(documented(tmp_path, QUEUE), NEW)
    assert {tuple(queue.name for queue in policy.queues) for policy in found.values()} == {("dev", "new")}


def test_without_documented_queues_it_is_as_without_documents(tmp_path: Path) -> None:
    found = policies(documented(tmp_path), NEW)
    assert found["fifo"].queues == ()
    assert found["fair"].queues == (NEW,)
    assert next(iter(found)) == "backfill"


def test_a_policy_of_the_documents_comes_first(tmp_path: Path) -> None:
    found = policies(documented(tmp_path, OWN), NEW)
    assert [*found][:2] == ["ours", "backfill"]
    assert found["ours"].policy == (("spread", 1.0),)


def test_kueue_takes_back_what_was_lent_and_every_policy_has_its_queues() -> None:
    scenario = load_kueue_shape(KueueAsk("baseline", 1))
    name, first = scenario.policies[0]
    assert (name, first.preemption is not None) == ("reclaim", True)
    assert {len(policy.queues) for _, policy in scenario.policies} == {35}
    assert len(scenario.policies) == len(dict(scenario.policies))


@pytest.mark.parametrize(
    "site",
    [
        Site(),
        Site(nodes=2),
        Site(cards=2),
        Site(model="T4"),
        Site(nodes=2, model="T4"),
        Site((Path("x.yaml"),), nodes=2, cards=8),
        Site((Path("x.yaml"),), model="T4"),
    ],
    ids=["nothing", "nodes", "cards", "model", "no cards", "both", "a model for documents"],
)
def test_a_site_that_is_neither_or_both(site: Site) -> None:
    with pytest.raises(SpecError, match="--cluster: no one site to replay on"):
        find_machines(CATALOG, site)
