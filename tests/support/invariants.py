"""What holds in every world, whatever happened: rules I1, I2 and I5 as far as one snapshot shows them."""

from __future__ import annotations

from collections.abc import Iterator

from aliquot.core.grants import Grant, GrantState
from aliquot.core.lifecycle import HOLDING, Phase
from aliquot.core.records import Frozen, queue_key
from tests.support.same import excess, recounted, rows_of

STATE_IN = {
    Phase.STARTING: GrantState.ASSUMED,
    Phase.RUNNING: GrantState.RUNNING,
    Phase.STOPPING: GrantState.TERMINATING,
}


def broken_rules(world: Frozen) -> list[str]:
    """The rules that `world` breaks, in words; empty is right."""
    return [*_columns(world), *_owners(world), *_gangs(world), *_queue(world), *_residents(world)]


def _columns(world: Frozen) -> Iterator[str]:
    """I1: never negative, and always what is left by the grants; an excess makes its row strained."""
    for row, (have, want) in enumerate(zip(rows_of(world), recounted(world), strict=True)):
        if have != want:
            off = {name: (have[name], want[name]) for name in have if have[name] != want[name]}
            yield f"row {row} is not what its grants leave: (has, should have) {off}"
    for row, what, at in excess(world):
        if row not in world.strained:
            yield f"row {row} has too much {what} booked at {at} and is not strained"


def _owners(world: Frozen) -> Iterator[str]:
    """I2: a grant has one living owner, its attempt, and the state its owner's phase implies."""
    for job, held in world.grants.items():
        record = world.jobs.get(job)
        if record is None or record.phase not in HOLDING:
            yield f"grants of {job} outlive it: {record}"
            continue
        for member, grant in enumerate(held):
            if grant.id != (job, record.attempt, member):
                yield f"grant {grant.id} belongs to attempt {record.attempt} of {job}"
            orphaned = grant.state is GrantState.ORPHANED
            if not orphaned and (grant.state is not STATE_IN[record.phase] or grant.seat is None):
                yield f"grant {grant.id} is {grant.state} while its job is {record.phase}"
            if orphaned is _is_all_there(world, grant):
                yield f"grant {grant.id} is {grant.state}, its place says otherwise"


def _is_all_there(world: Frozen, grant: Grant) -> bool:
    record = world.nodes[grant.placement.node]
    return record.up and {card.uuid for card in record.node.cards} >= set(grant.placement.cards)


def _gangs(world: Frozen) -> Iterator[str]:
    """I5: who holds anything holds for every member, and who should hold does."""
    for job, record in world.jobs.items():
        held = len(world.grants.get(job, ()))
        if record.phase in HOLDING and held == 0:
            yield f"{job} is {record.phase} and holds nothing"
        if held and held < record.job.least and not record.job.scatter:
            yield f"{job} holds {held} of {record.job.least} members"


def _queue(world: Frozen) -> Iterator[str]:
    """Waiting jobs are in the queue, once, in its order, and nobody else is."""
    waiting = sorted(queue_key(record.job) for record in world.jobs.values() if record.phase is Phase.PENDING)
    if list(world.pending) != waiting:
        yield f"queue {world.pending} is not {waiting}"


def _residents(world: Frozen) -> Iterator[str]:
    """Each grant is listed on the one row it names, orphaned ones too."""
    listed = sorted((row, held) for row, all_held in world.residents.items() for held in all_held)
    named = sorted(
        (world.nodes[grant.placement.node].row, grant.id) for held in world.grants.values() for grant in held
    )
    if listed != named:
        yield f"residents {listed} are not {named}"
