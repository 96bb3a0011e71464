"""Cards that are not there, for a machine without any: same inventory, same values, real processes.

Chosen where the service is put together, never asked about in the code that uses it.
"""

from aliquot.drivers.simulated.cards import SimulatedInventory
from aliquot.drivers.simulated.shapes import SHAPES, Shape, find_shape

__all__ = ["SHAPES", "Shape", "SimulatedInventory", "find_shape"]
