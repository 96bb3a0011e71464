"""The public 'openb' GPU-sharing workloads as nodes and offers.

Source of the format: Alibaba cluster-trace-gpu-v2023 (1,213 GPU nodes, 8,152 tasks and sampled variants) and
the placement experiment of Weng et al., USENIX ATC'23: pods are offered one after another until a given share
of all cards has been asked for, what does not fit is turned away, nothing leaves.

A folder holds `openb/` (node list and pod lists, CSV) and, for the published order, `openb_sequences/`
(`pods_SEED`: indices into the pod list sorted by name; `nodes_SEED`: a permutation of the nodes). Without a
published order for a seed, one is drawn from the seed and the notes say so.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from aliquot.control.naming import not_found
from aliquot.core.columns import MAX_CARDS
from aliquot.core.errors import DocumentError, NotFoundError
from aliquot.core.ids import CardId, JobId, NodeId, SiteId
from aliquot.core.inventory import Card, CardModel, Node, Profile, models_by_name
from aliquot.core.jobs import Job, Request
from aliquot.core.slices import Ask, Cut
from aliquot.core.units import FULL
from aliquot.core.workload import Offer
from aliquot.traces.tables import Row, read_table

SITE = SiteId("openb")
POD_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
PREFIX = "openb_pod_list_"
INSTANT_MS = 1000

Order = tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]


def list_workloads(folder: Path) -> list[str]:
    """Names of the workloads in `folder`; raises NotFoundError where it holds none."""
    found = sorted(path.stem.removeprefix(PREFIX) for path in (folder / "openb").glob(f"{PREFIX}*.csv"))
    if not found:
        raise NotFoundError(f"no openb traces in {folder}: expected {folder / 'openb' / (PREFIX + '*.csv')}")
    return found


class OpenbTrace:
    """One workload offered in one order. `group` pods arrive in one instant and are planned in order."""

    def __init__(
        self,
        folder: Path,
        workload: str,
        seed: int,
        models: Mapping[str, CardModel],
        *,
        offered: float = 1.3,
        group: int = 32,
        movable: bool = False,
    ) -> None:
        known = list_workloads(folder)
        if workload not in known:
            raise not_found("workload", workload, known, where=str(folder))
        self.notes: list[str] = []
        self._models = models_by_name(models)
        self._nodes_file = folder / "openb" / "openb_node_list_gpu_node.csv"
        self._pods_file = folder / "openb" / f"{PREFIX}{workload}.csv"
        self._machines = self._read_nodes()
        rows = read_rows(self._pods_file, POD_COLUMNS)
        self._requests = [self._request(row, line) for line, row in enumerate(rows, start=2)]
        by_name = sorted(range(len(rows)), key=lambda at: rows[at]["name"])
        self._sorted = [self._requests[at] for at in by_name]
        self._group, self._movable = group, movable
        self._cards = sum(len(node.cards) for node in self._machines)
        self._pod_order, self._node_order = self._orders(folder, workload, seed, offered)

    @property
    def capacity_milli(self) -> int:
        """All cards, in milli-cards."""
        return self._cards * FULL

    def nodes(self) -> tuple[Node, ...]:
        """The machines in the published (or drawn) order."""
        return tuple(self._machines[at] for at in self._node_order)

    def offers(self) -> tuple[Offer, ...]:
        """Pods in order; each is withdrawn at once if it does not fit, and never leaves if it does."""
        return tuple(
            Offer(
                job=Job(
                    id=JobId(f"pod-{seq:05d}"),
                    members=(self._sorted[at],),
                    submitted_ms=seq // self._group * INSTANT_MS,
                    seq=seq,
                    movable=self._movable and self._sorted[at].cards == 1,
                ),
                patience_ms=0,
            )
            for seq, at in enumerate(self._pod_order)
        )

    def demand(self) -> tuple[tuple[Request, int], ...]:
        """The original list's requests with their counts, in order of first appearance."""
        counts: dict[Request, int] = {}
        for request in self._requests:
            counts[request] = counts.get(request, 0) + 1
        return tuple(counts.items())

    def _read_nodes(self) -> list[Node]:
        """The machines in the order of the file."""
        nodes: dict[str, Node] = {}
        for line, row in enumerate(read_rows(self._nodes_file, NODE_COLUMNS), start=2):
            if row["sn"] in nodes:
                raise _broken(
                    self._nodes_file, line, "sn", row["sn"], "a name of its own: another row has it"
                )
            nodes[row["sn"]] = self._node(row, line)
        return list(nodes.values())

    def _node(self, row: Row, line: int) -> Node:
        cards = _whole(row, "gpu", self._nodes_file, line, most=MAX_CARDS)
        model = self._models.get(row["model"].casefold())
        if model is None:
            raise _broken(self._nodes_file, line, "model", row["model"], "a GPU model of the catalogue")
        name = row["sn"]
        return Node(
            NodeId(SITE, name),
            _whole(row, "cpu_milli", self._nodes_file, line),
            _whole(row, "memory_mib", self._nodes_file, line),
            tuple(Card(CardId(f"GPU-{name}-{at}"), model) for at in range(cards)),
        )

    def _request(self, row: Row, line: int) -> Request:
        cpu, host, cards = (_whole(row, key, self._pods_file, line) for key in POD_COLUMNS[1:4])
        milli = _whole(row, "gpu_milli", self._pods_file, line, least=1, most=FULL) if cards else 0
        return _intern(cpu, host, cards, milli, row.get("gpu_spec") or "")

    def _orders(
        self, folder: Path, workload: str, seed: int, offered: float
    ) -> tuple[list[int], npt.NDArray[np.intp]]:
        order = _published_order(folder, workload, seed, len(self._sorted), len(self._machines))
        if order is None:
            self.notes.append(f"seed {seed} of {workload} has no published order: drawn from the seed")
            rng = np.random.default_rng(seed)
            nodes = rng.permutation(len(self._machines))
            rounds = 1 + int(np.ceil(offered * 2))
            pods = np.concatenate([rng.permutation(len(self._sorted)) for _ in range(rounds)])
        else:
            pods, nodes = order
        return self._until(pods, offered), np.argsort(nodes, kind="stable")

    def _until(self, pods: npt.NDArray[np.intp], offered: float) -> list[int]:
        """The pods before `offered` of all cards would be exceeded."""
        limit, asked, taken = round(offered * self.capacity_milli), 0, []
        for at in pods.tolist():
            request = self._sorted[at]
            asked += asked_milli(request)
            if asked > limit:
                break
            taken.append(at)
        return taken


