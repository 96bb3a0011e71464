"""The catalogue that ships with Aliquot, read from its data files once and kept."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, cached_property
from types import MappingProxyType

from aliquot.catalog.machines import MachineShape, build_shape
from aliquot.catalog.rows import ModelFile, ModelRow, ShapeFile, read_rows
from aliquot.core.inventory import CardModel, Node


class HardwareCatalog:
    """GPU models and machine shapes by name. Implements `ports.Catalog`; every mapping is read-only."""

    def models(self) -> Mapping[str, CardModel]:
        """GPU models by name, in the order of the data file. Names and aliases are unique among them all."""
        return self._models

    def families(self) -> Mapping[str, tuple[str, ...]]:
        """Names of the models that people call by one word: `A100` is four boards."""
        found: dict[str, tuple[str, ...]] = {}
        for row in self._rows.values():
            found[row.family] = (*found.get(row.family, ()), row.name)
        return MappingProxyType(found)

    def nvlinks(self) -> Mapping[str, tuple[int, int]]:
        """(links of one card, MB/s of one link one way) by model; a model without is not in it."""
        return MappingProxyType(
            {name: (row.nvlinks, row.nvlink_mbs) for name, row in self._rows.items() if row.nvlinks}
        )

    def remarks(self, model: str) -> tuple[str, ...]:
        """What to know of a model's figures: its note, and which of them have no published source."""
        row = self._rows[model]
        doubt = f"no published source for {', '.join(row.unverified)}" if row.unverified else ""
        return tuple(text for text in (row.note, doubt) if text)

    def shapes(self) -> Mapping[str, MachineShape]:
        """Machine shapes by name, in the order of the data file."""
        return self._shapes

    def machines(self) -> Mapping[str, Node]:
        """The template node of every shape: no name, no UUIDs."""
        return MappingProxyType({name: shape.node for name, shape in self._shapes.items()})

    @cached_property
    def _rows(self) -> Mapping[str, ModelRow]:
        return {row.name: row for row in read_rows("gpu_models.json", ModelFile).models}

    @cached_property
    def _models(self) -> Mapping[str, CardModel]:
        return MappingProxyType({name: build_model(row) for name, row in self._rows.items()})

    @cached_property
    def _shapes(self) -> Mapping[str, MachineShape]:
        rows = read_rows("machine_shapes.json", ShapeFile).shapes
        return MappingProxyType({row.name: build_shape(row, self._models) for row in rows})


@cache
def load_catalog() -> HardwareCatalog:
    """The one catalogue of this process; its files are read when first asked for."""
    return HardwareCatalog()


def build_model(row: ModelRow) -> CardModel:
    """The core's value of a row. What the driver keeps counts as 0 where nobody has measured it."""
    return CardModel(
        name=row.name,
        memory_mib=row.memory_mib,
        reserved_mib=row.reserved_mib or 0,
        bandwidth_gbs=row.bandwidth_gbs,
        nvlink_gbs=row.link_gbs,
        gflops=tuple((number, round(tflops * 1000)) for number, tflops in row.tflops.items()),
        aliases=row.aliases,
    )
