"""The recorder: watches a meter and keeps what the charts need, in bounded memory.

It draws nothing. The heat map has one row a card on sites of up to 256 cards, one a node up to 256 nodes,
else one for as many neighbouring nodes as needed; the Gantt keeps the first 2,000 jobs and counts the rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from aliquot.core.columns import NodeChunk
from aliquot.core.grants import Placement
from aliquot.core.ids import CardId, JobId
from aliquot.core.inventory import Node, NodeKind
from aliquot.core.jobs import Job
from aliquot.core.lifecycle import Phase
from aliquot.core.report.cells import width_of
from aliquot.core.report.charts import (
    Bar,
    Course,
    FragmentPoint,
    Gantt,
    HeatMap,
    LoadPoint,
    RowUnit,
    Segment,
    Timeline,
    bin_waits,
)  # fmt: skip  # one list, not one name a line
from aliquot.core.report.fragmentation import Demand, Fragmentation, measure, prepare
from aliquot.core.report.gauges import Sums
from aliquot.core.report.lives import Life
from aliquot.core.report.load import LoadCurve
from aliquot.core.report.needs import Mix
from aliquot.core.report.raster import COLUMNS, FIRST_WIDTH_MS, Raster
from aliquot.core.report.readings import Readings
from aliquot.core.workload import Scenario

HEAT_ROWS: Final = 256
MOST_BARS: Final = 2000
MOST_SAMPLES: Final = 400

_BOOKED, _BUSY, _DARK, _UP, _WAITING = range(5)
_SERIES: Final = 5


class Recorder:
    """A `Watcher` of a meter. `sample` reads fragmentation off the columns whenever `is_due`.

    With `by_load` samples are taken as the offered load passes each percent of capacity, else evenly in time.
    """

    def __init__(
        self, scenario: Scenario, *, mix: Mix | None = None, by_load: bool = False, start_ms: int = 0
    ) -> None:
        self.mix = scenario.demand() if mix is None else mix
        self._by_load = by_load
        self._unit, self._labels, self._row_of = _rows(scenario.nodes)
        last = scenario.offers[-1].job.submitted_ms if scenario.offers else start_ms
        width = min(max(1, (last - start_ms) // COLUMNS), FIRST_WIDTH_MS)
        self._heat = Raster(2 * len(self._labels), start_ms, width_ms=width)  # booked, then up
        self._course = Raster(_SERIES, start_ms, width_ms=width)
        self._load = LoadCurve()
        self._demand: tuple[int, Demand] | None = None
        self._samples: list[tuple[int, int, Fragmentation]] = []  # (at, percent offered, reading)
        self._spacing = max(1000, (last - start_ms) // (MOST_SAMPLES // 2))
        self._next_sample = start_ms
        self._bars: dict[JobId, _Bar] = {}
        self._left_out = 0

    # --- watching a meter ------------------------------------------------------------------------------

    def card(self, card: CardId, booked: int, up: int, at: int) -> None:
        """See `meter.Watcher`. A card that is not of the scenario has no row."""
        row = self._row_of.get(card)
        if row is None:
            return
        if booked:
            self._heat.add(row, booked, at)
        if up:
            self._heat.add(row + len(self._labels), up, at)

    def submitted(self, job: Job, at: int, sums: Sums) -> None:
        """See `meter.Watcher`."""
        self._load.arrive(job, sums.booked_milli.value, sums.up_milli.value)
        if len(self._bars) < MOST_BARS:
            self._bars.setdefault(job.id, _Bar(job))
        elif job.id not in self._bars:
            self._left_out += 1

    def placed(self, life: Life, placements: tuple[Placement, ...], at: int) -> None:
        """See `meter.Watcher`."""
        held = sum(part.vector.compute * len(part.cards) for part in placements)
        self._load.answer(life.job.id, held)
        bar = self._bars.get(life.job.id)
        if bar is not None:
            nodes = tuple(dict.fromkeys(str(placement.node) for placement in placements))
            bar.life = life
            bar.segments.append(Segment(at, None, nodes))

    def over(self, life: Life, outcome: Phase, at: int) -> None:
        """See `meter.Watcher`."""
        if not life.placed:
            self._load.answer(life.job.id, 0)
        bar = self._bars.get(life.job.id)
        if bar is None:
            return
        bar.life = life
        if bar.segments and bar.segments[-1].end_ms is None:
            last = bar.segments.pop()
            bar.segments.append(Segment(last.start_ms, at, last.nodes))
        if outcome is not Phase.PENDING:
            bar.end_ms = at

    def tick(self, at: int, sums: Sums) -> None:
        """See `meter.Watcher`."""
        course = self._course
        course.put(_BOOKED, sums.booked_milli.value, at)
        course.put(_BUSY, sums.busy_milli.value, at)
        course.put(_DARK, sums.dark_milli.value, at)
        course.put(_UP, sums.up_milli.value, at)
        course.put(_WAITING, sums.waiting_jobs.value, at)

    # --- sampling the columns --------------------------------------------------------------------------

    def is_due(self, at: int) -> bool:
        """Whether `sample` should be called now."""
        if self._by_load:
            return self._load.is_answered and (
                not self._samples or self._load.percent != self._samples[-1][1]
            )
        return at >= self._next_sample

    def sample(self, chunks: Sequence[NodeChunk], kinds: Sequence[NodeKind], at: int) -> None:
        """Read fragmentation off the columns as they are at `at`."""
        if self._demand is None or self._demand[0] != len(kinds):
            self._demand = len(kinds), prepare(self.mix, kinds)
        self._samples.append((at, self._load.percent, measure(chunks, self._demand[1])))
        self._next_sample = at + self._spacing
        if not self._by_load and len(self._samples) > MOST_SAMPLES:
            self._samples = self._samples[::2]
            self._spacing *= 2

    def fragmentation(self, until_ms: int) -> float | None:
        """Mean of FGD's rate where anything was free; None without a sample.

        In time each sample counts for as long as it stood; by load each percent counts once.
        """
        samples = [(at, sample.rate) for at, _, sample in self._samples if at <= until_ms]
        ends = [at for at, _ in samples[1:]] + [until_ms]
        weighed = [
            (1 if self._by_load else end - at, float(rate))
            for (at, rate), end in zip(samples, ends, strict=True)
            if rate is not None
        ]
        weight = sum(weight for weight, _ in weighed)
        return math.fsum(weight * rate for weight, rate in weighed) / weight if weight else None

    # --- the result ------------------------------------------------------------------------------------

    def load(self) -> tuple[LoadPoint, ...]:
        """Allocation and fragmentation by offered load, as far as it got."""
        self._load.settle()
        return self._load.points({percent: sample.rate for _, percent, sample in self._samples})

    def timeline(self, readings: Readings) -> Timeline:
        """Everything up to the end of the window of `readings`."""
        end = readings.window.end_ms
        return Timeline(
            course=self._read_course(end),
            load=self.load(),
            fragments=tuple(_fragment_point(at, sample) for at, _, sample in self._samples if at <= end),
            heat=self._read_heat(end),
            gantt=Gantt(tuple(bar.freeze() for bar in self._bars.values()), self._left_out),
            waits=bin_waits(readings),
        )

    def _read_course(self, end: int) -> Course:
        cells = self._course.read(end).tolist()
        width = self._course.width_ms
        lengths = _lengths(len(cells), width, self._course.start_ms, end)
        return Course(
            start_ms=self._course.start_ms,
            width_ms=width,
            allocation=tuple(_milli(cell[_BOOKED], cell[_UP]) for cell in cells),
            utilisation=tuple(None if cell[_DARK] else _milli(cell[_BUSY], cell[_UP]) for cell in cells),
            waiting=tuple(cell[_WAITING] / length for cell, length in zip(cells, lengths, strict=True)),
        )

    def _read_heat(self, end: int) -> HeatMap:
        count = len(self._labels)
        columns = self._heat.read(end).T.tolist()
        cells = tuple(
            tuple(_milli(booked, up) for booked, up in zip(columns[row], columns[row + count], strict=True))
            for row in range(count)
        )
        return HeatMap(self._unit, self._labels, self._heat.start_ms, self._heat.width_ms, cells)


class _Bar:
    """A job's bar while it grows."""

    __slots__ = ("end_ms", "job", "life", "segments")

    def __init__(self, job: Job) -> None:
        self.job = job
        self.life: Life | None = None
        self.end_ms: int | None = None
        self.segments: list[Segment] = []

    def freeze(self) -> Bar:
        """As it stands."""
        job, life = self.job, self.life
        return Bar(
            job=job.id,
            stage=job.stage.value,
            queue=job.queue,
            width=width_of(job),
            submitted_ms=job.submitted_ms,
            started_ms=life.started_ms if life else None,
            end_ms=self.end_ms,
            outcome=(life.phase if life else Phase.PENDING).value,
            moves=life.moves if life else 0,
            segments=tuple(self.segments),
        )


