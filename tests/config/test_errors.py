"""Everything a person can write wrong: one sentence with file, line, field and advice."""

from __future__ import annotations

from pathlib import Path

import pytest

from aliquot.catalog import load_catalog
from aliquot.config import load_scenario
from aliquot.config.submissions import read_submissions
from aliquot.core.errors import DocumentError
from tests.config.documents import CLUSTER, check_error, document, gpu, job, nodes

UNIT = "gpu_unit: [{name: u, memory_mb: 1024, compute_percent: 25, memory_bandwidth_percent: 25}]"

PAIR = r'"\tGPU0\tGPU1\nGPU0\t X \tSYS\nGPU1\tSYS\t X \n"'


def unit(key: str, value: str) -> str:
    """A gpu_unit list whose only entry has `key` set to `value`."""
    right = {"name": "u", "memory_mb": "1024", "compute_percent": "25", "memory_bandwidth_percent": "25"}
    right[key] = value
    return "gpu_unit: [{" + ", ".join(f"{k}: {v}" for k, v in right.items() if v) + "}]"


def with_one_node(more: str) -> str:
    """A cluster document of one machine and `more`."""
    return document("Cluster", "c", f"{{nodes: [{{name: n, shape: pcie-t4-1}}], {more}}}")


# (story, text beside a right cluster, field, part of the message)
QUANTITIES = [
    ("memory of nothing", gpu("{memory: 0MiB}"), "spec.gpu.memory", "comes to nothing"),
    ("half a card as a count", gpu("{count: 0.5}"), "spec.gpu.count", "a part of a card: `compute: 50%`"),
    ("a part of a card as a count", gpu("{count: 50%}"), "spec.gpu.count", "compute: 50%"),
    ("hardly any memory", gpu("{memory: 0.4B}"), "spec.gpu.memory", "comes to nothing"),
    ("memory without a unit", gpu("{memory: 20}"), "spec.gpu.memory", "no unit"),
    ("memory without a unit in quotes", gpu('{memory: "20"}'), "spec.gpu.memory", "no unit"),
    ("memory in percent", gpu("{memory: 20%}"), "spec.gpu.memory", "share, not an amount"),
    ("memory of 0 percent", gpu("{memory: 0%}"), "spec.gpu.memory", "share, not an amount"),
    ("negative memory", gpu("{memory: -1}"), "spec.gpu.memory", "negative"),
    ("memory that is no number", gpu("{memory: .nan}"), "spec.gpu.memory", "not an amount"),
    ("endless memory", gpu("{memory: .inf}"), "spec.gpu.memory", "not an amount"),
    ("hexadecimal memory", gpu("{memory: 0x10}"), "spec.gpu.memory", "'0x10' is not an amount"),
    ("memory with separators", gpu("{memory: 1_000MiB}"), "spec.gpu.memory", "not an amount"),
    ("a list where memory belongs", gpu("{memory: [1GiB]}"), "spec.gpu.memory", "a list stands"),
    ("a map where memory belongs", gpu("{memory: {at: 1GiB}}"), "spec.gpu.memory", "a map stands"),
    ("compute of nothing", gpu("{compute: 0}"), "spec.gpu.compute", "comes to nothing"),
    ("compute over the whole", gpu("{compute: 101%}"), "spec.gpu.compute", "more than the whole"),
    ("memory where a fraction belongs", gpu("{compute: 8000Mi}"), "spec.gpu.compute", "not a fraction"),
    ("hexadecimal compute", gpu("{compute: 0x10}"), "spec.gpu.compute", "'0x10' is not a fraction"),
    ("compute that is no number", gpu("{compute: nan}"), "spec.gpu.compute", "not a fraction"),
    ("negative bandwidth", gpu("{compute: 1/2, bandwidth: -5%}"), "spec.gpu.bandwidth", "negative"),
    ("no cards", gpu("{count: 0}"), "spec.gpu.count", "out of range"),
    ("half a card", gpu("{count: 0.5}"), "spec.gpu.count", "not a whole number"),
    ("an octal count", gpu("{count: 010}"), "spec.gpu.count", "'010' is not a whole number"),
    ("a clock for a duration", job("{cpu: 1, run: 12:30:00}"), "spec.run", "'12:30:00' is not a duration"),
    ("a duration without a unit", job("{cpu: 1, run: 90}"), "spec.run", "not a duration"),
    ("a duration beyond a life", job("{cpu: 1, run: 99999d}"), "spec.run", "out of range"),
    ("negative cores", job("{cpu: -1}"), "spec.cpu", "negative"),
    (
        "a switch in the words of YAML 1.1",
        gpu("{memory: 1GiB, distinct: on}"),
        "spec.gpu.distinct",
        "true or false",
    ),
    ("a switch in quotes", gpu('{exclusive: "true"}'), "spec.gpu.exclusive", "true or false"),
    ("busy beyond a card", job("{gpu: {count: 1}, busy: 120%}"), "spec.busy", "more than the whole"),
    ("a minimum in an unknown format", gpu("{minTflops: {bf61: 300}}"), "spec.gpu.minTflops.bf61", "'bf16'"),
    (
        "a throughput below 0",
        job("{throughput: -1, gpu: {count: 1}}"),
        "spec.throughput",
        "plain number above 0",
    ),
    ("a throughput in words", job("{throughput: fast, gpu: {count: 1}}"), "spec.throughput", "such as 250"),
    ("no throughput at all", job("{throughput: 0, gpu: {count: 1}}"), "spec.throughput", "above 0"),
    (
        "a throughput that is no number",
        job("{throughput: 1.2.3, gpu: {count: 1}}"),
        "spec.throughput",
        "TFLOP/s",
    ),
    ("TFLOPS in percent", gpu("{minTflops: {bf16: 30%}}"), "spec.gpu.minTflops.bf16", "TFLOP/s"),
    ("a rate in bits", gpu("{minLink: 200Gb/s}"), "spec.gpu.minLink", "not a rate"),
    ("no replicas", job("{cpu: 1, replicas: 0}"), "spec.replicas", "out of range"),
]

