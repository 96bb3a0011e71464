"""Compiled inner loops of the search for victims (numba). Imported only where the numba engine is chosen."""
