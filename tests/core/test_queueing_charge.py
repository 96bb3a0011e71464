"""What quotas count for a job: what it asks for, never what it ends up holding."""

from __future__ import annotations

import pytest

from aliquot.core.charging import flavours_of, names_of
from aliquot.core.ids import JobId
from aliquot.core.inventory import CardModel, NodeKind
from aliquot.core.jobs import Job, Request
from aliquot.core.queueing.tree import grow_tree
from aliquot.core.queues import CARDS, COMPUTE, MEMORY, MONEY, Measure, Queue, Quota, Resource
from aliquot.core.settings import Rates
from aliquot.core.slices import Ask, Cut

A100 = CardModel("A100", memory_mib=80_000, reserved_mib=1000)
OF_A100 = Resource(Measure.CARDS, "A100")


RESOURCES = (CARDS, OF_A100, MEMORY, COMPUTE, MONEY)
TREE = grow_tree([Queue("q", quotas=tuple(Quota(resource, 1) for resource in RESOURCES))], {})


def charged_for(*members: Request, rates: Rates = Rates()) -> dict[Resource, int]:  # noqa: B008 - a frozen value
    """The one way to charge a job of `members` on a site of A100s."""
    kinds = [NodeKind((A100,), (None,), None, 0, 0, 0)]
    job = Job(JobId("j"), members, 0, 0)
    (flavour,) = flavours_of(job, kinds, TREE, rates, names_of(kinds, TREE))
    return {TREE.resources[slot]: amount for slot, amount in flavour.charge}


@pytest.mark.parametrize(
    ("request_", "cards", "memory"),
    [
        pytest.param(Request(cards=8, ask=Ask(memory_mib=38_147)), 8000, 305_176, id="8 x 40 GB, not 8 x 80"),
        pytest.param(Request(cards=2), 2000, 158_000, id="whole cards with nothing said"),
        pytest.param(
            Request(cards=1, ask=Ask(Cut.SHARED, memory_mib=19_750)), 250, 19_750, id="a quarter by memory"
        ),
        pytest.param(
            Request(cards=1, ask=Ask(Cut.SHARED, compute_milli=500)), 500, 39_500, id="half by compute"
        ),
        pytest.param(
            Request(cards=1, ask=Ask(memory_mib=99_999)), 1000, 99_999, id="more than such a card has"
        ),
        pytest.param(Request(cpu_milli=4000), 0, 0, id="no cards"),
    ],
)
def test_what_is_asked_is_charged(request_: Request, cards: int, memory: int) -> None:
    charged = charged_for(request_)
    assert charged == {CARDS: cards, OF_A100: cards, MEMORY: memory} if cards else charged == {}


def test_members_add_up_and_rates_make_compute_and_money() -> None:
    rates = Rates((("A100", 500),), (("A100", 100_001),))
    members = (Request(cards=1), Request(cards=1, ask=Ask(Cut.SHARED, compute_milli=1)))
    charged = charged_for(*members, rates=rates)
    assert (charged[CARDS], charged[COMPUTE], charged[MONEY]) == (1001, 501, 100_102)


def test_an_unknown_rate_is_left_out() -> None:
    charged = charged_for(Request(cards=1), rates=Rates((("A100", 1000),)))
    assert COMPUTE in charged
    assert MONEY not in charged, "unknown is not 0"