MEANINGS = [
    (
        "an unknown key, with its neighbour",
        gpu("{memroy: 1GiB}"),
        "spec.gpu.memroy",
        "did you mean 'memory'?",
    ),
    ("a key in the wrong case", job("{cpu: 1, Replicas: 2}"), "spec.Replicas", "did you mean 'replicas'?"),
    ("a job that asks for nothing", job("{run: 1h}"), "spec", "asks for nothing"),
    ("activity without a card", job("{cpu: 1, busy: 10%}"), "spec.busy", "no meaning without cards"),
    ("an unknown slice class", gpu("{slice: half}"), "spec.gpu.slice", "unknown slice class"),
    (
        "a slice twice",
        gpu("{slice: u, memory: 1GiB}") + "---\n" + UNIT,
        "spec.gpu",
        "keep the class or the numbers",
    ),
    (
        "part of a whole card",
        gpu("{exclusive: true, compute: 50%}"),
        "spec.gpu",
        "no meaning on a whole card",
    ),
    ("bandwidth alone", gpu("{bandwidth: 20%}"), "spec.gpu", "add compute or memory"),
    ("an unknown model", gpu("{models: [A1000]}"), "spec.gpu.models[0]", "did you mean 'A10'?"),
    ("an unknown stage", job("{cpu: 1, stage: traning}"), "spec.stage", "did you mean 'training'?"),
    ("an unknown kind of NVLink wish", gpu("{nvlink: yes}"), "spec.gpu.nvlink", "one of any, required"),
    (
        "an unknown queue",
        job("{cpu: 1, queue: tram}") + "---\n" + document("Queue", "team", "{priority: 1}"),
        "spec.queue",
        "did you mean 'team'?",
    ),
    ("a name with a space", document("Job", "'a b'", "{cpu: 1}"), "metadata.name", "not a name"),
    ("a job with levels in its name", document("Job", "a/b", "{cpu: 1}"), "metadata.name", "not a name"),
    ("two jobs of one name", job("{cpu: 1}") + "---\n" + job("{cpu: 2}"), "spec", "a second job named 'j'"),
    (
        "a replica of another job's name",
        job("{cpu: 1, replicas: 2}") + "---\n" + job("{cpu: 1}", "j-1"),
        "spec",
        "a second job named 'j-1'",
    ),
    (
        "two slice classes of one name",
        UNIT + "\n---\n" + UNIT,
        "gpu_unit[0]",
        "a second slice class named 'u'",
    ),
    (
        "two policies of one name",
        document("Policy", "p", "{seed: 1}") + "---\n" + document("Policy", "p", "{seed: 2}"),
        "",
        "a second policy named 'p'",
    ),
    ("a policy of a built-in name", document("Policy", "fgd", "{seed: 1}"), "", "a policy of Aliquot's own"),
    (
        "an unknown placement",
        document("Policy", "p", "{placement: bestfit}"),
        "spec.placement",
        "did you mean 'best-fit'?",
    ),
    (
        "a placement without weight",
        document("Policy", "p", "{placement: {fgd: 0}}"),
        "spec.placement.fgd",
        "no weight",
    ),
    (
        "one placement under two names",
        document("Policy", "p", "{placement: {binpack: 1, best-fit: 1}}"),
        "spec.placement.best-fit",
        "no weight of its own",
    ),
    (
        "an unknown discipline",
        document("Policy", "p", "{discipline: fifo}"),
        "spec.discipline",
        "one of strict-fifo, best-effort",
    ),
    (
        "a rescue budget over the whole",
        document("Policy", "p", "{rescue: {share: 2}}"),
        "spec.rescue.share",
        "more than the whole",
    ),
    ("a second cluster of one name", CLUSTER, "", "a second cluster named 'site'"),
    (
        "a pool of no cluster",
        document("Pool", "p", "{site: stie, nodes: [{name: m, shape: pcie-t4-1}]}"),
        "spec",
        "did you mean 'site'?",
    ),
    ("another version", job("{cpu: 1}").replace("/v1", "/v2"), "apiVersion", "write aliquot.dev/v1"),
    ("an unknown kind", document("Jop", "j", "{cpu: 1}"), "kind", "did you mean 'Job'?"),
    ("a document without a kind", "metadata: {name: x}\nspec: {cpu: 1}\n", "", "'apiVersion' is missing"),
    (
        "a document without a spec",
        "apiVersion: aliquot.dev/v1\nkind: Job\nmetadata: {name: x}\n",
        "",
        "'spec' is missing",
    ),
    ("a key beside a bare input", UNIT + "\nscheduller: {}\n", "scheduller", "did you mean 'scheduler'?"),
]

