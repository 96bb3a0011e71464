"""NVIDIA cards as the driver's own library tells of them: what is there, how it is wired, who uses it.

`readings` are the values, `inventory` puts them together; the other mechanisms build on this one.
"""

from aliquot.drivers.nvml.inventory import NvmlInventory
from aliquot.drivers.nvml.readings import Absent, Detection, Failed, Found, Inventory

__all__ = ["Absent", "Detection", "Failed", "Found", "Inventory", "NvmlInventory"]
