"""How jobs run and share in the Muri authors' simulator: overheads, yarn placement, the period of a group.

Rules of a replay, not decisions. As in the artifact of SIGCOMM'22: 8 nodes of 8 cards; all are placed anew
at every event (an arrival or an end); **every running job loses its start overhead at every event**, whether
it moved or not, and in a group the sum over its members; memory is not modelled. What a `Chooser` decides is
carried out as decided; it may be told more than a live site knows, such as the time a job still needs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from aliquot.core.columns import I64
from aliquot.core.errors import SpecError
from aliquot.core.placement.kernels.jit import compiled
from aliquot.core.room.grouping import SEATS, Sharing
from aliquot.traces.muri import WIDTHS, MuriJob

F64 = npt.NDArray[np.float64]
NODES = 8
CARDS_PER_NODE = 8
CARDS = NODES * CARDS_PER_NODE
SOLO_FACTOR = 1.015
GROUP_FACTORS = {2: 1.33, 3: 1.50, 4: 1.37}
MOST_KINDS = 16

# Seconds that a start of the model costs on 1, 2, 4, 8, 16, 32 cards.
OVERHEAD_S: dict[str, tuple[int, ...]] = {
    "vgg16": (7, 7, 8, 9, 9, 10),
    "vgg19": (7, 7, 8, 9, 10, 10),
    "resnet18": (4, 5, 5, 7, 7, 7),
    "shufflenet_v2_x1_0": (4, 4, 5, 5, 7, 8),
    "a2c": (38, 39, 39, 46, 46, 46),
    "dqn": (5, 5, 6, 6, 8, 8),
}
OTHER_OVERHEAD_S = (10,) * len(WIDTHS)

Stages = tuple[float, float, float]


class Columns(NamedTuple):
    """The jobs of a trace, one row each, in order of submission."""

    submitted_s: F64
    cards: I64
    width: I64  # index into WIDTHS
    kind: I64  # index into the kinds of its width
    iterations: F64
    alone_s: F64  # one iteration alone
    overhead_s: F64


class Turn(NamedTuple):
    """What a chooser decides at an event: the order of its jobs, who runs, how fast, at what loss."""

    order: I64
    jobs: I64
    period_s: F64  # [jobs] one iteration
    overhead_s: F64  # [jobs]


class Chooser(Protocol):
    """Decides at every event."""

    def choose(self, active: I64, left: F64, had_s: F64) -> Turn:
        """`active` jobs: those of the last `Turn.order` still there, then new ones. By job: iterations left,
        and seconds run so far.
        """
        ...


def read_columns(jobs: Sequence[MuriJob]) -> tuple[Columns, Sharing]:
    """Columns of the jobs, and what sharing does to each kind of job of each width."""
    kinds: list[dict[tuple[str, float, Stages], int]] = [{} for _ in WIDTHS]
    width = [WIDTHS.index(job.cards) for job in jobs]
    kind = []
    for job, x in zip(jobs, width, strict=True):
        profile = (job.model, job.iteration_s, job.stages_s)
        kind.append(kinds[x].setdefault(profile, len(kinds[x])))
    columns = Columns(
        np.array([job.submitted_s for job in jobs]),
        np.array([job.cards for job in jobs], np.int64),
        np.array(width, np.int64),
        np.array(kind, np.int64),
        np.array([float(job.iterations) for job in jobs]),
        np.array([job.iteration_s * SOLO_FACTOR for job in jobs]),
        np.array([_overhead(job) for job in jobs]),
    )
    return columns, _sharing_table([list(found) for found in kinds])


def group_period(stages: Sequence[Stages]) -> float:
    """Seconds of one turn of 2 to 4 jobs that share, the factor for their number included.

    The least over their orders of a cycle of four slots; for two jobs also of two long slots.
    """
    least = min(_cycle(order) for order in itertools.permutations(stages))
    if len(stages) == 2:
        (a0, a1, a2), (b0, b1, b2) = stages
        least = min(least, max(a0, b1 + b2) + max(b0, a1 + a2))
    return least * GROUP_FACTORS[len(stages)]


def replay(columns: Columns, chooser: Chooser) -> F64:
    """[jobs] seconds from submission to the end of each."""
    jobs = len(columns.cards)
    left, had, ended = columns.iterations.copy(), np.zeros(jobs), np.zeros(jobs)
    period, overhead = np.full(jobs, np.inf), np.zeros(jobs)
    active, arrived, now = np.empty(0, np.int64), 0, 0.0
    while arrived < jobs or len(active):
        ends = now + left[active] * period[active]
        first_end = ends.min(initial=np.inf)
        first_start = columns.submitted_s[arrived] if arrived < jobs else np.inf
        if math.isinf(min(first_end, first_start)):
            raise SpecError("nothing runs and nothing comes", field="chooser", value=len(active))
        at = min(first_end, first_start)
        if first_end <= first_start:
            ended[active[ends == at]] = at
            active = active[ends != at]
        running = active[np.isfinite(period[active])]
        left[running] -= np.maximum(at - now - overhead[running], 0.0) / period[running]
        had[running] += at - now
        if first_start <= first_end:
            last = int(np.searchsorted(columns.submitted_s, at, side="right"))
            active = np.concatenate([active, np.arange(arrived, last)])
            arrived = last
        now = at
        turn = chooser.choose(active, left, had)
        active = turn.order
        period[active] = np.inf
        period[turn.jobs], overhead[turn.jobs] = turn.period_s, turn.overhead_s
    return ended - columns.submitted_s


class Shortest:
    """The authors' baselines: shortest remaining time first, or shortest remaining card-time (`by_cards`)."""

    def __init__(self, columns: Columns, by_cards: bool) -> None:
        self._columns, self._by_cards = columns, by_cards

    def choose(self, active: I64, left: F64, had_s: F64) -> Turn:
        """All jobs by key, placed one after the other until a width fails."""
        columns = self._columns
        key = left[active] * columns.alone_s[active]
        if self._by_cards:
            key = key * columns.cards[active]
        order = active[np.argsort(key, kind="stable")]
        jobs = order[place_in_order(columns.cards[order], NODES, CARDS_PER_NODE)]
        return Turn(order, jobs, columns.alone_s[jobs], columns.overhead_s[jobs])


