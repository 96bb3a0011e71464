"""Queues of documents: quotas of every kind, what is said and not said, and what is wrong with a tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from aliquot.catalog import load_catalog
from aliquot.config import load_scenario
from aliquot.core.charging import flavours_of, names_of
from aliquot.core.inventory import kind_of
from aliquot.core.jobs import Job, asked_of
from aliquot.core.queueing.quota import Book, fits, open_book
from aliquot.core.queueing.tree import grow_tree, leaf_of
from aliquot.core.queues import CARDS, MEMORY, UNLIMITED, Discipline, Measure, Queue, Quota, Resource
from aliquot.core.settings import Rates
from aliquot.core.workload import Scenario
from tests.config.documents import CLUSTER, check_error, document, job, load

A100 = "A100-SXM4-40GB"
OF_A100 = Resource(Measure.CARDS, A100)
COMPUTE, MONEY = Resource(Measure.COMPUTE), Resource(Measure.MONEY)


def queues(entries: str) -> str:
    return document("Queues", "all", f"{{queues: [{entries}]}}")


def queue(spec: str, name: str = "q") -> str:
    return document("Queue", name, spec)


def read(folder: Path, *texts: str) -> tuple[Queue, ...]:
    return load(folder, CLUSTER, *texts).policies[0][1].queues


# (story, quota, what it comes to)
QUOTAS = [
    ("a plain number is the nominal", "{cards: 4}", [Quota(CARDS, nominal=4000)]),
    ("half a card", "{cards: 0.5}", [Quota(CARDS, nominal=500)]),
    ("nothing of its own is not the same as no quota", "{cards: 0}", [Quota(CARDS, nominal=0)]),
    (
        "0, unlimited and absent stay three things",
        "{cards: {borrowing: 0, lending: unlimited}}",
        [Quota(CARDS, nominal=None, borrowing=0, lending=UNLIMITED, maximum=None)],
    ),
    ("an empty limit is absent", "{cards: {nominal: 2, maximum: }}", [Quota(CARDS, nominal=2000)]),
    ("unlimited in quotes", '{cards: {maximum: "unlimited"}}', [Quota(CARDS, maximum=UNLIMITED)]),
    (
        "cards of a model and of any",
        f"{{cards: {{any: 6, {A100}: {{nominal: 2, maximum: 4}}}}}}",
        [Quota(CARDS, nominal=6000), Quota(OF_A100, nominal=2000, maximum=4000)],
    ),
    ("a model by an alias, in any case", "{cards: {a100-40gb: 2}}", [Quota(OF_A100, nominal=2000)]),
    ("memory", "{gpuMemory: {nominal: 320GB, lending: 0}}", [Quota(MEMORY, nominal=305280, lending=0)]),
    ("card-equivalents", "{compute: 2.5}", [Quota(COMPUTE, nominal=2500)]),
    ("money in cents", "{money: 100.50}", [Quota(MONEY, nominal=10050)]),
    (
        "several in one",
        "{cards: 4, money: {borrowing: 0}}",
        [Quota(CARDS, nominal=4000), Quota(MONEY, borrowing=0)],
    ),
]


@pytest.mark.parametrize(("quota", "found"), [row[1:] for row in QUOTAS], ids=[row[0] for row in QUOTAS])
def test_a_quota_comes_to(tmp_path: Path, quota: str, found: list[Quota]) -> None:
    (only,) = read(tmp_path, queue(f"{{quota: {quota}}}"))
    assert list(only.quotas) == found


def test_a_queue_with_every_field(tmp_path: Path) -> None:
    above = queue("{priority: 1}", "lab")
    text = queue(
        "{parent: lab, priority: -3, weight: 0.5, discipline: strict-fifo, gpuMemory: 0GB, quota: {cards: 1}}"
    )
    assert read(tmp_path, above, text)[1] == Queue(
        "q",
        priority=-3,
        nominal_mib=0,
        quotas=(Quota(CARDS, nominal=1000),),
        weight=500,
        discipline=Discipline.STRICT,
        parent="lab",
    )


def test_a_list_of_queues_says_the_same_as_documents_of_their_own(tmp_path: Path) -> None:
    listed = read(tmp_path, queues("{name: a, quota: {cards: 2}}, {name: a/b, weight: 0}"))
    assert listed == read(tmp_path, queue("{quota: {cards: 2}}", "a"), queue("{weight: 0}", "a/b"))


def test_the_pool_itself_may_be_promised_less_than_it_has(tmp_path: Path) -> None:
    """It is the queue without a name."""
    assert read(tmp_path, queues('{name: "", quota: {cards: 6}}'))[0] == Queue(
        "", quotas=(Quota(CARDS, nominal=6000),)
    )


def test_a_quota_of_a_card_that_only_this_site_has(tmp_path: Path) -> None:
    own = document(
        "Pool",
        "p",
        "{site: site, nodes: [{name: o, cards: {model: Own-1, count: 1, memory: 8GiB}, cpu: 1, memory: 1GiB}"
        "]}",
    )
    (only,) = read(tmp_path, queue("{quota: {cards: {Own-1: 1}}}"), own)
    assert only.quotas == (Quota(Resource(Measure.CARDS, "Own-1"), nominal=1000),)


def test_jobs_may_be_in_a_queue_above_those_that_are_written_down(tmp_path: Path) -> None:
    scenario = load(tmp_path, CLUSTER, queue("{}", "lab/a"), job("{cpu: 1, queue: lab}"))
    assert scenario.offers[0].job.queue == "lab"


def test_what_is_promised_beyond_the_pool_is_said(tmp_path: Path) -> None:
    notes = load(
        tmp_path, CLUSTER, queue("{quota: {cards: 6}}", "a"), queue("{quota: {cards: 4}}", "b")
    ).notes
    assert notes == ("queues are promised more than the pool has: 2 of cards too much",)


def test_a_promise_of_cards_that_no_machine_has_is_said(tmp_path: Path) -> None:
    notes = load(tmp_path, CLUSTER, queue("{quota: {cards: {H100-SXM5-80GB: 4}}}")).notes
    assert notes == ("queues are promised more than the pool has: 4 of cards H100-SXM5-80GB too much",)


def test_quotas_of_money_need_rates_and_say_so(tmp_path: Path) -> None:
    (note,) = load(tmp_path, CLUSTER, queue("{quota: {money: 100}}")).notes
    assert note.startswith(f"quotas of money do not count cards of {A100}: ")
    rated = CLUSTER.replace("spec:\n", f"spec:\n  rates: {{{A100}: {{month: 15}}}}\n")
    scenario = load(tmp_path, rated, queue("{quota: {money: 100}}"), document("Policy", "p", "{seed: 1}"))
    assert scenario.notes == ()
    assert {settings.rates.cents_a_month for _, settings in scenario.policies} == {((A100, 1500),)}


def test_budgets_need_rates_and_are_called_budgets(tmp_path: Path) -> None:
    (note,) = load(tmp_path, CLUSTER, queue("{budget: 100}")).notes
    assert note.startswith(f"budgets do not count cards of {A100}: ")


def test_a_job_has_the_priority_of_its_queue_or_of_the_nearest_above_that_says(tmp_path: Path) -> None:
    tree = queues(
        "{name: lab, priority: 50}, {name: lab/a}, {name: lab/z, priority: 0}, {name: x, parent: lab}"
    )
    jobs = [job(f"{{cpu: 1, run: 1h, queue: {name}}}", name[-1]) for name in ("lab", "lab/a", "lab/z", "x")]
    found = load(tmp_path, CLUSTER, tree, *jobs).offers
    assert [offer.job.priority for offer in found] == [50, 50, 0, 50]


def test_a_hard_quota_of_the_short_form_never_borrows(tmp_path: Path) -> None:
    quotas = "a: {gpu_memory: 64GB, hard: true}, b: {gpu_memory: 64GB, hard: false}"
    text = f"scheduler: {{resource_quota: {{{quotas}}}}}\n"
    first, second = read(tmp_path, text)
    assert first.quotas == (Quota(MEMORY, nominal=61056, borrowing=0),)
    assert (second.nominal_mib, second.quotas) == (61056, ())


# (story, documents, field, part of the message)
WRONG = [
    ("a negative quota", queue("{quota: {cards: -1}}"), "spec.quota.cards", "'-1' is below 0"),
    ("an endless quota", queue("{quota: {cards: .inf}}"), "spec.quota.cards", "not a limit"),
    ("a limit in other words", queue("{quota: {money: none}}"), "spec.quota.money", "an amount or unlimited"),
    ("memory without a unit", queue("{quota: {gpuMemory: 320}}"), "spec.quota.gpuMemory", "no unit"),
    ("an unlimited promise", queue("{quota: {cards: unlimited}}"), "spec.quota.cards", "is a promise"),
    (
        "a maximum below the nominal",
        queue("{quota: {cards: {nominal: 4, maximum: 2}}}"),
        "spec.quota.cards.maximum",
        "maximum 2 is below nominal 4",
    ),
    (
        "more lent than there is",
        queue("{quota: {cards: {nominal: 4, lending: 6}}}"),
        "spec.quota.cards.lending",
        "lending 6 is above nominal 4",
    ),
    ("a quota that says nothing", queue("{quota: {cards: {}}}"), "spec.quota.cards", "says nothing"),
    ("no quota in the quota", queue("{quota: {}}"), "spec.quota", "says nothing"),
    ("an unknown resource", queue("{quota: {card: 4}}"), "spec.quota.card", "did you mean 'cards'?"),
    ("a misspelt limit", queue("{quota: {cards: {nominl: 4}}}"), "spec.quota.cards.nominl", "nominal"),
    (
        "a limit among models",
        queue(f"{{quota: {{cards: {{{A100}: 4, nominal: 2}}}}}}"),
        f"spec.quota.cards.{A100}",
        "unknown key",
    ),
    ("a family", queue("{quota: {cards: {A100: 4}}}"), "spec.quota.cards.A100", "any of several models"),
    (
        "one model under two names",
        queue(f"{{quota: {{cards: {{{A100}: 4, {A100.lower()}: 2}}}}}}"),
        f"spec.quota.cards.{A100.lower()}",
        "a second quota",
    ),
    (
        "memory in both forms",
        queue("{gpuMemory: 1GiB, quota: {gpuMemory: 2GiB}}"),
        "spec",
        "two quotas for memory",
    ),
    ("money with a sign", queue("{quota: {money: $5}}"), "spec.quota.money", "not an amount of money"),
    ("a negative weight", queue("{weight: -1}"), "spec.weight", "'-1' is below 0"),
    ("a weight that is no number", queue("{weight: .nan}"), "spec.weight", "not a plain number"),
    ("money below 0", queue("{quota: {money: -5.50}}"), "spec.quota.money", "'-5.50' is below 0"),
    ("an unknown discipline", queue("{discipline: fifo}"), "spec.discipline", "strict-fifo, best-effort"),
    ("a parent that is not there", queue("{parent: lab}"), "spec.parent", "declare it"),
    ("a queue above itself", queue("{parent: q}"), "spec.parent", "q < q"),
    (
        "queues above each other",
        queue("{parent: b}", "a") + "---\n" + queue("{parent: a}", "b"),
        "spec.parent",
        "a < b < a",
    ),
    (
        "children that are promised more than their parent has",
        queues("{name: a, quota: {cards: 2}}, {name: a/b, quota: {cards: 3}}"),
        "spec.queues[0].quota.cards",
        "promised 3 of cards, it has 2",
    ),
    (
        "a maximum below what the children are promised",
        queues("{name: a, quota: {cards: {maximum: 2}}}, {name: a/b, quota: {cards: 4}}"),
        "spec.queues[0].quota.cards.maximum",
        "promised 4 of cards, it may never have more than 2",
    ),
    (
        "a limit of the pool that nobody would keep",
        queues('{name: "", quota: {cards: {maximum: 4}}}'),
        "spec.queues[0].quota.cards.maximum",
        "the pool itself has no maximum",
    ),
    (
        "the same in the short form",
        "scheduler: {resource_quota: {a: {gpu_memory: 1GiB}, a/b: {gpu_memory: 2GiB}}}\n",
        "scheduler.resource_quota.a.gpu_memory",
        "promised 2 GiB of memory, it has 1 GiB",
    ),
    (
        "a queue in both forms",
        queue("{priority: 1}", "a") + "---\nscheduler: {resource_quota: {a: {priority: 2}}}\n",
        "spec",
        "a second queue named 'a'",
    ),
    ("a queue without a name", queues("{weight: 1}"), "spec.queues[0]", "'name' is missing"),
    (
        "a hard quota of nothing",
        "scheduler: {resource_quota: {a: {hard: true}}}\n",
        "scheduler.resource_quota.a",
        "add gpu_memory",
    ),
    (
        "a job in no queue that there is",
        queue("{}", "lab/a") + "---\n" + job("{cpu: 1, queue: lab/b}"),
        "spec.queue",
        "did you mean 'lab/a'?",
    ),
]


@pytest.mark.parametrize(("text", "field", "why"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_what_is_wrong_with_a_queue_is_named(tmp_path: Path, text: str, field: str, why: str) -> None:
    check_error(tmp_path, f"{CLUSTER}---\n{text}", field, why, after_line=6)


# --- the case: its quotas are nominals, so its jobs fit by borrowing ------------------------------------


def case(repository: Path) -> tuple[Scenario, list[Job]]:
    scenario = load_scenario([repository / "examples" / "case"], load_catalog())
    return scenario, [offer.job for offer in scenario.offers]


def book_of(scenario: Scenario, declared: tuple[Queue, ...]) -> Book:
    cards = [card for node in scenario.nodes for card in node.cards]
    memory = sum(card.model.usable_mib for card in cards)
    return open_book(grow_tree(declared, {CARDS: 1000 * len(cards), MEMORY: memory}), {})


def admit_all(book: Book, jobs: list[Job], scenario: Scenario) -> list[str]:
    """Admit what fits, in order; the jobs that do not."""
    refused = []
    kinds = [kind_of(scenario.nodes[0])]
    for asked in jobs:
        leaf = leaf_of(book.tree, asked.queue)
        charge = flavours_of(asked, kinds, book.tree, Rates(), names_of(kinds, book.tree))[0].charge
        if fits(book, leaf, charge):
            book.add(leaf, charge)
        else:
            refused.append(asked.replica_of)
    return refused


def test_the_quotas_of_the_case_hold_nobody_up_since_the_pool_lends_the_rest(repository: Path) -> None:
    scenario, jobs = case(repository)
    book = book_of(scenario, scenario.policies[0][1].queues)
    assert admit_all(book, jobs, scenario) == []
    model = scenario.nodes[0].cards[0].model
    own = sum(asked_of(member, model)[1] for member in jobs[-1].members)
    nominal = scenario.policies[0][1].queues[0].nominal_mib or 0
    assert own <= nominal < 2 * own  # one training job is the whole nominal: the other two borrow


def test_as_hard_caps_the_quotas_of_the_case_would_let_one_training_job_and_16_tasks_in(
    repository: Path,
) -> None:
    scenario, jobs = case(repository)
    hard = tuple(
        Queue(queue.name, quotas=(Quota(MEMORY, nominal=queue.nominal_mib, borrowing=0),))
        for queue in scenario.policies[0][1].queues
    )
    refused = admit_all(book_of(scenario, hard), jobs, scenario)
    assert (refused.count("training"), refused.count("inference")) == (2, 4)