def asked_milli(request: Request) -> int:
    """Milli-cards a request asks for in all."""
    return request.cards * (FULL if request.whole else request.ask.compute_milli or 0)


def read_rows(path: Path, columns: tuple[str, ...]) -> list[Row]:
    """Rows of a CSV file that has all of `columns` and at least one row."""
    rows = read_table(path, columns)
    if not rows:
        raise DocumentError("has no rows", file=str(path), hint="a header, then one row each")
    return rows


@lru_cache(maxsize=65536)
def _intern(cpu: int, host: int, cards: int, milli: int, spec: str) -> Request:
    """One value per distinct request, so that equal pods share it."""
    ask = Ask(Cut.WHOLE) if cards != 1 or milli == FULL else Ask(Cut.SHARED, compute_milli=milli)
    return Request(cpu, host, cards, ask, Profile(models=tuple(spec.split("|")) if spec else ()))


def _published_order(folder: Path, workload: str, seed: int, pods: int, nodes: int) -> Order | None:
    """Indices of pods and of nodes, or None where nothing is published for the seed."""
    for path in (
        folder / "openb_sequences" / f"{workload}.npz",
        folder / "openb_sequences" / "tuning" / f"{workload}.npz",
    ):
        if path.exists():
            order = _read_order(path, seed)
            if order is not None:
                return _checked(order, path, seed, pods, nodes)
    return None


def _read_order(path: Path, seed: int) -> Order | None:
    try:
        with np.load(path) as arrays:
            if f"pods_{seed}" not in arrays:
                return None
            return arrays[f"pods_{seed}"].astype(np.intp), arrays[f"nodes_{seed}"].astype(np.intp)
    except (OSError, ValueError, KeyError, TypeError, BadZipFile) as problem:
        raise DocumentError(
            f"can't be read: {problem}", file=str(path), hint=f"arrays pods_{seed} and nodes_{seed}"
        ) from None


def _checked(order: Order, path: Path, seed: int, pods: int, nodes: int) -> Order:
    """The order, if it is one of this list: an index beyond it would offer other pods than were published."""
    listed, permuted = order
    if listed.ndim != 1 or not listed.size or listed.min() < 0 or listed.max() >= pods:
        hint = f"indices from 0 to {pods - 1}"
        raise DocumentError(
            "is an order of another pod list", file=str(path), field=f"pods_{seed}", hint=hint
        )
    if sorted(permuted.ravel().tolist()) != list(range(nodes)):
        hint = f"each of 0 to {nodes - 1} once"
        raise DocumentError(
            "is an order of another node list", file=str(path), field=f"nodes_{seed}", hint=hint
        )
    return order


def _whole(row: Row, column: str, path: Path, line: int, *, least: int = 0, most: int = 2**31 - 1) -> int:
    text = row[column]
    if not (text.isascii() and text.isdecimal() and least <= int(text) <= most):
        raise _broken(path, line, column, text, f"a whole number from {least} to {most}")
    return int(text)


def _broken(path: Path, line: int, column: str, value: str, right: str) -> DocumentError:
    return DocumentError(f"{value!r} is not {right}", file=str(path), line=line, field=column, value=value)
