"""The rows of the data files, exactly as written there; an unknown key is an error when they are read."""

from __future__ import annotations

from importlib import resources
from typing import Literal, TypeVar

import msgspec

Format = Literal["fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8"]
FileT = TypeVar("FileT")


class ModelRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One card model. Absent or null is unknown; `unverified` names figures without a published source."""

    name: str
    family: str
    vendor: str
    memory_mib: int
    bandwidth_gbs: int | None
    link_gbs: int | None  # sum of both directions; 0: has none
    tflops: dict[Format, float]  # dense
    aliases: tuple[str, ...] = ()
    reserved_mib: int | None = None
    nvlinks: int | None = None  # of one card
    nvlink_mbs: int = 0  # one link, one way
    unverified: tuple[str, ...] = ()
    note: str = ""


class ModelFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`gpu_models.json`."""

    about: tuple[str, ...]
    models: tuple[ModelRow, ...]


class NicRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A network port and the cards it shares a PCIe switch with."""

    name: str
    gbits: int
    near: tuple[int, ...] = ()
    level: Literal["PIX", "PXB", "PHB"] = "PXB"
    numa: int | None = None


class WiringRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the cards of a shape are joined. `mesh` holds NVLink counts by pair, `links` one for all pairs."""

    gen: int  # PCIe generation
    links: int = 0
    mesh: tuple[tuple[int, ...], ...] = ()
    link_mbs: int = 20_000  # one NVLink, one way
    switches: tuple[tuple[int, ...], ...] = ()  # cards below one PCIe switch


class PriceRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Round prices in US dollars, all of them assumptions, to compare wastes and not to buy by."""

    card_usd: int | None = None  # purchase, one card
    hour_usd: float | None = None  # rent, the whole machine


class ShapeRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One machine shape. No `wiring` means that nobody says how its cards are joined."""

    name: str
    kind: Literal["product", "build", "cloud"]
    model: str
    cards: int
    cpu: int  # hardware threads, as Linux counts processors
    memory_gib: int
    about: str
    numa: int = 0  # NUMA nodes; 0: unknown
    card_numa: tuple[int, ...] = ()
    wiring: WiringRow | None = None
    nics: tuple[NicRow, ...] = ()
    rdma: tuple[Literal["InfiniBand", "RoCEv2", "EFA", "eRDMA"], ...] = ()
    price: PriceRow = PriceRow()


class ShapeFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`machine_shapes.json`."""

    about: tuple[str, ...]
    shapes: tuple[ShapeRow, ...]


def read_rows(name: str, kind: type[FileT]) -> FileT:
    """The data file `name` of this package as `kind`."""
    content = resources.files("aliquot.catalog").joinpath("data", name).read_bytes()
    return msgspec.json.decode(content, type=kind)
