"""What may be asked over HTTP: one row per route, from which both the answers and the description come."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from aliquot.control.card_views import CardView
from aliquot.control.errors import UnavailableError
from aliquot.control.reservation_views import Reservation, ReservationView
from aliquot.control.service import Service
from aliquot.control.views import (
    Accepted,
    Caller,
    Configuration,
    Done,
    InForce,
    JobDetail,
    JobSummary,
    LiveExplanation,
    QueueView,
    Site,
    Submission,
)
from aliquot.core.errors import AliquotError
from aliquot.core.steps import Never
from aliquot.interfaces.api.bell import Bell
from aliquot.interfaces.api.output import Chunk, read_chunk

MOST_BODY: Final = 4 << 20  # bytes of a question
MOST_BATCH: Final = 64 << 20  # each job of a batch may have an environment of its own
PATIENCE_S: Final = 1.0  # of a look ahead for whoever submits
IN_FORCE_S: Final = 10.0  # of whoever reserves, until the loop has taken it up
POLL_S: Final = 0.05  # how often a followed file is looked at
_Patience = Annotated[float, msgspec.Meta(ge=0, le=60, description="Seconds to wait for it.")]


class Nothing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """No parameters."""


class Listing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`over`: those that are over too. `mine`: the caller's only. `limit`: the newest so many.

    `fold`: one row for each array. `array`: only the jobs of that one.
    """

    over: bool = True
    mine: bool = False
    limit: Annotated[int, msgspec.Meta(ge=1)] | None = None
    fold: bool = False
    array: str = ""