def _rows(nodes: Sequence[Node]) -> tuple[RowUnit, tuple[str, ...], dict[CardId, int]]:
    """The rows of the heat map, in node order, and the row of each card. One site's name goes unsaid."""
    holders = [node for node in nodes if node.cards]
    plain = len({node.id.site for node in holders}) == 1
    names = [node.id.name if plain else str(node.id) for node in holders]
    if sum(len(node.cards) for node in holders) <= HEAT_ROWS:
        pairs = zip(names, holders, strict=True)
        cards = [(f"{name} / {at}", card.uuid) for name, node in pairs for at, card in enumerate(node.cards)]
        row_of = {uuid: at for at, (_, uuid) in enumerate(cards)}
        return RowUnit.CARD, tuple(label for label, _ in cards), row_of
    bundle = -(-len(holders) // HEAT_ROWS)
    row_of = {card.uuid: at // bundle for at, node in enumerate(holders) for card in node.cards}
    groups = [names[at : at + bundle] for at in range(0, len(names), bundle)]
    labels = tuple(f"{first} +{len(rest)}" if rest else first for first, *rest in groups)
    return (RowUnit.NODE if bundle == 1 else RowUnit.NODES), labels, row_of


def _fragment_point(at: int, sample: Fragmentation) -> FragmentPoint:
    rate, scatter = sample.rate, sample.scatter
    return FragmentPoint(
        at,
        None if rate is None else float(rate),
        None if scatter is None else float(scatter),
        sample.stranded_cards,
    )


def _lengths(columns: int, width: int, start: int, end: int) -> list[int]:
    """The length of each column in ms; the last one ends with the window."""
    return [max(1, min(width, end - start - at * width)) for at in range(columns)]


def _milli(part: int, whole: int) -> int | None:
    return None if whole == 0 else (2000 * part + whole) // (2 * whole)