BARE = [
    ("no memory", unit("memory_mb", "0"), "gpu_unit[0].memory_mb", "comes to nothing"),
    ("negative memory", unit("memory_mb", "-1"), "gpu_unit[0].memory_mb", "negative"),
    ("missing memory", unit("memory_mb", ""), "gpu_unit[0]", "'memory_mb' is missing"),
    ("memory in percent", unit("memory_mb", "20%"), "gpu_unit[0].memory_mb", "not an amount"),
    ("no compute", unit("compute_percent", "0"), "gpu_unit[0].compute_percent", "comes to nothing"),
    (
        "compute over the whole",
        unit("compute_percent", "101"),
        "gpu_unit[0].compute_percent",
        "more than the whole",
    ),
    (
        "compute in thousandths",
        unit("compute_percent", "250m"),
        "gpu_unit[0].compute_percent",
        "not a fraction",
    ),
    (
        "hexadecimal bandwidth",
        unit("memory_bandwidth_percent", "0x10"),
        "gpu_unit[0].memory_bandwidth_percent",
        "not a fraction",
    ),
    ("a name missing", unit("name", ""), "gpu_unit[0]", "'name' is missing"),
    ("an empty list", "gpu_unit: []", "gpu_unit", "an empty list"),
    ("an unknown placement", "scheduler: {policy: bin-pack}", "scheduler.policy", "did you mean 'binpack'?"),
    (
        "an unknown mechanism",
        "scheduler: {enable_mpss: true}",
        "scheduler.enable_mpss",
        "did you mean 'enable_mps'?",
    ),
    ("a switch in other words", "scheduler: {enable_mps: yes}", "scheduler.enable_mps", "true or false"),
    (
        "a quota without a unit",
        "scheduler: {resource_quota: {a/b: {gpu_memory: 320}}}",
        'scheduler.resource_quota["a/b"].gpu_memory',
        "no unit",
    ),
    (
        "a queue that is no name",
        "scheduler: {resource_quota: {a//b: {priority: 1}}}",
        'scheduler.resource_quota["a//b"]',
        "not a name",
    ),
    (
        "a priority in words",
        "scheduler: {resource_quota: {a: {priority: high}}}",
        "scheduler.resource_quota.a.priority",
        "not a whole number",
    ),
]

