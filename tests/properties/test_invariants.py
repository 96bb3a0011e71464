"""What holds whatever happens: the invariants of the design over random histories of a site."""

from __future__ import annotations

from random import Random

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aliquot.core.events import (
    Ended,
    Event,
    Granted,
    JobCancelled,
    JobSubmitted,
    Moved,
    NodeDrained,
    NodeJoined,
    Outcome,
    Tidied,
)
from aliquot.core.ids import JobId
from aliquot.core.records import Frozen
from aliquot.core.world import World
from tests.support.build import a_job, a_request
from tests.support.histories import MIX, History
from tests.support.invariants import broken_rules
from tests.support.same import chunks_as_bytes, excess, fingerprint, rows_of, versions_of

FEW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
RANDOMS = st.randoms(use_true_random=False)
STEPS = st.integers(10, 60)
DECODER = msgspec.json.Decoder(Event)


def by_wire(events: list[Event]) -> list[Event]:
    """The events as a journal on disk would give them back."""
    return [DECODER.decode(msgspec.json.encode(event)) for event in events]


@FEW
@given(RANDOMS, STEPS)
def test_columns_are_what_the_grants_leave_and_grants_have_owners(random: Random, steps: int) -> None:
    """I1, I2, I5 and the queue, after every step."""
    history = History(random)
    for _ in range(steps):
        history.step()
        assert broken_rules(history.world.freeze()) == []


@FEW
@given(RANDOMS, STEPS)
def test_what_commit_accepts_puts_nothing_over_its_capacity(random: Random, steps: int) -> None:
    """I1 and I9: plans may be stale; only what the site itself did leaves more booked than there is."""
    history = History(random)
    for _ in range(steps):
        before, told = excess(history.world.freeze()), len(history.events)
        history.step()
        if all(isinstance(event, (Granted, Moved, Tidied)) for event in history.events[told:]):
            after = excess(history.world.freeze())
            assert all(over <= before.get(place, 0) for place, over in after.items())


@FEW
@given(RANDOMS, STEPS, st.integers(0, 200))
def test_a_world_rebuilt_from_its_journal_is_the_world_wherever_it_is_cut(
    random: Random, steps: int, cut: int
) -> None:
    """I3, to the last byte and to the steps still owed; the journal has been JSON in between."""
    history = History(random).run(steps)
    cut = min(cut, len(history.events))
    rebuilt = World(window=MIX.mix_window)
    rebuilt.apply_all(by_wire(history.events[:cut]))
    same_until_now(rebuilt, history.rebuilt(cut))
    rebuilt.apply_all(by_wire(history.events[cut:]))
    same_until_now(rebuilt, history.world)


def same_until_now(a: World, b: World) -> None:
    one, other = a.freeze(), b.freeze()
    assert fingerprint(one) == fingerprint(other)
    assert (one.version, versions_of(one)) == (other.version, versions_of(other))
    assert chunks_as_bytes(one.chunks) == chunks_as_bytes(other.chunks)
    assert a.outstanding() == b.outstanding()
    assert a.recent_demand() == b.recent_demand()


@FEW
@given(RANDOMS, STEPS)
def test_news_told_twice_is_told_once(random: Random, steps: int) -> None:
    """I2: every event, repeated at once, changes nothing: no column, no queue, nothing owed."""
    history = History(random).run(steps)
    world = World(window=MIX.mix_window)
    for event in history.events:
        world.apply(event)
        once, owed, demand = fingerprint(world.freeze()), world.outstanding(), world.recent_demand()
        world.apply(event)
        assert fingerprint(world.freeze()) == once, event
        assert (world.outstanding(), world.recent_demand()) == (owed, demand)