class Submitting(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`patience`: how long the answer may wait for a look ahead, where the job does not start at once."""

    patience: _Patience = PATIENCE_S


class SubmittingAll(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`patience`: the same for all of them together; absent: only ids are answered, as quickly as can be."""

    patience: _Patience | None = None


class Looking(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """With `phase`, the answer comes once the job's phase is another, or `timeout` seconds have passed."""

    phase: str | None = None
    timeout: _Patience = 0.0


class Reading(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """From `offset` on; `file` as the last answer named it; `timeout`: how long to wait for something."""

    attempt: Annotated[int, msgspec.Meta(ge=1)] | None = None
    member: Annotated[int, msgspec.Meta(ge=0)] = 0
    offset: Annotated[int, msgspec.Meta(ge=0)] = 0
    file: Annotated[int, msgspec.Meta(ge=0)] = 0
    timeout: _Patience = 0.0


class Cancelling(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`now`: what runs is killed at once, and has no grace; also where its end is under way."""

    now: bool = False


class Signal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A signal by number."""

    signal: Annotated[int, msgspec.Meta(ge=1, le=64)]


class Drain(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether the node is to take no new work."""

    drained: bool = True


class Call(NamedTuple):
    """One request, read and checked."""

    caller: Caller
    path: Mapping[str, str]
    query: Any
    body: Any


class Desk(NamedTuple):
    """What answers are made from."""

    service: Service
    bell: Bell
    site: Site


class Route(NamedTuple):
    """`gives` is the type of the answer; bytes are an output file's. `most`: bytes of a body."""

    method: str
    path: str
    answer: Callable[[Desk, Call], Awaitable[object]]
    says: str
    gives: Any
    query: type[msgspec.Struct] = Nothing
    body: Any = None  # a type
    status: int = 200
    most: int = MOST_BODY


async def _site(desk: Desk, call: Call) -> Site:
    notes = (*desk.site.notes, *desk.service.notes)
    return replace(desk.site, policy=desk.service.rules.policy, notes=notes)


async def _submit(desk: Desk, call: Call) -> Accepted:
    query: Submitting = call.query
    job = await asyncio.wrap_future(desk.service.submit(call.caller, call.body))
    await _foresee(desk, job, query.patience)
    return await _told(desk, desk.service.accepted(job))


async def _submit_all(desk: Desk, call: Call) -> list[Accepted]:
    query: SubmittingAll = call.query
    answers = desk.service.submit_all(call.caller, call.body)
    # most are done by the time that the first is
    jobs = [one.result() if one.done() else await asyncio.wrap_future(one) for one in answers]
    if query.patience is None:
        return [await _told(desk, Accepted(job)) for job in jobs]
    end = asyncio.get_running_loop().time() + query.patience
    for job in jobs:
        await _foresee(desk, job, end - asyncio.get_running_loop().time())
    return [await _told(desk, desk.service.accepted(job)) for job in jobs]


async def _told(desk: Desk, accepted: Accepted) -> Accepted:
    """With what keeps it from ever starting, if anything does."""
    return replace(accepted, never=await _never(desk, accepted.id))


async def _never(desk: Desk, job: str) -> Never | None:
    """What keeps it from ever starting; unknown where we stop meanwhile, which is no error of who asks."""
    with contextlib.suppress(AliquotError):
        return await asyncio.wrap_future(desk.service.never(job))
    return None


async def _foresee(desk: Desk, job: str, patience: float) -> None:
    """Wait until a look ahead has seen `job`, where it waits."""
    if patience > 0 and not desk.service.is_foreseen(job):
        desk.service.look_ahead()
        await desk.bell.until(lambda: desk.service.is_foreseen(job), patience)


async def _jobs(desk: Desk, call: Call) -> list[JobSummary]:
    query: Listing = call.query
    owner = call.caller.uid if query.mine else None
    return desk.service.jobs(
        over=query.over, owner=owner, most=query.limit, folded=query.fold, array=query.array
    )


async def _job(desk: Desk, call: Call) -> JobDetail:
    query: Looking = call.query
    name = call.path["job"]
    if query.phase is not None:
        await desk.bell.until(lambda: desk.service.life(name).phase.value != query.phase, query.timeout)
    detail = desk.service.job(call.caller, name)
    return replace(detail, never=await _never(desk, name)) if detail.position is not None else detail


async def _cancel(desk: Desk, call: Call) -> Done:
    query: Cancelling = call.query
    await asyncio.wrap_future(desk.service.cancel(call.caller, call.path["job"], at_once=query.now))
    return Done()


async def _signal(desk: Desk, call: Call) -> Done:
    body: Signal = call.body
    reached = await asyncio.wrap_future(desk.service.signal(call.caller, call.path["job"], body.signal))
    return Done(reached)


async def _output(desk: Desk, call: Call) -> Chunk:
    query: Reading = call.query
    name, end = call.path["job"], asyncio.get_running_loop().time() + query.timeout
    while True:
        # asked before the file is read: what is over then writes no more
        is_over = desk.service.life(name).over_ms is not None
        path = desk.service.output(call.caller, name, query.attempt, query.member)
        owner = desk.service.life(name).owner
        chunk = read_chunk(path, query.offset, query.file, owner if desk.service.parts.uid == 0 else None)
        left = end - asyncio.get_running_loop().time()
        if chunk.body or is_over or left <= 0 or desk.bell.is_closed:
            return chunk._replace(is_over=is_over and chunk.is_end)
        if path is None:
            await desk.bell.wait(left)
        else:
            await asyncio.sleep(min(left, POLL_S))


async def _explain(desk: Desk, call: Call) -> LiveExplanation:
    job = call.path["job"]
    await _foresee(desk, job, PATIENCE_S)
    return await asyncio.wrap_future(desk.service.explain(job))


async def _gpus(desk: Desk, call: Call) -> list[CardView]:
    return desk.service.cards()


async def _queues(desk: Desk, call: Call) -> list[QueueView]:
    return desk.service.queues()


async def _rules(desk: Desk, call: Call) -> InForce:
    desk.service.must_administer(call.caller)  # documents may say more than everyone should know
    return desk.service.in_force()


async def _apply(desk: Desk, call: Call) -> InForce:
    return await asyncio.wrap_future(await asyncio.to_thread(desk.service.apply, call.caller, call.body))


async def _reservations(desk: Desk, call: Call) -> list[ReservationView]:
    return desk.service.reservations()


async def _reserve(desk: Desk, call: Call) -> ReservationView:
    asked: Reservation = call.body
    await asyncio.wrap_future(desk.service.reserve(call.caller, asked))

    def found() -> ReservationView | None:
        return next((one for one in desk.service.reservations() if one.name == asked.name), None)

    await desk.bell.until(lambda: found() is not None, IN_FORCE_S)
    made = found()
    if made is None:
        raise UnavailableError(
            "it is on the disk, and not in force yet; 'aliquot reservations' shows it then"
        )
    return made


async def _unreserve(desk: Desk, call: Call) -> Done:
    name = call.path["name"]
    await asyncio.wrap_future(desk.service.unreserve(call.caller, name))
    await desk.bell.until(lambda: all(one.name != name for one in desk.service.reservations()), IN_FORCE_S)
    return Done()


async def _drain(desk: Desk, call: Call) -> Done:
    body: Drain = call.body
    was_out = desk.service.is_out(call.path["node"])
    await asyncio.wrap_future(desk.service.drain(call.caller, call.path["node"], drained=body.drained))
    return Done(was_out)


ROUTES: Final = (
    Route("GET", "/v1", _site, "What serves here.", Site),
    Route(
        "POST", "/v1/jobs", _submit, "Submit a job; it is on the disk when this is answered.", Accepted,
        query=Submitting, body=Submission, status=201,
    ),
    Route(
        "POST", "/v1/batches", _submit_all,
        "Submit many jobs, all or none; `after` and `afterOk` may name an earlier one.", list[Accepted],
        query=SubmittingAll, body=list[Submission], status=201, most=MOST_BATCH,
    ),
    Route("GET", "/v1/jobs", _jobs, "Jobs in order of submission.", list[JobSummary], Listing),
    Route("GET", "/v1/jobs/{job}", _job, "One job, now or once its phase changes.", JobDetail, Looking),
    Route("POST", "/v1/jobs/{job}/cancel", _cancel, "Give a job up.", Done, Cancelling),
    Route(
        "POST", "/v1/jobs/{job}/signal", _signal, "Send a signal; done is false where nothing runs.", Done,
        body=Signal,
    ),
    Route("GET", "/v1/jobs/{job}/output", _output, "What a job has printed.", bytes, Reading),
    Route("GET", "/v1/jobs/{job}/explain", _explain, "Why a job is where it is.", LiveExplanation),
    Route("GET", "/v1/gpus", _gpus, "Cards and who holds what.", list[CardView]),
    Route("GET", "/v1/queues", _queues, "Queues, what waits and runs in them.", list[QueueView]),
    Route(
        "POST", "/v1/nodes/{node}/drain", _drain,
        "No new work for a node, or work again; of a card that is out for an error, work again.", Done,
        body=Drain,
    ),
    Route(
        "GET", "/v1/reservations", _reservations, "Cards that are closed for a time, now or later.",
        list[ReservationView],
    ),
    Route(
        "POST", "/v1/reservations", _reserve, "Close cards for a time.", ReservationView, body=Reservation,
        status=201,
    ),
    Route("DELETE", "/v1/reservations/{name}", _unreserve, "Take a reservation back.", Done),
    Route("GET", "/v1/rules", _rules, "The documents and the policy that the service goes by.", InForce),
    Route("PUT", "/v1/rules", _apply, "Go by other documents from now on.", InForce, body=Configuration),
)  # fmt: skip  # one row per route
