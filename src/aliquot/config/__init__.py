"""The only reader of user configuration: documents in YAML or JSON into a scenario of the core.

What a user wrote wrong is one `DocumentError` that names file, line, field, value and what would be right.
"""

from aliquot.config.builtin import BUILTIN
from aliquot.config.environment import Environment, read_environment
from aliquot.config.scenario import load_scenario
from aliquot.config.shelf import Shelf

__all__ = [
    "BUILTIN",
    "Environment",
    "Shelf",
    "load_scenario",
    "read_environment",
]
