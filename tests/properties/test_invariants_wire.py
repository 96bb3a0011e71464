"""Every kind of event through JSON and back, and the same bytes under every hash seed."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from aliquot.core.events import (
    CardsCrowded,
    CardsFaulty,
    Ended,
    EpochBegan,
    Event,
    Evicting,
    Granted,
    Idle,
    JobCancelled,
    JobSubmitted,
    Moved,
    NodeDrained,
    NodeJoined,
    NodeLost,
    Outcome,
    Reserved,
    Resized,
    Resizing,
    Searched,
    Started,
    StartRefused,
    Stopping,
    Tidied,
    Unreserved,
    Warned,
    WindowCancelled,
    WindowMade,
)
from aliquot.core.grants import Placement
from aliquot.core.ids import CardId, JobId
from aliquot.core.jobs import Link, Stage
from aliquot.core.slices import Vector
from aliquot.core.steps import Cause
from aliquot.core.topology.links import Link as Level
from aliquot.core.topology.wiring import Nic, assemble, pcie
from aliquot.core.windows import Inside, Window
from tests.support.build import T4, a_job, a_node, a_placement, a_request, node_id

JOB = JobId("ai/训练-1")
SLICES = a_request(2, memory=2_000, compute=90, cpu=1_500, host=4_096, traffic=800, models=("T4", "L4"))
NODE = a_node("n", 4, model=T4, numa=2, wiring=pcie(4, 2, 2), site="上海")
PLACE = Placement(
    NODE.id, (CardId("n-g1"),), Vector(90, 2_000, 90), cpu=7, host=9, numa=((0, 7, 9),), edges=((1, 800),)
)
WITH_NIC = assemble(
    2,
    (Level.SELF, Level.NV, Level.NV, Level.SELF),
    (0, 4, 4, 0),
    numa=(0, None),
    cpus=(((0, 7), (16, 23)), None),
    nics=(Nic("NIC0", "mlx5_0", (Level.PIX, Level.SYS)),),
)
ONE_OF_EACH: tuple[Event, ...] = (
    NodeJoined(0, NODE),
    NodeLost(1, NODE.id),
    NodeDrained(2, NODE.id, drained=False),
    CardsCrowded(3, NODE.id, ((CardId("n-g0"), 100, 2_000),)),
    CardsFaulty(3, NODE.id, (CardId("n-g0"), CardId("n-g3"))),
    JobSubmitted(
        4,
        msgspec.structs.replace(
            a_job(JOB, [SLICES, a_request(0, cpu=1), a_request(8, link=Link.REQUIRED)], priority=-3),
            stage=Stage.INFERENCE,
        ),
    ),
    JobCancelled(5, JOB, at_once=True),
    Granted(6, JOB, 2, (PLACE, a_placement(NODE, [0, 1]))),
    Moved(7, JOB, 2, 1, PLACE),
    Started(8, JOB, 2),
    StartRefused(9, JOB, 2, 'in use by "A"\n'),
    Stopping(10, JOB, 2),
    Evicting(10, JOB, 2, Cause.RECLAIM, JobId("k"), 30_000),
    Reserved(10, JOB, (PLACE,), 5, 9, firm=True),
    Unreserved(10, JOB),
    Resized(10, JOB, 2, (PLACE, PLACE)),
    Resizing(10, JOB, 2, (PLACE, PLACE), JobId("k"), 30_000),
    WindowMade(10, Window("w", 5, 9, "repair", (NODE.id,), (), 3, Inside(("a",)), grace_ms=30)),
    WindowCancelled(10, "w"),
    Idle(10, JOB, 2, 4),
    Warned(10, JOB, 2),
    Ended(11, JOB, 2, Outcome.LOST, unseen=True),
    EpochBegan(12, 3, 2**63 - 1, ((SLICES, 40), (a_request(8), 2))),
    Tidied(13, 10**12),
    Searched(13, (JOB, JobId("k")), over=True),
)


def test_there_is_one_of_each() -> None:
    assert {type(event) for event in ONE_OF_EACH} == set(Event.__args__)


@pytest.mark.parametrize("event", ONE_OF_EACH, ids=lambda event: type(event).__name__)
@pytest.mark.parametrize(
    ("encode", "decode"),
    [
        pytest.param(msgspec.json.encode, msgspec.json.decode, id="json"),
        pytest.param(msgspec.msgpack.encode, msgspec.msgpack.decode, id="msgpack"),
        pytest.param(msgspec.to_builtins, msgspec.convert, id="builtins"),
    ],
)
def test_an_event_comes_back_as_it_was(
    event: Event, encode: Callable[..., object], decode: Callable[..., object]
) -> None:
    again = decode(encode(event), type=Event)
    assert again == event
    assert type(again) is type(event)
    assert hash(again) == hash(event)


def test_a_wiring_comes_back_with_its_types_and_its_own_hash() -> None:
    """A hash that was written down under one seed must not be believed under another."""
    event = NodeJoined(0, a_node("n", 2, wiring=WITH_NIC))
    text = msgspec.json.decode(msgspec.json.encode(event))
    if "_hash" in text["node"]["wiring"]:
        text["node"]["wiring"]["_hash"] = 12345
    again = msgspec.json.decode(msgspec.json.encode(text), type=Event)
    assert isinstance(again, NodeJoined)
    wiring = again.node.wiring
    assert wiring is not None
    assert wiring == WITH_NIC
    assert hash(wiring) == hash(WITH_NIC)
    assert {wiring: "found"}[WITH_NIC] == "found"
    assert all(type(level) is Level for level in (*wiring.levels, *wiring.nics[0].levels))
    assert wiring.cpus == (((0, 7), (16, 23)), None)
    assert type(again.node.id) is type(node_id("n"))


STORY = """
from random import Random
from tests.support.histories import History
from tests.support.same import encoded
history = History(Random(11)).run(150)
"""
PROGRAMS = {
    "the bytes of its journal": STORY + "import msgspec\nprint(msgspec.json.encode(history.events).decode())",
    "the world after a long history": STORY
    + "print(history.accepted, len(history.events), encoded(history.world.freeze()).decode())",
    "what is owed and asked for after it": STORY
    + "print(history.world.outstanding(), history.world.recent_demand())",
    "a run in virtual time": """
from random import Random
from tests.support.runs import Run, random_scenario
from tests.support.same import encoded
import msgspec
run = Run(random_scenario(Random(3), jobs=40)).to_the_end()
print(msgspec.json.encode(run.events).decode(), encoded(run.world.freeze()).decode())
""",
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_the_same_history_gives_the_same_bytes_under_every_hash_seed(
    program: str, under_hash_seeds: Callable[..., list[bytes]]
) -> None:
    first, second = under_hash_seeds("-c", program)
    assert len(first) > 100
    assert first == second
