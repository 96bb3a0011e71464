"""Aliquot: the middle layer between AI jobs and GPUs."""

__version__ = "0.1.0"
