"""Aliquot: the middle layer between AI jobs and GPUs."""

from aliquot.reporting import report

__version__ = "0.1.0"
__all__ = ["__version__", "report"]
