"""How the cards of one machine are wired, and which of them belong together.

`wiring` is the value, `matrix` and `peers` read it from what the driver prints, `sets` chooses cards by it.
"""
