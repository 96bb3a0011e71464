"""Which jobs the machines seen so far could ever hold, with nothing else on them.

One that they never could is no demand: it takes nothing from its queue that anybody could have given it. What
they could is decided by `never`, as for who submits it, on a world in which nobody holds anything.
"""

from __future__ import annotations

from collections.abc import Hashable

from msgspec.structs import replace

from aliquot.core.events import NodeJoined
from aliquot.core.ids import JobId, NodeId
from aliquot.core.inventory import Node
from aliquot.core.jobs import Job
from aliquot.core.memo import Memo
from aliquot.core.never import find_never
from aliquot.core.report.lives import Life
from aliquot.core.settings import Settings
from aliquot.core.siting import Desk
from aliquot.core.world import World


class Fitting:
    """Feed it every node that joins; one that is lost may return and counts still.

    `settings`: the policy, which may not share cards or split jobs over nodes; None: it may.
    """

    def __init__(self, settings: Settings | None) -> None:
        rules = Settings(scatter=True) if settings is None else settings
        # Nobody is placed, so the quickest to make of all scorers will do.
        self._settings = replace(rules, policy=(("best-fit", 1.0),), engine="python")
        self._nodes: dict[NodeId, Node] = {}
        self._desk: Desk | None = None
        self._known: dict[Hashable, bool] = {}
        self._unfit: dict[JobId, Life] = {}

    def join(self, node: Node) -> tuple[Life, ...]:
        """A node is there, with what it now reports: the waiting jobs that could be held from now on."""
        if self._nodes.get(node.id) == node:
            return ()
        self._nodes[node.id] = node
        self._desk = None
        self._known.clear()
        found = tuple(life for life in self._unfit.values() if self.can_hold(life.job))
        for life in found:
            self.forget(life)
        return found

    def holds_back(self, life: Life) -> bool:
        """Whether a job that is ready waits for machines that there are not."""
        unfit = not self.can_hold(life.job)
        if unfit:
            self._unfit[life.job.id] = life
        return unfit

    def forget(self, life: Life) -> bool:
        """It waits no more. Whether it was for machines that there are not."""
        return self._unfit.pop(life.job.id, None) is not None

    def can_hold(self, job: Job) -> bool:
        """Whether `job` could start on nodes that hold nothing else; at its first width if it has several."""
        key = (job.members, job.minimum, job.scatter, job.elastic, job.groups, job.wish)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = bool(self._nodes) and find_never(self._empty_desk(), job) is None
        return known

    def _empty_desk(self) -> Desk:
        """A desk with all the nodes, and nothing on them."""
        if self._desk is None:
            world = World()
            for node in self._nodes.values():
                world.apply(NodeJoined(0, node))
            self._desk = Desk(world.freeze(), self._settings, Memo())
        return self._desk