# (story, whole text, field, part of the message)
CLUSTERS = [
    ("no cards at all", nodes("{name: n, cpu: 8, memory: 8GiB}"), "", "a cluster without a single card"),
    ("no cluster at all", job("{cpu: 1}"), "", "no cluster"),
    ("no nodes", document("Cluster", "c", "{nodes: []}"), "spec.nodes", "an empty list"),
    (
        "neither shape nor sizes",
        nodes("{name: n, cards: {model: T4, count: 1}}"),
        "spec.nodes[0]",
        "'cpu' is missing",
    ),
    (
        "shape and cards",
        nodes("{name: n, shape: pcie-t4-1, cards: {model: T4, count: 1}}"),
        "spec.nodes[0]",
        "keep one",
    ),
    (
        "an unknown shape",
        nodes("{name: n, shape: dgx-a100-32}"),
        "spec.nodes[0].shape",
        "did you mean 'dgx-a100-320'?",
    ),
    (
        "an unknown model",
        nodes("{name: n, cards: {model: A100-SXM-40GB, count: 1}, cpu: 8, memory: 8GiB}"),
        "spec.nodes[0].cards.model",
        "did you mean 'A100-SXM4-40GB'?",
    ),
    (
        "a family instead of a model",
        nodes("{name: n, cards: {model: A100, count: 1}, cpu: 8, memory: 8GiB}"),
        "spec.nodes[0].cards.model",
        "any of several models",
    ),
    (
        "seventeen cards",
        nodes("{name: n, cards: {model: T4, count: 17}, cpu: 8, memory: 8GiB}"),
        "spec.nodes[0].cards.count",
        "1 to 16",
    ),
    (
        "seventeen cards of two models",
        nodes("{name: n, cards: [{model: T4, count: 9}, {model: A10, count: 8}], cpu: 8, memory: 8GiB}"),
        "spec.nodes[0].cards",
        "a machine of 17 cards",
    ),
    (
        "a driver that keeps everything",
        nodes("{name: n, cards: {model: T4, count: 1, reserved: 16GiB}, cpu: 8, memory: 8GiB}"),
        "spec.nodes[0].cards",
        "keeps the whole memory",
    ),
    (
        "two nodes of one name",
        nodes("{name: n, shape: pcie-t4-1}, {name: n, shape: pcie-t4-1}"),
        "spec.nodes[1]",
        "a second node named 'site/n'",
    ),
    (
        "a copy of another node's name",
        nodes("{name: n, count: 2, shape: pcie-t4-1}, {name: n-1, shape: pcie-t4-1}"),
        "spec.nodes[1]",
        "a second node named 'site/n-1'",
    ),
    (
        "an unknown tier",
        nodes("{name: n, shape: pcie-t4-1, tier: edgy}"),
        "spec.nodes[0].tier",
        "did you mean 'edge'?",
    ),
    (
        "a price with a sign",
        nodes("{name: n, shape: pcie-t4-1, price: $30000}"),
        "spec.nodes[0].price",
        "not an amount of money",
    ),
    (
        "an endless price",
        nodes("{name: n, shape: pcie-t4-1, price: .inf}"),
        "spec.nodes[0].price",
        "not an amount of money",
    ),
    (
        "memory beyond a machine",
        nodes("{name: n, shape: pcie-t4-1, memory: 2000TiB}"),
        "spec.nodes[0].memory",
        "out of range",
    ),
    ("nine NUMA nodes", nodes("{name: n, shape: pcie-t4-1, numa: 9}"), "spec.nodes[0].numa", "1 to 8"),
    (
        "an unknown wiring",
        nodes("{name: n, shape: pcie-t4-2, wiring: nvlink}"),
        "spec.nodes[0].wiring",
        "nvswitch",
    ),
    (
        "NVSwitch for cards without NVLink",
        nodes("{name: n, shape: pcie-t4-2, wiring: nvswitch}"),
        "spec.nodes[0].wiring",
        "how many NVLinks",
    ),
    (
        "links on PCIe",
        nodes("{name: n, shape: pcie-t4-2, wiring: {kind: pcie, links: 4}}"),
        "spec.nodes[0].wiring",
        "'links' has no meaning",
    ),
    (
        "a wiring of nothing",
        nodes("{name: n, shape: pcie-t4-2, wiring: {gen: 4}}"),
        "spec.nodes[0].wiring",
        "how the cards are joined",
    ),
    (
        "a matrix that is none",
        nodes("{name: n, shape: pcie-t4-2, wiring: {matrix: hello}}"),
        "spec.nodes[0].wiring.matrix",
        "",
    ),
    (
        "a matrix of another machine",
        nodes(f"{{name: n, shape: pcie-t4-4, wiring: {{matrix: {PAIR}}}}}"),
        "spec.nodes[0].wiring.matrix",
        "the matrix has 2 cards, the machine 4",
    ),
    (
        "a matrix file that is missing",
        nodes("{name: n, shape: pcie-t4-2, wiring: {matrixFile: none.txt}}"),
        "spec.nodes[0].wiring.matrixFile",
        "cannot be read",
    ),
    (
        "a failure of an unknown node",
        with_one_node("failures: [{node: m, at: 1h}]"),
        "spec.failures[0]",
        "unknown node 'm'",
    ),
    (
        "back before it fails",
        with_one_node("failures: [{node: n, at: 1h, back: 30m}]"),
        "spec.failures[0]",
        "back before it fails",
    ),
    (
        "speeds in unknown words",
        with_one_node("speeds: {nvlnk: 50%}"),
        "spec.speeds.nvlnk",
        "did you mean 'nvlink'?",
    ),
]