@compiled
def place_in_order(cards: I64, nodes: int, per_node: int) -> npt.NDArray[np.bool_]:
    """[jobs] who gets a place: yarn's rule, and no width is tried again once it or a narrower one failed."""
    free = np.full(nodes, per_node, np.int64)
    placed = np.zeros(len(cards), np.bool_)
    failed = np.int64(2**31)
    for job in range(len(cards)):
        width = cards[job]
        if width >= failed:
            continue
        whole = width // per_node
        rest = width - whole * per_node
        empty = 0
        room = -1
        for node in range(nodes):
            if free[node] == per_node and empty < whole:
                empty += 1
            elif rest > 0 and room < 0 and free[node] >= rest:
                room = node
        if empty < whole or (rest > 0 and room < 0):
            failed = width
            if width == 1:
                break
            continue
        for node in range(nodes):
            if whole > 0 and free[node] == per_node and node != room:
                free[node] = 0
                whole -= 1
        if rest > 0:
            free[room] -= rest
        placed[job] = True
    return placed


def _cycle(order: tuple[Stages, ...]) -> float:
    count = len(order)
    front = [0.0] * 9
    for step in range(8):
        network, gpu, data = ((step + ahead) % SEATS for ahead in (1, 2, 3))
        reach = 0.0
        if network < count:
            reach = max(reach, front[step] + order[network][2])
        if gpu < count:
            reach = max(reach, front[step] + order[gpu][1])
        if step > 0 and data < count:
            reach = max(reach, front[step - 1] + order[data][0])
        front[step + 1] = reach
        if step >= 4:
            now, before = front[step + 1] - front[step - 3], front[step] - front[step - 4]
            if now > 0 and math.isclose(now, before, rel_tol=1e-3):
                return now
    return front[8] - front[4]


def _sharing_table(kinds: Sequence[Sequence[tuple[str, float, Stages]]]) -> Sharing:
    count = max(len(found) for found in kinds)
    if count > MOST_KINDS:
        raise SpecError(
            "too many kinds of job of one width", field="trace", value=count, hint=f"{MOST_KINDS}"
        )
    alone = np.ones((len(WIDTHS), count))
    period = np.full((len(WIDTHS), *(count + 1,) * SEATS), np.inf)
    for x, found in enumerate(kinds):
        for at, (_, iteration, _) in enumerate(found):
            alone[x, at] = iteration * SOLO_FACTOR
        for size in range(1, SEATS + 1):
            for group in itertools.combinations_with_replacement(range(len(found)), size):
                turn = alone[x, group[0]] if size == 1 else group_period([found[at][2] for at in group])
                for seats in set(itertools.permutations((*group, *[count] * (SEATS - size)))):
                    period[(x, *seats)] = turn
    return Sharing(np.array(WIDTHS, np.int64), period, alone)


def _overhead(job: MuriJob) -> float:
    return float(OVERHEAD_S.get(job.model, OTHER_OVERHEAD_S)[WIDTHS.index(job.cards)])
