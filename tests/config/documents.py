"""Builders of documents in text: a small cluster that is right, and parts to put beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from aliquot.catalog import load_catalog
from aliquot.config import load_scenario
from aliquot.core.errors import DocumentError
from aliquot.core.jobs import Job, Request
from aliquot.core.settings import Settings
from aliquot.core.workload import Scenario

CLUSTER = """\
apiVersion: aliquot.dev/v1
kind: Cluster
metadata: {name: site}
spec:
  nodes:
    - {name: n, count: 2, cards: {model: A100-SXM4-40GB, count: 4}, cpu: 64, memory: 512GiB}
"""


def document(kind: str, name: str, spec: str) -> str:
    """One document; `spec` is its spec as a flow map or an indented block."""
    return f"apiVersion: aliquot.dev/v1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {spec}\n"


def job(spec: str, name: str = "j") -> str:
    """A job document."""
    return document("Job", name, spec)


def gpu(fields: str) -> str:
    """A job document that only asks for cards."""
    return job(f"{{gpu: {fields}}}")


def nodes(group: str) -> str:
    """A cluster document of one node group in a flow map."""
    return document("Cluster", "site", f"{{nodes: [{group}]}}")


def load(folder: Path, *texts: str, name: str = "a.yaml") -> Scenario:
    """The scenario of `texts` as the documents of one file."""
    file = folder / name
    file.write_text("---\n".join(texts), encoding="utf-8")
    return load_scenario([file], load_catalog())


def request_of(folder: Path, fields: str, *more: str) -> Request:
    """What a job with `gpu: fields` asks for."""
    return load(folder, CLUSTER, *more, gpu(fields)).offers[0].job.members[0]


def check_error(folder: Path, text: str, field: str, why: str, after_line: int = 0) -> None:
    """That `text` is refused at `field`, with `why` in the message, advice, and a line after `after_line`."""
    with pytest.raises(DocumentError) as caught:
        load(folder, text)
    error = caught.value
    assert why in str(error)
    assert error.file == str(folder / "a.yaml")
    assert error.field.split(": ")[0] == field
    assert error.hint
    if error.line is not None:
        assert after_line < error.line <= text.count("\n") + 1
        assert str(error).startswith(f"{error.file}:{error.line}: ")
    else:
        assert field == ""


def jobs_of(folder: Path, *texts: str) -> dict[str, Job]:
    """The jobs of `texts` beside the small cluster, by id."""
    return {offer.job.id: offer.job for offer in load(folder, CLUSTER, *texts).offers}


def policy_of(folder: Path, spec: str, *texts: str) -> Settings:
    """The settings of a policy document with `spec`."""
    settings = load(folder, CLUSTER, *texts, document("Policy", "p", spec)).settings("p")
    assert settings is not None
    return settings