@pytest.mark.parametrize(
    ("text", "field", "why"),
    [row[1:] for row in (*QUANTITIES, *MEANINGS, *BARE)],
    ids=[row[0] for row in (*QUANTITIES, *MEANINGS, *BARE)],
)
def test_what_is_written_wrong_is_named(tmp_path: Path, text: str, field: str, why: str) -> None:
    check_error(tmp_path, f"{CLUSTER}---\n{text}", field, why, after_line=6)


@pytest.mark.parametrize(("text", "field", "why"), [r[1:] for r in CLUSTERS], ids=[r[0] for r in CLUSTERS])
def test_a_cluster_that_cannot_be_is_named(tmp_path: Path, text: str, field: str, why: str) -> None:
    check_error(tmp_path, text, field, why)


FILES = [
    ("an empty file", "a.yaml", b"", "holds no document"),
    ("a file of remarks", "a.yaml", b"# nothing\n---\n", "holds no document"),
    ("a tab for an indent", "a.yaml", b"a:\n\tb: 1\n", "not YAML"),
    ("a bracket left open", "a.yaml", b"a: [1, 2\n", "not YAML"),
    ("a control sign", "a.yaml", b"a: \x01\n", "not YAML"),
    ("a text in another encoding", "a.yaml", "name: \u00e9".encode("latin-1"), "UTF-8"),
    ("a key twice", "a.yaml", b"scheduler: {policy: fgd}\nscheduler: {policy: spread}\n", "given twice"),
    ("a list as a key", "a.yaml", b"? [a]\n: 1\n", "not a word"),
    ("a list as a document", "a.yaml", b"- 1\n", "a list stands"),
    ("an anchor that holds itself", "a.yaml", b"scheduler: &a {policy: *a}\n", "nested too deep"),
    ("broken JSON", "a.json", b'{"scheduler": }', "not JSON"),
    ("a JSON key twice", "a.json", b'{"scheduler": {}, "scheduler": {}}', "given twice"),
    ("JSON that is no number", "a.json", b'{"gpu_unit": [{"name": "u", "memory_mb": NaN}]}', "'NaN' is not"),
    ("JSON of endless depth", "a.json", b"[" * 100_000 + b"]" * 100_000, "nested too deep"),
]


@pytest.mark.parametrize(
    ("name", "content", "why"), [row[1:] for row in FILES], ids=[row[0] for row in FILES]
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, content: bytes, why: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DocumentError, match=why) as caught:
        load_scenario([tmp_path / name], load_catalog())
    assert caught.value.file == str(tmp_path / name)


def test_anchors_that_double_do_not_fill_the_memory(tmp_path: Path) -> None:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    (tmp_path / "a.yaml").write_text("\n".join(rows))
    with pytest.raises(DocumentError, match="too many values"):
        load_scenario([tmp_path / "a.yaml"], load_catalog())


def test_a_missing_file_and_an_empty_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match=r"gone\.yaml: no such file"):
        load_scenario([tmp_path / "gone.yaml"], load_catalog())
    with pytest.raises(DocumentError, match="no documents in this folder"):
        load_scenario([tmp_path], load_catalog())


def test_of_a_file_that_is_one_long_text_only_the_beginning_is_said(tmp_path: Path) -> None:
    file = tmp_path / "long.yaml"
    file.write_text("word " * 10_000)
    with pytest.raises(DocumentError) as caught:
        read_submissions([file])
    assert "characters more" in str(caught.value)
    assert len(str(caught.value)) < 300 + len(str(file))
