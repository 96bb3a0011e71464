"""The only place that knows every part: it puts them together and hands them to the interfaces."""

from __future__ import annotations

import gc
import os
from collections.abc import Sequence
from pathlib import Path

from aliquot.bootstrap_replays import PUBLISHED, make_replays
from aliquot.catalog import load_catalog
from aliquot.config import load_scenario
from aliquot.config.environment import read_environment
from aliquot.config.kernel_cache import keep_kernels
from aliquot.control.experiments import Experiments
from aliquot.core.forecast import Forecast
from aliquot.core.workload import Scenario
from aliquot.engines.sim.cluster import SimCluster
from aliquot.engines.sim.journal import MemoryJournal
from aliquot.ports import Clock, Cluster, Journal


def prepare() -> None:
    """What every process does before it plans: find compiled kernels, collect garbage less often."""
    keep_kernels(read_environment(os.environ).cache)
    # records are many, small and without cycles: collecting after every 700 of them finds nothing
    gc.set_threshold(50_000, 20, 100)


def make_experiments() -> Experiments:
    """Experiments in virtual time, on the shipped catalogue."""
    prepare()
    catalog = load_catalog()

    def load(paths: Sequence[Path]) -> Scenario:
        return load_scenario(paths, catalog)

    return Experiments(make_sim, load, make_replays(catalog), PUBLISHED)


def make_sim(scenario: Scenario) -> tuple[Cluster, Clock, Journal]:
    """The `sim` engine for `scenario`."""
    cluster = SimCluster(Forecast(scenario))
    return cluster, cluster, MemoryJournal(keep=False)
