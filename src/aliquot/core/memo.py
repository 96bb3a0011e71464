"""What a planner may keep between plans: scorers with their cached columns, and requests as shapes.

It lives outside the world and may be thrown away at any time: a plan with a warm memo equals a plan with an
empty one (I10). Everything in it follows from node kinds, settings, epoch and rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from aliquot.core.domains import DomainsMemo
from aliquot.core.ends import EndsMemo
from aliquot.core.inventory import NodeKind
from aliquot.core.jobs import Request
from aliquot.core.linking import Need, WiredChooser
from aliquot.core.moments import MomentsMemo
from aliquot.core.movables import MovablesMemo
from aliquot.core.placement.mix import mix_of
from aliquot.core.placement.placer import Placer
from aliquot.core.placement.rescue import Leaving
from aliquot.core.placement.shapes import Shape
from aliquot.core.records import Epoch, Frozen
from aliquot.core.room.lodgers import LodgersMemo
from aliquot.core.roster import Roster
from aliquot.core.settings import Settings
from aliquot.core.shaping import alternatives, as_whole, hardware_of, shapes_of
from aliquot.core.speed import SpeedTable
from aliquot.core.turning import StandingMemo

KEPT: Final = 1 << 14
"""Distinct requests known; beyond this all are forgotten between plans."""


class Memo:
    """Caches for one site under one policy; remade when either changes."""

    def __init__(self) -> None:
        self._kinds: tuple[NodeKind, ...] | None = None
        self._settings: Settings | None = None
        self._epoch: Epoch | None = None
        self._placer: Placer | None = None
        self._chooser: WiredChooser | None = None
        self.leaving = Leaving()
        self.standing = StandingMemo()
        self.domains = DomainsMemo()
        self.roster = Roster()
        self.ends = EndsMemo(self.roster)
        self.moments = MomentsMemo()
        self.movables = MovablesMemo(self.roster)
        self.lodgers = LodgersMemo()
        self._options: dict[Request, tuple[tuple[Request, Shape], ...]] = {}
        self._specs: dict[tuple[object, ...], int] = {}

    @property
    def known(self) -> int:
        """Distinct requests known."""
        return len(self._options)

    def prepare(self, world: Frozen, settings: Settings) -> tuple[Placer, WiredChooser]:
        """Scorers for `world`, in its epoch. Their board still has to be synced."""
        if len(self._options) > KEPT:
            self._options.clear()
        if self._placer is None or self._kinds != world.kinds or self._settings != settings:
            self._remake(world.kinds, settings)
        assert self._placer is not None
        assert self._chooser is not None
        if self._epoch is not world.epoch:
            self._begin(world.epoch, settings)
        return self._placer, self._chooser

    def options(self, request: Request) -> tuple[tuple[Request, Shape], ...]:
        """What may stand for `request`, in order of preference, each with its shape."""
        options = self._options.get(request)
        if options is None:
            options = self._resolve(request)
            self._options[request] = options
        return options

    def _remake(self, kinds: tuple[NodeKind, ...], settings: Settings) -> None:
        self._kinds, self._settings, self._epoch = kinds, settings, None
        self._options, self._specs = {}, {}
        self._chooser = WiredChooser(kinds, SpeedTable(), aware=settings.topology_aware)
        self._placer = Placer(
            [hardware_of(kind) for kind in kinds],
            dict(settings.policy),
            chooser=self._chooser.choose,
            engine=settings.engine,
        )

    def _begin(self, epoch: Epoch, settings: Settings) -> None:
        """Groups of demand are numbered anew, in the order of the mix and not of what was seen before."""
        assert self._placer is not None
        self._options, self._specs = {}, {}
        demands = [(shape, count) for request, count in epoch.mix for _, shape in self.options(request)[:1]]
        self._placer.set_epoch(mix_of(demands), epoch.number, epoch.seed if epoch.number else settings.seed)
        self._epoch = epoch

    def _resolve(self, request: Request) -> tuple[tuple[Request, Shape], ...]:
        assert self._kinds is not None
        assert self._settings is not None
        asked = request if self._settings.shared else as_whole(request)
        return tuple(
            (option, shape)
            for option in alternatives(asked)
            for shape in shapes_of(option, self._kinds, self._spec(self._kinds, option), need_of(option))
        )

    def _spec(self, kinds: Sequence[NodeKind], request: Request) -> int:
        """Requests that accept the same kinds are one group of demand."""
        accepted = tuple(shape.eligible for shape in shapes_of(request, kinds, 0, need_of(request)))
        return self._specs.setdefault(accepted, len(self._specs))


def need_of(request: Request) -> Need:
    """What, beside its shape, decides which set of cards serves `request` best."""
    return Need(request.link, request.traffic_mbs)
