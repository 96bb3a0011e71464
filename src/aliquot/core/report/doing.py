"""What running jobs do on their cards, as the meter counts it: activity, throughput, what neighbours cost.

All of it follows from what owners said of their jobs, and from how fast they run where they were put. Of a
job of which nothing was said nothing is known, and it counts nowhere: unknown is not 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aliquot.core.grants import Placement
from aliquot.core.ids import JobId, NodeId
from aliquot.core.inventory import Node, peak_gflops
from aliquot.core.report.activity import Activities
from aliquot.core.report.company import Company
from aliquot.core.report.crowds import Crowds
from aliquot.core.report.lives import Life, Lives
from aliquot.core.report.machines import Machines
from aliquot.core.speed import FULL_SPEED, SpeedTable
from aliquot.core.units import FULL
from aliquot.core.workload import Offer

Places = Mapping[JobId, Sequence[Placement]]


class Doing:
    """Call `hold` when what a job holds changes, `work` when how it runs may have, `rest` when it stops."""

    def __init__(
        self,
        offers: Mapping[JobId, Offer],
        speeds: SpeedTable,
        nodes: Mapping[NodeId, Node],
        places: Places,
        machines: Machines,
        crowds: Crowds,
    ) -> None:
        self._offers, self._nodes, self._places = offers, nodes, places
        self._machines, self._crowds = machines, crowds
        self._activities = Activities(speeds, nodes)
        self.company = Company()

    def hold(self, life: Life, at: int) -> None:
        """It holds what it has now; what those cards can do counts where its throughput is known."""
        offer = self._offers.get(life.job.id)
        reports = offer is not None and offer.gflops is not None
        peak = self._peak(life) if reports and life.holds else 0
        life.cell.peak.add(peak - life.peak, at)
        life.peak = peak

    def work(self, life: Life, lives: Lives, at: int) -> None:
        """What the cards of a job do from now on, at the speed of where it runs."""
        offer, busy = self._offers.get(life.job.id), None
        if offer is not None:
            seen = self._activities.look(
                offer, self._places[life.job.id], self.company.workers(life.job, lives)
            )
            busy = seen.busy_milli
            if seen.slowed and not life.slowed:
                life.slowed = True
                life.cell.slowed += 1
                life.cell.short += life.peak > 0
            throughput = (offer.gflops or 0) * seen.speed_milli // FULL_SPEED
            self._set(life, throughput, FULL - seen.beside_milli, at)
        for hold in life.holds:
            if hold.cards:
                self._machines.busy(hold, busy, at)

    def rest(self, life: Life, lives: Lives, at: int) -> None:
        """It does nothing any more; who shares its cards is faster by that."""
        self._set(life, 0, 0, at)
        for hold in life.holds:
            if hold.busy != 0:
                self._machines.busy(hold, 0, at)
        for other in self.company.others(life.job.id, lives):
            self.work(other, lives, at)

    def _set(self, life: Life, throughput: int, lag_milli: int, at: int) -> None:
        """`lag_milli`: how much of its speed alone, on all it asked for, its neighbours there cost it."""
        cell = life.cell
        if life.peak or life.gflops:
            rate = throughput if life.peak else 0
            cell.gflops.add(rate - life.gflops, at)
            life.gflops = rate
        lag = life.asked * lag_milli // FULL
        if lag != life.lag:
            cell.lag.add(lag - life.lag, at)
            if bool(lag) != bool(life.lag):
                self._crowds.press(life.job.queue, 1 if lag else -1, at)
            life.lag = lag
        cell.hindered += bool(lag) and not life.hindered
        life.hindered = life.hindered or bool(lag)

    def _peak(self, life: Life) -> int:
        """GFLOP/s of all it holds, in proportion to its part of each card; 0: of some card it is unknown."""
        total = 0
        for place in self._places[life.job.id]:
            models = {card.uuid: card.model for card in self._nodes[place.node].cards}
            for card in place.cards:
                peak = peak_gflops(models[card]) if card in models else None
                if peak is None:
                    return 0
                total += peak * place.vector.compute // FULL
        return total
