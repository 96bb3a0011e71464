"""Queues as people see them: a queue counts with all below it, and quotas are the planner's own numbers."""

from __future__ import annotations

from aliquot.control.chronicle import Life
from aliquot.control.quotas import lost_queues, notes_on_queues, overcommits_of, queue_views
from aliquot.control.views import QuotaView
from aliquot.core.lifecycle import Phase
from aliquot.core.queueing.overcommit import Excess
from aliquot.core.queues import CARDS, MEMORY, Queue, Quota
from aliquot.core.settings import Settings
from tests.support.planning import carried_out, settings
from tests.support.worlds import WorldBuilder

QUEUES = (
    Queue("lab", quotas=(Quota(CARDS, nominal=6000),)),
    Queue("lab/a", quotas=(Quota(CARDS, nominal=2000, borrowing=3000), Quota(MEMORY, nominal=1024))),
    Queue("lab/b", quotas=(Quota(CARDS, nominal=4000),)),
)
HOW = settings(queues=QUEUES)


def lives(site: WorldBuilder) -> list[Life]:
    return [Life(record.job, record.phase, 0, "") for _, record in sorted(site.frozen.jobs.items())]


def a_site() -> WorldBuilder:
    """Eight cards; `a` runs on three, one more than its own, and waits for four."""
    site = WorldBuilder().node("n", 8).submit("j1", cards=3, queue="lab/a")
    carried_out(site, HOW)
    site.started("j1").submit("j2", cards=4, queue="lab/a").submit("j3", cards=1, queue="lab/b")
    return site


def test_a_queue_shows_what_it_may_have_has_borrows_and_is_asked_for() -> None:
    site = a_site()
    views = {view.name: view for view in queue_views(site.frozen, HOW, lives(site), site.at)}
    assert list(views) == ["lab", "lab/a", "lab/b"]
    cards, memory = views["lab/a"].quotas
    assert cards == QuotaView("cards", nominal=2000, used=3000, borrowed=1000, waiting=4000, maximum=5000)
    assert (memory.resource, memory.nominal, memory.maximum) == ("memory", 1024, None)
    assert memory.used == memory.borrowed + 1024
    assert views["lab/b"].quotas == (QuotaView("cards", 4000, 0, 0, 1000),)


def test_a_queue_counts_with_all_below_it() -> None:
    site = a_site()
    lab = queue_views(site.frozen, HOW, lives(site), site.at)[0]
    assert (lab.waiting, lab.running, lab.is_configured) == (2, 1, True)
    assert lab.quotas == (QuotaView("cards", 6000, 3000, 0, 5000),)


def test_without_documents_there_are_only_the_names_that_jobs_gave() -> None:
    site = WorldBuilder().node("n", 8).submit("j", queue="x")
    (view,) = queue_views(site.frozen, Settings(), lives(site), site.at)
    assert (view.name, view.waiting, view.quotas, view.is_configured) == ("x", 1, (), False)
    (empty,) = queue_views(WorldBuilder().frozen, Settings(), [], 0)
    assert (empty.name, empty.waiting) == ("default", 0)


def test_jobs_that_are_over_do_not_count() -> None:
    site = a_site()
    over = [Life(life.job, Phase.SUCCEEDED, 0, "", over_ms=5) for life in lives(site)]
    assert [view.waiting + view.running for view in queue_views(site.frozen, HOW, over, site.at)] == [0, 0, 0]


def test_quotas_below_what_runs_are_said_where_they_are_seen_and_when_they_come() -> None:
    site = a_site()
    assert notes_on_queues(site.frozen, HOW) == []
    assert all(not view.overcommits for view in queue_views(site.frozen, HOW, lives(site), site.at))
    lowered = Queue("lab/a", quotas=(Quota(CARDS, nominal=1000, borrowing=1000),))
    how = settings(queues=(*QUEUES[::2], lowered))
    (note,) = notes_on_queues(site.frozen, how)
    assert note.startswith("queue lab/a uses 3 of cards and may have 2")
    views = {view.name: view.overcommits for view in queue_views(site.frozen, how, lives(site), site.at)}
    assert {name: len(over) for name, over in views.items()} == {"lab": 0, "lab/a": 1, "lab/b": 0}
    assert overcommits_of(site.frozen, how, "lab/a") == views["lab/a"]
    assert overcommits_of(site.frozen, Settings(), "lab/a") == ()


def test_a_pool_that_has_less_than_it_promised_is_said_to_every_queue() -> None:
    site = WorldBuilder().node("n", 4).node("m", 4).submit("j", queue="lab/b")
    assert overcommits_of(site.frozen, HOW, "lab/b") == ()
    site.lose("m")
    for name in ("lab", "lab/a", "lab/b"):
        (over,) = overcommits_of(site.frozen, HOW, name)
        assert (over.queue, over.excess, over.amount, over.most) == ("", Excess.PROMISED, 6000, 4000)
    assert notes_on_queues(site.frozen, HOW) == [], "documents in force say that themselves"


def test_what_becomes_of_jobs_whose_queue_is_gone_is_said() -> None:
    site = a_site()
    assert lost_queues(site.frozen, HOW) == []
    assert lost_queues(site.frozen, Settings()) == [], "without queues nothing counts anywhere"
    (said,) = lost_queues(site.frozen, settings(queues=QUEUES[::2]))
    assert said.startswith("queue lab/a is in no document any more")
    assert said.endswith("count in queue lab")
    others = lost_queues(site.frozen, settings(queues=(Queue("other"),)))
    assert [one.endswith("count in the pool, behind all quotas") for one in others] == [True, True]
