"""The reference page names every field that is read, in its section, and no other."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

from aliquot.config import (
    arrays,
    bare,
    clusters,
    documents,
    elastic,
    groups,
    jobs,
    members,
    policies,
    queues,
    requests,
    together,
    waits,
    windows,
    wirings,
)
from aliquot.config.fields import Field, Table
from aliquot.config.objectives import PRESETS

SECTIONS: Final[dict[str, Table]] = {
    "Envelope": documents.ENVELOPE,
    "metadata": documents.METADATA,
    "Cluster": documents.CLUSTER,
    "nodes": clusters.GROUP,
    "cards": clusters.CARDS,
    "wiring": wirings.TABLE,
    "speeds": documents.SPEEDS,
    "failures": documents.FAILURE,
    "Pool": documents.POOL,
    "SliceClass": documents.SLICE,
    "Queue": queues.QUEUE,
    "quota": queues.QUOTA,
    "budget": queues.BUDGET,
    "limits": queues.LIMITS,
    "Job": jobs.JOB,
    "Reservation": windows.RESERVATION,
    "allow": windows.ALLOW,
    "gpu": requests.GPU,
    "members": members.MEMBER,
    "groups": groups.GROUP,
    "topology": groups.WISH,
    "array": arrays.ARRAY,
    "elastic": elastic.ELASTIC,
    "together": together.TOGETHER,
    "Policy": policies.POLICY,
    "objectives": policies.OBJECTIVES,
    "order": policies.ORDER,
    "backfill": policies.BACKFILL,
    "overrun": policies.OVERRUN,
    "estimates": policies.ESTIMATES,
    "preemption": policies.PREEMPTION,
    "elasticity": policies.ELASTICITY,
    "defrag": policies.DEFRAG,
    "idling": policies.IDLING,
    "colocation": policies.COLOCATION,
    "spot": policies.SPOT,
    "rates": policies.RATE,
    "mix": policies.MIX,
    "rescue": policies.RESCUE,
    "gpu_unit": bare.UNIT,
    "scheduler": bare.SETTINGS,
    "resource_quota": bare.QUOTA,
}
# Parts of other tables, or said in words.
ELSEWHERE: Final = ("STAGES", "ASKED", "GANG", "SITED", "WAITS", "LISTED", "QUEUES")
MODULES: Final = (
    bare,
    clusters,
    documents,
    elastic,
    groups,
    jobs,
    members,
    policies,
    queues,
    requests,
    together,
    waits,
    windows,
    wirings,
)


@pytest.fixture(scope="module")
def page(repository: Path) -> dict[str, str]:
    """The sections of the page by heading."""
    text = (repository / "docs" / "reference" / "documents.md").read_text(encoding="utf-8")
    parts = re.split(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("section", SECTIONS)
def test_every_field_stands_in_its_section_and_no_other(page: dict[str, str], section: str) -> None:
    named = re.findall(r"^\| `([\w-]+)` \|", page[section], flags=re.MULTILINE)
    assert sorted(named) == sorted(SECTIONS[section])


def test_no_table_of_fields_is_left_out() -> None:
    told = [id(table) for table in SECTIONS.values()]
    missing = [
        f"{module.__name__}.{name}"
        for module in MODULES
        for name, table in tables_of(module)
        if id(table) not in told and name not in ELSEWHERE
    ]
    assert missing == []


def tables_of(module: ModuleType) -> list[tuple[str, Table]]:
    return [
        (name, value)
        for name, value in vars(module).items()
        if isinstance(value, Mapping) and value and all(isinstance(field, Field) for field in value.values())
    ]


def test_every_kind_and_preset_is_named(page: dict[str, str]) -> None:
    assert all(kind in page["Envelope"] for kind in documents.KINDS)
    assert all(f"`{preset.name}`" in page["Policy"] for preset in PRESETS)


def test_files_linked_from_the_page_exist(repository: Path, page: dict[str, str]) -> None:
    folder = repository / "docs" / "reference"
    links = [link for text in page.values() for link in re.findall(r"\]\(([^)#]+)\)", text)]
    assert links
    assert [link for link in links if not (folder / link).exists()] == []
