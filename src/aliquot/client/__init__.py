"""The Python client of a running service.

from aliquot.client import Client

client = Client(Path("/run/aliquot/aliquot.sock"))
job = client.submit(Submission(command=("python", "train.py"), spec={"gpu": {"count": 2}}))
"""

from aliquot.client.client import Client
from aliquot.control.views import Submission

__all__ = ["Client", "Submission"]
