"""What a job says of itself: how far it is, that it is alive, when it could last be gone on from.

    import aliquot
    aliquot.report(step=10, tokens=81_920, flops=3.1e15)
    aliquot.report(checkpoint=True)

Counts are totals since the attempt began, so that a report that is lost spoils nothing. It costs a datagram
and never fails: where nobody listens it does nothing. Only the standard library is loaded, when first called.
"""

from __future__ import annotations

import os

CHANNEL = "ALIQUOT_REPORT"
"""The variable that names the socket; only jobs have it."""

_PATIENCE_S = 0.05


def report(
    *,
    step: int | None = None,
    tokens: int | None = None,
    flops: float | None = None,
    checkpoint: bool = False,
) -> bool:
    """Tell how far this job is; whether that was sent. None is not said. Never raises.

    `flops`: floating-point operations of the model, for the share of the cards' peak that they are (MFU).
    `checkpoint`: what was done so far is saved now.
    """
    path = os.environ.get(CHANNEL)
    if not path:
        return False
    try:
        import json
        import socket

        said = {"step": step, "tokens": tokens, "flops": flops, "checkpoint": checkpoint or None}
        body = {name: value for name, value in said.items() if value is not None}
        names = {"job": "ALIQUOT_JOB", "attempt": "ALIQUOT_ATTEMPT_NUMBER", "member": "ALIQUOT_MEMBER"}
        own = {name: os.environ.get(variable, "") for name, variable in names.items()}
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
            channel.settimeout(_PATIENCE_S)
            channel.sendto(json.dumps({**own, **body}).encode(), path)
    except Exception:  # whatever it is, a job must not end of it
        return False
    return True