@FEW
@given(RANDOMS, STEPS)
def test_when_all_is_over_nothing_is_booked_anywhere(random: Random, steps: int) -> None:
    """I2: no grant outlives its owner, no piece is lost or won on the way."""
    history = History(random).run(steps)
    for job in sorted(history.world.jobs):
        attempt = history.world.jobs[job].attempt
        history.record(JobCancelled(history.at, job), Ended(history.at, job, attempt, Outcome.FAILED))
    for node_id in history.world.node_at:
        node = history.world.nodes[node_id].node
        history.record(NodeDrained(history.at, node_id, False), NodeJoined(history.at, node))
    left = history.world.freeze()
    assert (dict(left.jobs), dict(left.grants), left.pending) == ({}, {}, ())
    assert history.world.outstanding() == []
    assert left.strained == frozenset()
    for have, want in zip(rows_of(left), rows_of(empty_site(left)), strict=True):
        assert {**have, "kind": 0} == {**want, "kind": 0}, "kinds are numbered as they come"
    assert all(row["usable"] == row["idle"] for row in rows_of(left))


def empty_site(world: Frozen) -> Frozen:
    """The same machines, in the same order, where nothing has ever happened."""
    fresh = World()
    fresh.apply_all(NodeJoined(0, world.nodes[node].node) for node in world.node_at)
    fresh.ledger.widen(world.cards)
    return fresh.freeze()


@FEW
@given(RANDOMS, STEPS)
def test_a_snapshot_never_changes(random: Random, steps: int) -> None:
    """I8, seen from outside: planning on a snapshot and folding on are independent."""
    history = History(random)
    kept: list[tuple[Frozen, object, list[bytes]]] = []
    for step in range(steps):
        history.step()
        if step % 10 == 0:
            seen = history.world.freeze()
            kept.append((seen, fingerprint(seen), chunks_as_bytes(seen.chunks)))
    for seen, was, columns in kept:
        assert fingerprint(seen) == was
        assert chunks_as_bytes(seen.chunks) == columns


@FEW
@given(RANDOMS, STEPS)
def test_what_nobody_knows_stays_unknown(random: Random, steps: int) -> None:
    """I6: where a node's NUMA nodes are unknown nothing is booked on them, and None survives the journal."""
    history = History(random).run(steps)
    world = history.world.freeze()
    for held in world.grants.values():
        for grant in held:
            record = world.nodes[grant.placement.node]
            known_then = any(
                isinstance(event, NodeJoined) and event.node.id == record.node.id and event.node.numa
                for event in history.events
            )
            assert known_then or grant.placement.numa == ()
    for event, again in zip(history.events, by_wire(history.events), strict=True):
        assert event == again
        assert msgspec.to_builtins(event) == msgspec.to_builtins(again)


@FEW
@given(RANDOMS, STEPS)
def test_an_attempt_is_granted_once_and_ends_once(random: Random, steps: int) -> None:
    """No intent is carried out twice with a second effect: attempts of a job follow each other."""
    history = History(random).run(steps)
    granted: dict[JobId, list[int]] = {}
    for event in history.events:
        if isinstance(event, Granted):
            granted.setdefault(event.job, []).append(event.attempt)
    for job, attempts in granted.items():
        assert attempts == list(range(1, len(attempts) + 1)), job


def test_the_histories_are_worth_their_name() -> None:
    """Random histories do reach what they are for: grants, moves, strain, orphans, excess, refusals."""
    seen: set[str] = set()
    for seed in range(20):
        history = History(Random(seed))
        for _ in range(80):
            history.step()
            world = history.world.freeze()
            seen |= {"strained"} if world.strained else set()
            seen |= {"excess"} if excess(world) else set()
            seen |= {"shared"} if world.company else set()
            seen |= {grant.state.value for held in world.grants.values() for grant in held}
        seen |= {type(event).__name__ for event in history.events}
    events = {kind.__name__ for kind in Event.__args__}
    assert seen >= events | {"strained", "excess", "shared", "orphaned", "assumed", "running", "terminating"}


def test_none_and_zero_are_two_things_on_the_wire() -> None:
    job = a_job("j", a_request(1, memory=5))
    unsaid = JobSubmitted(0, job)
    said = JobSubmitted(0, msgspec.structs.replace(job, estimate_ms=0))
    first, second = by_wire([unsaid, said])
    assert isinstance(first, JobSubmitted)
    assert isinstance(second, JobSubmitted)
    assert (first.job.estimate_ms, second.job.estimate_ms) == (None, 0)
    assert first.job.members[0].ask.compute_milli is None
