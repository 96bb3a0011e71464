"""Builders of documents in text: a small cluster that is right, and parts to put beside it."""

from __future__ import annotations

from pathlib import Path

from aliquot.catalog import load_catalog
from aliquot.config import load_scenario
from aliquot.core.jobs import Request
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
