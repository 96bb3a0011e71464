"""Puts together what `aliquot replay` can replay: trace readers, the sites they run on, the policies by name.

Where the jobs of a trace name queues, `backfill`, `easy`, `skip-ahead` and `fifo` still know one queue for
all, as the textbook rules do; any other policy has the queues of the trace, and shares between them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from aliquot.catalog import HardwareCatalog
from aliquot.config import BUILTIN, load_scenario
from aliquot.config.builtin import ONE_QUEUE, SHARING
from aliquot.config.environment import read_environment
from aliquot.config.history import read_history_columns
from aliquot.control.experiments import LoadReplay, ReplayAsk, RunPublished
from aliquot.control.naming import not_found
from aliquot.control.replaying import HistoryAsk, KueueAsk, PhillyAsk, PublishedAsk, PublishedRun, Site
from aliquot.control.whatif import Progress
from aliquot.core.errors import NotFoundError, SpecError
from aliquot.core.inventory import CardModel, Node, models_by_name
from aliquot.core.queues import Queue
from aliquot.core.settings import Preemption, Settings
from aliquot.core.workload import Scenario
from aliquot.traces.csv_history import read_csv_history
from aliquot.traces.history import Machines, build_history
from aliquot.traces.kueue import load_kueue
from aliquot.traces.muri_runs import run_muri
from aliquot.traces.openb import OpenbTrace
from aliquot.traces.philly import load_philly
from aliquot.traces.plain_site import UNNAMED, Policies, plain_nodes
from aliquot.traces.pollux_runs import run_pollux
from aliquot.traces.sacct import read_sacct

_BEST_FIT: Final = (("best-fit", 1.0),)


def make_replays(catalog: HardwareCatalog) -> dict[str, LoadReplay]:
    """What runs through the planner, by name."""
    return {
        "openb": partial(load_openb, catalog),
        "philly": load_philly_month,
        "kueue": load_kueue_shape,
        "csv": partial(load_history, catalog),
        "sacct": partial(load_history, catalog),
    }


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


def load_philly_month(ask: PhillyAsk) -> Scenario:
    """The public month of Philly, or its beginning."""
    return load_philly(find_traces(ask.folder), ask, _policies)


def load_kueue_shape(ask: KueueAsk) -> Scenario:
    """One of Kueue's public shapes; the default takes back what was lent, without grace as there."""
    at_once = ("reclaim", Settings(policy=_BEST_FIT, preemption=Preemption(grace_ms=0)))
    rest = tuple(entry for entry in (*SHARING, *BUILTIN) if entry[0] != "reclaim")
    return load_kueue(ask, partial(_with_queues, (at_once, *dict(rest).items())))


def load_history(catalog: HardwareCatalog, ask: HistoryAsk) -> Scenario:
    """A site's own history: by a mapping of columns where there is one, else as Slurm's accounting."""
    machines = find_machines(catalog, ask.site)
    if ask.columns is None:
        table = read_sacct(ask.file, ask.queue_by)
    else:
        table = read_csv_history(ask.file, read_history_columns(ask.columns))
    return build_history(table, machines, ask.estimates, ask.seed, ask.jobs)


def find_machines(catalog: HardwareCatalog, site: Site) -> Machines:
    """The machines of documents, or so many alike; SpecError where it is neither or both."""
    counted = site.nodes is not None or site.cards is not None or site.model is not None
    if bool(site.documents) == counted or (counted and (site.nodes is None or site.cards is None)):
        hint = "either --cluster FILE, or --nodes N --cards C"
        raise SpecError("no one site to replay on", field="--cluster", hint=hint)
    if site.nodes is not None and site.cards is not None:
        model = UNNAMED if site.model is None else _find_model(catalog, site.model)
        nodes = plain_nodes("site", site.nodes, site.cards, model)
        return Machines(Scenario("site", nodes, (), ()), _model_words(catalog, nodes), _policies)
    scenario = load_scenario(site.documents, catalog)
    if scenario.offers:
        scenario = replace(scenario, notes=(*scenario.notes, "the jobs of the documents are not run"))
    queues = scenario.policies[0][1].queues
    policies = partial(_of_documents, scenario.policies)
    return Machines(scenario, _model_words(catalog, scenario.nodes), policies, queues)


def replay_muri(ask: PublishedAsk, progress: Progress | None) -> PublishedRun:
    """One Muri trace in its authors' simulator."""
    return run_muri(find_traces(ask.folder), ask, progress)


def replay_pollux(ask: PublishedAsk, progress: Progress | None) -> PublishedRun:
    """One Pollux workload in its authors' simulator."""
    return run_pollux(find_traces(ask.folder), ask, progress)


PUBLISHED: Final[Mapping[str, RunPublished]] = {"muri": replay_muri, "pollux": replay_pollux}
"""What runs in a simulator of its own, by name."""


def find_traces(folder: Path | None) -> Path:
    """The folder given, or the one the environment names, or `../shared/traces`; raises NotFoundError."""
    candidates = [folder] if folder is not None else read_environment(os.environ).trace_folders
    for candidate in candidates:
        if candidate.is_dir():
            return candidate
    looked = ", ".join(str(candidate) for candidate in candidates)
    raise NotFoundError(f"no trace folder: looked for {looked}; give one with --trace-dir")


def _policies(queues: tuple[Queue, ...]) -> Policies:
    """Every policy that needs no document, those that share with `queues`."""
    return _in_order((), BUILTIN, (), queues)


def _of_documents(documented: Policies, queues: tuple[Queue, ...]) -> Policies:
    """The documents' own policies first; with queues in the documents, all of them keep to these."""
    own = documented[: len(documented) - len(BUILTIN)]
    return _in_order(own, documented[len(own) :], queues if documented[0][1].queues else (), queues)


def _in_order(
    own: Policies, builtin: Policies, textbook: tuple[Queue, ...], queues: tuple[Queue, ...]
) -> Policies:
    """`own`, then who goes next, then sharing, then the rest. The rules of textbooks know `textbook` only."""
    first, second = dict(ONE_QUEUE), dict(SHARING)
    return (
        *_with_queues(own, queues),
        *_with_queues([entry for entry in builtin if entry[0] in first], textbook),
        *_with_queues([entry for entry in builtin if entry[0] in second], queues),
        *_with_queues([entry for entry in builtin if entry[0] not in first | second], queues),
    )


def _with_queues(policies: Sequence[tuple[str, Settings]], queues: tuple[Queue, ...]) -> Policies:
    return tuple((name, replace(policy, queues=queues)) for name, policy in policies)


def _find_model(catalog: HardwareCatalog, word: str) -> CardModel:
    found = models_by_name(catalog.models()).get(word.casefold())
    if found is None:
        raise not_found("GPU model", word, catalog.models(), where="--model")
    return found


def _model_words(catalog: HardwareCatalog, nodes: Sequence[Node]) -> dict[str, tuple[str, ...]]:
    """Every word that may stand for card models, casefolded: families, then names and aliases."""
    words = {family.casefold(): names for family, names in catalog.families().items()}
    here = {card.model.name: card.model for node in nodes for card in node.cards}
    return words | {
        word: (model.name,) for word, model in models_by_name({**catalog.models(), **here}).items()
    }
