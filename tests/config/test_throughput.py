"""Throughput that no cards of the site could reach is refused; what might be is taken."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.documents import CLUSTER, check_error, job, load, nodes

BOTH = nodes(
    "{name: a, cards: {model: A100-SXM4-40GB, count: 4}, cpu: 64, memory: 512GiB},"
    " {name: t, cards: {model: T4, count: 4}, cpu: 64, memory: 512GiB}"
)


@pytest.mark.parametrize(
    ("spec", "most"),
    [
        pytest.param("throughput: 1000, gpu: {count: 2}", 624, id="two cards of 312"),
        pytest.param("throughput: 157, gpu: {count: 1, compute: 50%}", 156, id="half a card"),
        pytest.param("throughput: 1249, members: 2, gpu: {count: 2}", 1248, id="a gang"),
        pytest.param("throughput: 313, replicas: 3, gpu: {count: 1}", 312, id="each of several replicas"),
        pytest.param(
            "throughput: 313, gpu: {count: 2}, elastic: {widths: [1, 2], serial: 10%}",
            312,
            id="an elastic job at its first width",
        ),
    ],
)
def test_more_than_its_cards_can_do_is_refused_and_the_most_named(
    tmp_path: Path, spec: str, most: int
) -> None:
    for site in (CLUSTER, BOTH):
        check_error(tmp_path, f"{site}---\n{job(f'{{{spec}}}')}", "spec.throughput", f"at most {most:g},")


def test_the_cards_it_may_have_count_and_no_others(tmp_path: Path) -> None:
    slow = job("{throughput: 66, gpu: {count: 1, models: [T4]}}")
    check_error(tmp_path, f"{BOTH}---\n{slow}", "spec.throughput", "at most 65,")


@pytest.mark.parametrize(
    ("spec", "gflops"),
    [
        pytest.param("throughput: 624, gpu: {count: 2}", 624_000, id="exactly what they can do"),
        pytest.param("throughput: 0.5, gpu: {count: 1}", 500, id="less than one"),
        pytest.param(
            "throughput: 9000, gpu: {count: 1, models: [H100-SXM5-80GB]}", 9_000_000, id="no such cards here"
        ),
    ],
)
def test_what_they_can_do_is_taken_as_it_is_said(tmp_path: Path, spec: str, gflops: int) -> None:
    assert load(tmp_path, CLUSTER, job(f"{{{spec}}}")).offers[0].gflops == gflops


def test_a_model_trained_in_fp8_does_more_than_the_peak_in_bf16(tmp_path: Path) -> None:
    site = nodes("{name: h, cards: {model: H100-SXM5-80GB, count: 1}, cpu: 64, memory: 512GiB}")
    found = load(tmp_path, site, job("{throughput: 1500, gpu: {count: 1}}"))
    assert found.offers[0].gflops == 1_500_000
