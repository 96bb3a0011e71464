"""A port on which the members of a gang may meet: free when it was looked for, and told to nobody else.

Taken from below the range that the kernel hands out itself, so that no passing connection takes it before the
gang does.
"""

from __future__ import annotations

import socket
from collections.abc import Container
from typing import Final
from zlib import crc32

FIRST: Final = 20_000
COUNT: Final = 12_000


def free_port(taken: Container[int | None], seed: str) -> int | None:
    """One that nobody listens on and that is not among `taken`; None where there is none left.

    The search begins at a place that follows from `seed`, so that it rarely asks twice.
    """
    begin = crc32(seed.encode())
    for step in range(COUNT):
        port = FIRST + (begin + step) % COUNT
        if port not in taken and _is_free(port):
            return port
    return None


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
