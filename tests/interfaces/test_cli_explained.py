"""What `explain` says of simulated jobs that are over before they start, or wait for what never comes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command import aliquot

SITE = """\
apiVersion: aliquot.dev/v1
kind: Cluster
metadata: {name: small}
spec:
  nodes:
    - {name: box, cards: {model: T4, count: 2}, cpu: 16, memory: 64GiB}
---
apiVersion: aliquot.dev/v1
kind: Policy
metadata: {name: plain}
spec: {placement: best-fit, engine: python, preemption: false}
"""


def job(name: str, spec: str) -> str:
    return f"---\napiVersion: aliquot.dev/v1\nkind: Job\nmetadata: {{name: {name}}}\nspec: {{{spec}}}\n"


def explained(folder: Path, text: str, *words: str) -> list[str]:
    file = folder / "site.yaml"
    file.write_text(text)
    done = aliquot("explain", file, *words)
    assert done.code == 0, done.err
    return done.out.splitlines()


CHAIN = (
    SITE
    + job("fails", "limit: 5m, run: 10m, gpu: {count: 1}")
    + job("leaves", "patience: 5m, run: 1h, gpu: {count: 3}")
    + job("next", "afterOk: [fails], run: 10m, gpu: {count: 1}")
    + job("last", "afterOk: [next], run: 10m, gpu: {count: 1}")
    + job("behind", "afterOk: [leaves], run: 10m, gpu: {count: 1}")
)


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("next", "fails, which had to succeed, failed"),
        ("last", "next, which had to succeed, was cancelled"),
        ("behind", "leaves, which had to succeed, was cancelled"),
    ],
    ids=["its dependency failed", "down a chain", "its dependency was given up"],
)
def test_a_job_that_nobody_gave_up_is_told_whose_end_was_the_cause(
    tmp_path: Path, name: str, cause: str
) -> None:
    told = f"{name} was withdrawn before 1 h without ever being placed, since job {cause} (dependency)."
    assert explained(tmp_path, CHAIN, name, "--at", "1h") == [told]


def test_its_owner_is_named_where_he_did_it(tmp_path: Path) -> None:
    told = "leaves was given up by its owner before 1 h without ever being placed."
    assert explained(tmp_path, CHAIN, "leaves", "--at", "1h") == [told]


def queue(quota: str) -> str:
    return (
        "---\napiVersion: aliquot.dev/v1\nkind: Queues\nmetadata: {name: all}\n"
        f"spec: {{queues: [{{name: lab, quota: {{cards: {{{quota}}}}}}}]}}\n"
    )


@pytest.mark.parametrize(
    ("quota", "gate", "told"),
    [
        (
            "nominal: 0, maximum: 1",
            "its queue may not take more now",
            "It asks for 1 of cards; maximum 1 of queue lab is used up: 1 in use.",
        ),
        (
            "nominal: 0, borrowing: 1",
            "it goes beyond what is left of its queue's own, and not so much can be borrowed now",
            "It asks for 1 of cards; queue lab has 0 left, with what it may borrow.",
        ),
    ],
    ids=["a hard maximum", "what it may borrow"],
)
def test_the_limit_that_holds_a_job_is_named(tmp_path: Path, quota: str, gate: str, told: str) -> None:
    site = SITE + queue(quota) + job("asks", "queue: lab, replicas: 2, run: 1h, gpu: {count: 1}")
    lines = explained(tmp_path, site, "asks-1", "--at", "10m")
    assert lines[0] == f"asks-1 waits at 10 min under policy plain: {gate}."
    assert lines[1].strip() == told


@pytest.mark.parametrize("quota", ["maximum: 0", "nominal: 0, borrowing: 0"])
def test_of_a_job_that_its_quota_never_lets_start_no_start_is_expected(tmp_path: Path, quota: str) -> None:
    site = SITE + queue(quota) + job("asks", "queue: lab, run: 1h, gpu: {count: 1}")
    lines = explained(tmp_path, site, "asks", "--at", "10m")
    assert lines[1].endswith("whatever else runs or ends: under this quota it will not start.")
    assert not any("When it starts" in line for line in lines)


AGAIN = """\
apiVersion: aliquot.dev/v1
kind: Cluster
metadata: {name: small}
spec:
  nodes:
    - {name: box, cards: {model: T4, count: 8}, cpu: 64, memory: 64GiB}
---
apiVersion: aliquot.dev/v1
kind: Policy
metadata: {name: takes-back}
spec: {preemption: {reclaim: true}}
---
apiVersion: aliquot.dev/v1
kind: Queues
metadata: {name: all}
spec:
  queues:
    - {name: x, quota: {cards: 4}}
    - {name: x/p, quota: {cards: 2}}
    - {name: x/q, quota: {cards: 2}}
    - {name: y, quota: {cards: 4}}
""" + "".join(
    (
        job("y", "queue: y, replicas: 8, gpu: {count: 1}"),
        job("p", "queue: x/p, submit: 20m, replicas: 4, gpu: {count: 1}"),
        job("q", "queue: x/q, submit: 40m, replicas: 2, gpu: {count: 1}"),
        job("end", "queue: y, submit: 3h, run: 1m, gpu: {count: 1}"),
    )
)


def test_who_was_stopped_for_an_earlier_start_is_not_told_of_one_that_waits_again(tmp_path: Path) -> None:
    """`p-3` borrows what `y` is stopped for, and is stopped for `q` in turn."""
    words = ("p-3", "-p", "takes-back", "--at")
    before = explained(tmp_path, AGAIN, *words, "30m")
    assert any("stopped for it" in line for line in before)
    after = explained(tmp_path, AGAIN, *words, "2h")
    assert after[0].startswith("p-3 waits at 2 h")
    assert not [line for line in after if "stopped for it" in line]
