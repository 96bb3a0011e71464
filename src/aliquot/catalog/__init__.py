"""Facts about hardware as data files: GPU models and machine shapes. It loads; the core defines the types."""

from aliquot.catalog.hardware import HardwareCatalog, load_catalog
from aliquot.catalog.machines import MachineShape, NicPort

__all__ = ["HardwareCatalog", "MachineShape", "NicPort", "load_catalog"]
