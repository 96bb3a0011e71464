"""The only place that knows every part: it puts them together and hands them to the interfaces."""

from __future__ import annotations

import gc
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from aliquot.catalog import HardwareCatalog, load_catalog
from aliquot.config import BUILTIN, load_scenario
from aliquot.config.environment import read_environment
from aliquot.config.kernel_cache import keep_kernels
from aliquot.control.experiments import Experiments, ReplayAsk
from aliquot.core.errors import NotFoundError
from aliquot.core.forecast import Forecast
from aliquot.core.workload import Scenario
from aliquot.engines.sim.cluster import SimCluster
from aliquot.engines.sim.journal import MemoryJournal
from aliquot.ports import Clock, Cluster, Journal
from aliquot.traces.openb import OpenbTrace


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

    return Experiments(make_sim, load, {"openb": partial(load_openb, catalog)})


def make_sim(scenario: Scenario) -> tuple[Cluster, Clock, Journal]:
    """The `sim` engine for `scenario`."""
    cluster = SimCluster(Forecast(scenario))
    return cluster, cluster, MemoryJournal(keep=False)


def load_openb(catalog: HardwareCatalog, ask: ReplayAsk) -> Scenario:
    """One 'openb' workload in one order, with every built-in policy."""
    trace = OpenbTrace(
        find_traces(ask.folder),
        ask.workload,
        ask.seed,
        catalog.models(),
        offered=ask.offered,
        movable=ask.movable,
    )
    return Scenario(
        name=f"openb {ask.workload}",
        nodes=trace.nodes(),
        offers=trace.offers(),
        policies=BUILTIN,
        notes=tuple(trace.notes),
        known_demand=trace.demand(),
    )


def find_traces(folder: Path | None) -> Path:
    """The folder given, or the one the environment names, or `../shared/traces`; raises NotFoundError."""
    candidates = [folder] if folder is not None else read_environment(os.environ).trace_folders
    for candidate in candidates:
        if candidate.is_dir():
            return candidate
    looked = ", ".join(str(candidate) for candidate in candidates)
    raise NotFoundError(f"no trace folder: looked for {looked}; give one with --trace-dir")
