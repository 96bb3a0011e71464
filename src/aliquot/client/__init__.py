"""The Python client of a running service.

from aliquot.client import Client, Submission

client = Client(Path("/run/aliquot/aliquot.sock"))
job = client.submit(Submission(command=("python", "train.py"), spec={"gpu": {"count": 2}}))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aliquot.client.client import Client
    from aliquot.control.views import Submission

__all__ = ["Client", "Submission"]


def __getattr__(name: str) -> object:
    """Loaded when asked for: who only reads a list needs neither."""
    if name == "Client":
        from aliquot.client.client import Client

        return Client
    if name == "Submission":
        from aliquot.control.views import Submission

        return Submission
    raise AttributeError(name)
