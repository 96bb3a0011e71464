"""Jobs of one document that wait for each other are submitted with the ids of those before them."""

from __future__ import annotations

from aliquot.control.views import Submission
from aliquot.interfaces.cli.live_asks import with_ids


def asked(**spec: object) -> Submission:
    """A submission that asks for no more than this."""
    return Submission(command=("true",), spec=dict(spec), name="j")


def test_names_become_ids_and_ids_stay() -> None:
    found = with_ids(asked(after=["a", "7"], afterOk="b", cpu=1), {"a": "12", "b": "13"})
    assert found.spec == {"after": ["12", "7"], "afterOk": ["13"], "cpu": 1}


def test_one_that_waits_for_nobody_is_as_it_was() -> None:
    job = asked(cpu=1)
    assert with_ids(job, {"a": "12"}) is job
