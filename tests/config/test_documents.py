"""What documents come to: nodes, jobs, policies, and how they refer to each other across files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aliquot.catalog import load_catalog
from aliquot.config import BUILTIN, load_scenario
from aliquot.core.inventory import Profile
from aliquot.core.jobs import Link, Stage
from aliquot.core.settings import Discipline, MixSource, Rescue, Settings
from aliquot.core.slices import Ask, Cut, resolve_ask
from aliquot.core.speed import Reach
from aliquot.core.topology.links import Link as Level
from aliquot.core.topology.wiring import Fabric
from aliquot.core.workload import Scenario
from tests.config.documents import CLUSTER, document, gpu, job, load, nodes, request_of

ASKS = [
    ("a count is that many whole cards", "{count: 2}", Ask(Cut.WHOLE)),
    ("nothing said is one whole card", "{distinct: true}", Ask(Cut.WHOLE)),
    ("an empty memory is not said", "{memory: }", Ask(Cut.WHOLE)),
    ("memory is a shared slice", "{memory: 4GiB}", Ask(Cut.SHARED, memory_mib=4096)),
    ("compute is a shared slice", "{compute: 25%}", Ask(Cut.SHARED, compute_milli=250)),
    ("all of the compute is still a slice", "{compute: 1}", Ask(Cut.SHARED, compute_milli=1000)),
    ("all three numbers", "{memory: 4GiB, compute: 0.5, bandwidth: 125m}", Ask(Cut.SHARED, 4096, 500, 125)),
    ("memory of a whole card is what it must have", "{exclusive: true, memory: 40GB}", Ask(Cut.WHOLE, 38147)),
    ("a slice class", "{slice: half}", Ask(Cut.SHARED, 20480, 500, 400)),
]
HALF = document("SliceClass", "half", "{memory: 20GiB, compute: 50%, bandwidth: 40%}")


@pytest.mark.parametrize(("fields", "ask"), [row[1:] for row in ASKS], ids=[row[0] for row in ASKS])
def test_a_gpu_part_asks_for(tmp_path: Path, fields: str, ask: Ask) -> None:
    request = request_of(tmp_path, fields, HALF)
    assert request.ask == ask
    assert request.whole is (ask.cut is Cut.WHOLE)


def test_a_count_without_memory_opens_no_more_cards_than_it_says(tmp_path: Path) -> None:
    assert request_of(tmp_path, "{count: 1}").cards == 1


def test_memory_over_any_card_is_a_reason_to_wait_and_no_error(tmp_path: Path) -> None:
    request = request_of(tmp_path, "{memory: 1TiB}")
    assert resolve_ask(request.ask, 40960) is None


def test_no_ask_ever_books_nothing(tmp_path: Path) -> None:
    """B03: the smallest that can be written still books a MiB and a thousandth."""
    for fields in ("{memory: 1B}", "{compute: 0.1%}"):
        vector = resolve_ask(request_of(tmp_path, fields).ask, 32768)
        assert vector is not None
        assert min(vector) >= 1


def test_a_tenth_written_ten_ways_books_one_card(tmp_path: Path) -> None:
    forms = ("10%", "0.1", "100m", "1/10", '"0.1"')
    booked = {resolve_ask(request_of(tmp_path, f"{{compute: {form}}}").ask, 40960) for form in forms}
    assert len(booked) == 1
    (vector,) = booked
    assert vector is not None
    assert (10 * vector.compute, 10 * vector.memory) == (1000, 40960)


def test_a_profile_takes_families_and_minima(tmp_path: Path) -> None:
    request = request_of(
        tmp_path,
        "{count: 8, models: [V100M32, h100], minMemory: 30GiB, minBandwidth: 2.5TB/s, minLink: 600GB/s,"
        " minTflops: {bf16: 300, fp8: 0.5}, nvlink: required, distinct: false, traffic: 12GB/s}",
    )
    assert request.profile == Profile(
        models=("V100-SXM2-32GB", "H100-PCIE-80GB", "H100-SXM5-80GB", "H100-NVL-94GB"),
        memory_mib=30720,
        bandwidth_gbs=2500,
        link_gbs=600,
        gflops=(("bf16", 300_000), ("fp8", 500)),
    )
    assert (request.link, request.distinct, request.traffic_mbs) == (Link.REQUIRED, False, 12_000)


def test_a_job_with_every_field(tmp_path: Path) -> None:
    text = job(
        "{priority: -5, queue: a/b, stage: inference, submit: 5m, run: 3h, estimate: 4h, patience: 1h,"
        " busy: 91%, linked: true, movable: true, scatter: true, cpu: 1.5, memory: 2GiB, gpu: {count: 8}}"
    )
    (offer,) = load(tmp_path, CLUSTER, text).offers
    job_ = offer.job
    assert (job_.id, job_.priority, job_.queue, job_.stage) == ("j", -5, "a/b", Stage.INFERENCE)
    assert (job_.submitted_ms, job_.estimate_ms, job_.movable, job_.scatter) == (
        300_000,
        14_400_000,
        True,
        True,
    )
    assert (offer.work_ms, offer.patience_ms, offer.busy_milli, offer.linked) == (
        10_800_000,
        3_600_000,
        910,
        True,
    )
    assert (job_.members[0].cpu_milli, job_.members[0].host_mib, job_.members[0].cards) == (1500, 2048, 8)


def test_what_a_job_does_not_say_stays_unsaid(tmp_path: Path) -> None:
    (offer,) = load(tmp_path, CLUSTER, gpu("{count: 1}")).offers
    assert (offer.work_ms, offer.patience_ms, offer.busy_milli, offer.job.estimate_ms) == (None,) * 4


def test_activity_of_nothing_is_known_to_be_nothing(tmp_path: Path) -> None:
    (offer,) = load(tmp_path, CLUSTER, job("{gpu: {count: 1}, busy: 0%}")).offers
    assert offer.busy_milli == 0


def test_replicas_are_jobs_of_their_own_in_order_of_submission(tmp_path: Path) -> None:
    late = job("{replicas: 2, submit: 1m, cpu: 1}", "late")
    early = job("{replicas: 1, submit: 0, cpu: 1}", "early")
    offers = load(tmp_path, CLUSTER, late, early).offers
    assert [(offer.job.id, offer.job.seq, offer.job.replica_of) for offer in offers] == [
        ("early-0", 0, "early"),
        ("late-0", 1, "late"),
        ("late-1", 2, "late"),
    ]


def test_a_job_without_a_priority_has_that_of_its_queue(tmp_path: Path) -> None:
    queue = document("Queue", "ai-lab/training", "{priority: 100, gpuMemory: 320GB}")
    scenario = load(tmp_path, job("{cpu: 1, queue: ai-lab/training}"), CLUSTER, queue)
    assert scenario.offers[0].job.priority == 100
    assert scenario.notes == ()


def test_no_quota_and_a_quota_of_nothing_differ(tmp_path: Path) -> None:
    queues = document("Queue", "a", "{priority: 1}"), document("Queue", "b", "{gpuMemory: 0GB}")
    settings = load(tmp_path, CLUSTER, *queues).settings("fgd")
    assert settings is not None
    assert [queue.nominal_mib for queue in settings.queues] == [None, 0]


def test_yaml_words_for_yes_and_no_are_names_like_any_other(tmp_path: Path) -> None:
    assert load(tmp_path, CLUSTER, document("Job", "no", "{cpu: 1}")).offers[0].job.id == "no"


def test_a_group_of_a_shape_has_the_shapes_sizes_and_uuids_of_its_own(tmp_path: Path) -> None:
    scenario = load(tmp_path, nodes("{name: n, count: 2, shape: dgx-a100-320, rack: r1, labels: {zone: a}}"))
    first, second = scenario.nodes
    assert [str(node.id) for node in scenario.nodes] == ["site/n-0", "site/n-1"]
    assert first.wiring is second.wiring
    assert (first.cpu_milli, first.host_mib, first.rack, first.labels) == (
        256_000,
        2**20,
        "r1",
        (("zone", "a"),),
    )
    uuids = [card.uuid for node in scenario.nodes for card in node.cards]
    assert len(set(uuids)) == 16
    assert uuids[0] == load(tmp_path, nodes("{name: n, count: 1, shape: pcie-t4-1}")).nodes[0].cards[0].uuid
    assert first.price_cents_per_card == 1_000_000
    assert any("assumption" in note for note in scenario.notes)


def test_a_price_of_the_sites_own_needs_no_remark(tmp_path: Path) -> None:
    scenario = load(tmp_path, nodes("{name: n, shape: dgx-a100-320, price: 30000.50}"))
    assert scenario.nodes[0].price_cents_per_card == 3_000_050
    assert scenario.notes == ()


def test_sizes_beside_a_shape_replace_its_own_and_numa_follows(tmp_path: Path) -> None:
    node = load(tmp_path, nodes("{name: n, shape: pcie-t4-4, cpu: 9, memory: 33GiB}")).nodes[0]
    assert sum(part.cpu_milli for part in node.numa) == node.cpu_milli == 9000
    assert sum(part.host_mib for part in node.numa) == node.host_mib == 33 * 1024


def test_a_site_may_know_better_and_may_have_cards_of_its_own(tmp_path: Path) -> None:
    cards = "[{model: T4, count: 1, reserved: 500MiB}, {model: Own-1, count: 2, memory: 12GiB}]"
    text = nodes(f"{{name: n, cards: {cards}, cpu: 8, memory: 64GiB}}")
    scenario = load(tmp_path, text, gpu("{models: own-1}"))
    models = [card.model for card in scenario.nodes[0].cards]
    assert [(model.name, model.usable_mib) for model in models] == [("T4", 14860), *[("Own-1", 12288)] * 2]
    assert scenario.offers[0].job.members[0].profile.models == ("Own-1",)
    assert scenario.nodes[0].wiring is None


def test_wirings_in_words_numbers_and_matrices(tmp_path: Path) -> None:
    (tmp_path / "m.txt").write_text("\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV4\t X \n")
    sizes = "cpu: 8, memory: 64GiB, numa: 2"
    a100 = "cards: {model: A100-SXM4-40GB, count: 4}"
    groups = [
        f"{{name: a, {a100}, {sizes}, wiring: nvswitch}}",
        f"{{name: b, {a100}, {sizes}, wiring: {{kind: nvswitch, links: 4}}}}",
        f"{{name: c, {a100}, {sizes}, wiring: {{kind: pcie, perSwitch: 2, gen: 3}}}}",
        f"{{name: d, {a100}, {sizes}, wiring: unknown}}",
        f"{{name: e, cards: {{model: A40, count: 2}}, {sizes}, wiring: {{matrixFile: m.txt}}}}",
    ]
    found = {node.id.name: node.wiring for node in load(tmp_path, nodes(", ".join(groups))).nodes}
    a, b, c, e = found["a"], found["b"], found["c"], found["e"]
    assert a
    assert b
    assert c
    assert e
    assert (a.fabric, a.nvlinks(0, 3), a.numa) == (Fabric.UNIFORM, 12, (0, 0, 1, 1))
    assert b.nvlinks(0, 3) == 4
    assert (c.level(0, 1), c.level(1, 2), c.gen) == (Level.PIX, Level.SYS, 3)
    assert found["d"] is None
    assert e.nvlinks(0, 1) == 4


def test_a_pool_adds_labelled_machines_to_its_cluster(tmp_path: Path) -> None:
    pool = document("Pool", "edge", "{nodes: [{name: e, shape: pcie-t4-1, tier: edge}]}")
    node = load(tmp_path, pool, CLUSTER).nodes[-1]
    assert (str(node.id), node.tier) == ("site/e", "edge")
    assert node.labels == (("aliquot.dev/pool", "edge"),)


def test_failures_speeds_and_notes_of_a_cluster(tmp_path: Path) -> None:
    scenario = load(
        tmp_path,
        document(
            "Cluster",
            "c",
            "{nodes: [{name: n, shape: pcie-t4-1, price: 1}], speeds: {network: 40%, sharing: 95%},"
            " failures: [{node: n, at: 2h}, {node: n, at: 1h, back: 90m}], notes: [assumed]}",
        ),
    )
    assert scenario.failures == ((3_600_000, "n", 5_400_000), (7_200_000, "n", None))
    assert (scenario.speeds.speed(Reach.NETWORK, False), scenario.speeds.speed(Reach.NVLINK, True)) == (
        400,
        950,
    )
    assert scenario.notes == ("assumed",)


def test_a_policy_with_every_field(tmp_path: Path) -> None:
    policy = document(
        "Policy",
        "p",
        "{placement: {fgd: 0.75, binpack: 1/4}, sharing: false, discipline: strict-fifo, byPriority: false,"
        " topologyAware: false, mix: {source: window, window: 100, epoch: 50}, "
        " rescue: {share: 3%, tidyMoves: 5}, scatter: true, seed: 7, mechanisms: {mps: true},"
        " engine: python}",
    )
    scenario = load(tmp_path, policy, CLUSTER, HALF)
    name, settings = scenario.policies[0]
    assert name == "p"
    assert settings == Settings(
        policy=(("fgd", 0.75), ("best-fit", 0.25)),
        shared=False,
        discipline=Discipline.STRICT,
        by_priority=False,
        topology_aware=False,
        seed=7,
        mix_source=MixSource.WINDOW,
        mix_window=100,
        mix_epoch=50,
        rescue=Rescue(share=0.03, tidy_moves=5),
        scatter=True,
        mechanisms=(("mps", True),),
        slices=settings.slices,
        engine="python",
    )
    assert [unit.name for unit in settings.slices] == ["half"]


def test_every_scenario_has_the_built_in_policies_after_its_own(tmp_path: Path) -> None:
    scenario = load(tmp_path, CLUSTER)
    assert [name for name, _ in scenario.policies] == [name for name, _ in BUILTIN]
    assert scenario.policies[0][0] == "future-packing"
    before, after = scenario.settings("whole-card-fifo"), scenario.settings("binpack-slices")
    assert before
    assert after
    assert (before.policy, before.shared, before.discipline) == ((("spread", 1.0),), False, Discipline.STRICT)
    assert not before.by_priority
    assert (after.policy, after.shared, after.by_priority) == ((("best-fit", 1.0),), True, True)


def test_json_says_the_same_as_yaml(tmp_path: Path) -> None:
    def scenario_of(documents: list[object]) -> Scenario:
        return load(tmp_path, json.dumps(documents), name="a.json")

    head = {"apiVersion": "aliquot.dev/v1"}
    group = {"name": "n", "count": 2, "cards": {"model": "A100-SXM4-40GB", "count": 4}, "cpu": 64}
    cluster = {
        "kind": "Cluster",
        "metadata": {"name": "site"},
        "spec": {"nodes": [group | {"memory": "512GiB"}]},
    }
    wish = {"memory": "4GiB", "compute": 0.1, "exclusive": False, "slice": None}
    task = {"kind": "Job", "metadata": {"name": "j"}, "spec": {"gpu": wish}}
    from_json = scenario_of([head | cluster, head | task])
    from_yaml = load(tmp_path, CLUSTER, gpu("{memory: 4GiB, compute: 0.1, exclusive: false, slice: }"))
    assert from_json == from_yaml


def test_a_folder_is_its_documents_by_name_and_not_those_below(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text(job("{cpu: 1}", "b"))
    (tmp_path / "a.yml").write_text(CLUSTER)
    (tmp_path / "c.txt").write_text("not a document")
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "d.yaml").write_text(job("{cpu: 1}", "d"))
    scenario = load_scenario([tmp_path], load_catalog())
    assert [offer.job.id for offer in scenario.offers] == ["b"]
