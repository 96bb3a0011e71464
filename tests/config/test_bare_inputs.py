"""The two inputs that are taken as they stand; the effect of each of their keys is fixed in golden files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from aliquot.catalog import load_catalog
from aliquot.config import load_scenario
from aliquot.control.encode import encode_json
from aliquot.core.workload import Scenario
from tests.config.documents import CLUSTER, load

SCHEDULER_KEYS = (
    "policy: binpack",
    "policy: spread",
    "policy: fgd",
    "enable_mps: true",
    "enable_mps: false",
    "enable_time_slicing: false",
    "enable_time_slicing: true",
    "resource_quota: {ai-lab/training: {gpu_memory: 320GB}}",
    "resource_quota: {ai-lab/training: {gpu_memory: 0}}",
    "resource_quota: {ai-lab/training: {priority: 100}}",
    "topology_aware: true",
    "topology_aware: false",
)


@pytest.fixture(scope="module")
def golden(repository: Path) -> Path:
    """The folder of golden files of this package."""
    return repository / "tests" / "golden" / "config"


def bare(repository: Path, folder: Path, name: str) -> Scenario:
    (folder / "cluster.yaml").write_text(CLUSTER)
    return load_scenario([folder / "cluster.yaml", repository / "examples" / "bare" / name], load_catalog())


def told(value: Any) -> Any:
    """`value` with only those fields of its structs that differ from their defaults."""
    if isinstance(value, tuple):
        return tuple(told(element) for element in value)
    if not isinstance(value, msgspec.Struct):
        return value
    fields = ((field, getattr(value, field.name)) for field in msgspec.structs.fields(value))
    return {field.name: told(found) for field, found in fields if found != field.default}


def effect_of(scenario: Scenario) -> dict[str, object]:
    """What `scheduler` sets apart from the defaults, and what is said beside it."""
    return {"settings": told(scenario.settings("scheduler")), "notes": scenario.notes}


def test_gpu_unit_as_it_stands_is_two_slice_classes(repository: Path, golden: Path, tmp_path: Path) -> None:
    settings = bare(repository, tmp_path, "gpu-unit.yaml").settings("future-packing")
    assert settings is not None
    assert encode_json(settings.slices) == (golden / "gpu-unit.json").read_bytes()


def test_scheduler_as_it_stands_is_a_policy_and_two_queues(
    repository: Path, golden: Path, tmp_path: Path
) -> None:
    scenario = bare(repository, tmp_path, "scheduler.yaml")
    assert encode_json(effect_of(scenario)) == (golden / "scheduler.json").read_bytes()


def test_each_key_of_scheduler_has_the_effect_that_is_written_down(golden: Path, tmp_path: Path) -> None:
    effects = {line: effect_of(load(tmp_path, CLUSTER, f"scheduler: {{{line}}}")) for line in SCHEDULER_KEYS}
    assert encode_json(effects) == (golden / "scheduler-keys.json").read_bytes()


def test_both_may_stand_in_one_file_and_jobs_refer_to_them(tmp_path: Path) -> None:
    both = (
        "gpu_unit: [{name: q, memory_mb: 10240, compute_percent: 25, memory_bandwidth_percent: 12.5}]\n"
        "scheduler: {policy: binpack, resource_quota: {team: {priority: 7}}}\n"
    )
    task = (
        "apiVersion: aliquot.dev/v1\nkind: Job\nmetadata: {name: j}\nspec: {queue: team, gpu: {slice: q}}\n"
    )
    scenario = load(tmp_path, task, both, CLUSTER)
    job = scenario.offers[0].job
    assert job.priority == 7
    assert job.members[0].ask.bandwidth_milli == 125


def test_with_every_mechanism_off_no_card_is_shared(tmp_path: Path) -> None:
    settings = load(tmp_path, CLUSTER, "scheduler: {enable_mps: false, enable_cgpu: false}\n").settings(
        "scheduler"
    )
    assert settings is not None
    assert not settings.shared
    assert settings.mechanisms == (("mps", False), ("cgpu", False))
