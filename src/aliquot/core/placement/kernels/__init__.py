"""Compiled inner loops (numba). Imported only by the numba engine, so that small sites never load it."""
