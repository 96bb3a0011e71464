"""One pass over the waiting jobs: the plan in the making. `planner` says what its numbers mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from aliquot.core.again import Again
from aliquot.core.charging import Flavour
from aliquot.core.closing import Closing
from aliquot.core.grants import Seat
from aliquot.core.growing import Growth
from aliquot.core.hopeless import Hopeless
from aliquot.core.idling import judge_idle
from aliquot.core.ids import JobId
from aliquot.core.jobs import Job
from aliquot.core.joining import Joining, with_guests
from aliquot.core.keeping import KEPT_FOR_MS, Keeper
from aliquot.core.memo import Memo
from aliquot.core.moving import Mover
from aliquot.core.readiness import alike, hold_back, may_refuse_alike
from aliquot.core.records import Frozen, JobRecord
from aliquot.core.restarting import Restarts
from aliquot.core.searching import Searches
from aliquot.core.seating import place_of, seat_all, seat_scattered
from aliquot.core.settings import Settings
from aliquot.core.shifting import Shifting
from aliquot.core.siting import Desk, Seated
from aliquot.core.spotting import Spotting
from aliquot.core.standing import is_overdue
from aliquot.core.steps import Evict, Gate, Lack, Place, Plan, Reserve, Resize, Step, Wait, Warn, Withdraw
from aliquot.core.stretching import give_way, load_of, rested_ms, seat_elastic, seat_late, stretch
from aliquot.core.turns import TreeTurns, Turns

STRETCHED_FOR = 16
"""Waiting jobs that elastic ones may be narrowed for in one plan."""


class Pass:
    """Turns are given one after the other; each leaves its steps."""

    def __init__(
        self,
        world: Frozen,
        settings: Settings,
        now: int,
        memo: Memo,
        explained: JobId | None,
        again: type[Again] = Again,
        hopeless: type[Hopeless] = Hopeless,
    ) -> None:
        self._world, self._settings, self._now, self._explained = world, settings, now, explained
        self._desk = Desk(world, settings, memo)
        self._mover = Mover(self._desk)
        self._turns: Turns = memo.standing.turns(world, settings, now)
        self._keeper = Keeper(self._desk, now)
        self._again = again(self._desk, self._keeper, self._turns, explained)
        self._closing = Closing(self._desk, now)
        self._shifting = Shifting(self._desk, self._mover, self._closing, now)
        standing = self._turns.standing if isinstance(self._turns, TreeTurns) else None
        self._spotting = Spotting(world, settings.spot_cap, now)
        self._growth = Growth(world, standing, self._spotting, self._turns.budgets)
        self._restarts = Restarts(self._desk, self._keeper, self._closing, now, self._growth)
        self._searches = Searches(self._desk, standing, now)
        self._joining = Joining(self._desk, now)
        search = self._searches
        turns = (self._desk, self._keeper, self._turns, now)
        self._hopeless = hopeless(*turns, search.concern, search.is_settled, explained)
        self._refused: set[tuple[object, ...]] = set()  # what no job can start with in this pass
        self._changed: set[JobId] = set()
        self._blocked_first: list[JobRecord] = []
        self._passed: JobRecord | None = None  # the last that was told to wait for room, and nothing else
        self._arrays: dict[str, int] = {}
        self._steps: list[Step] = []
        self._wake: int | None = None

    def run(self) -> Plan:
        """The plan."""
        self._steps.extend(self._keeper.expired())
        self._stop_closed_out()
        # 1. in the order of the queues
        while (record := self._turns.first()) is not None:
            # 2. held back
            job = record.job
            free = not (record.waits_for or record.not_before_ms or job.array or record.doomed)
            held = None if free else hold_back(record, self._world, self._now, self._arrays)
            if record.resizing is not None and self._keeper.is_firm(job.id):
                self._claim(record)
            elif held is not None:
                self._hold_back(record, held)
            elif self._refused and alike(record.job) in self._refused and not self._turns.is_closed:
                self._steps.append(Wait(record.job.id, Gate.FIT))
                self._turns.leave(record)
            elif self._turns.is_closed:
                self._steps.append(Wait(record.job.id, Gate.ORDER))
                self._turns.pass_over(record)
            elif self._keeper.is_firm(record.job.id):
                self._claim(record)
            else:
                self._turn(record)
        self._turns.restore()  # the line is kept from pass to pass, and should not hold on to this one
        self._closing.shut_all()
        self._steps.extend(self._keeper.lapsed())
        self._judge_idle()
        # 9. elastic jobs
        late = (self._blocked_first, self._start_late)
        shared = self._restarts.change(
            lambda is_fixed: stretch(self._desk, self._now, *late, is_fixed, self._growth), self._is_stopped
        )
        self._steps.extend(shared)
        # 10. tidy
        if self._closing.is_empty:
            self._steps.extend(self._mover.tidy())
        self._steps.extend(self._searches.steps())
        self._wake_for_time()
        return Plan(self._world.version, tuple(self._steps), self._wake)

    def _stop_closed_out(self) -> None:
        """Who is where a window has begun, or has no money left this month, is stopped if that says so."""
        steps = self._closing.evictions()
        stopped = {step.job for step in steps}
        if self._turns.budgets is not None:
            steps += [step for step in self._turns.budgets.evictions() if step.job not in stopped]
        self._steps.extend(steps)
        self._bar(step.job for step in steps)

    def _wake_for_time(self) -> None:
        """Look again when something is due, or may be judged anew, though nothing happens."""
        self._note_wake(None if self._turns.budgets is None else self._turns.budgets.spent_ms())
        self._note_wake(self._closing.wake_ms(waits=bool(self._world.pending)))
        self._note_wake(self._joining.again_ms(self._steps))
        self._note_wake(self._searches.wake_ms())
        self._note_wake(self._spotting.again_ms)
        self._note_wake(self._growth.again_ms)
        self._note_wake(rested_ms(self._world, self._settings.elastic, self._now))

    def _judge_idle(self) -> None:
        judged = judge_idle(self._world, self._settings.idling, self._now, self._is_stopped)
        self._steps.extend(judged.steps)
        self._bar(step.job for step in judged.steps if not isinstance(step, Warn))
        self._note_wake(judged.wake_ms)

    def _turn(self, record: JobRecord) -> None:
        # 3. quota
        flavour = self._turns.flavour(record)
        if isinstance(flavour, Lack):
            self._lack(record, flavour)
            return
        capped = self._spotting.hold_back(record.job)
        if capped is not None:
            self._steps.append(capped)
            self._turns.leave(record)
            return
        ways = (flavour, *self._turns.other_flavours(record, flavour))
        key = None if self._searches.may(record) else self._again.key(record, ways)
        if key is not None and self._again.is_refused(key):
            self._steps.append(Wait(record.job.id, Gate.FIT, unsearched=self._is_put_off(record)))
            self._turns.leave(record)
            return
        before = self._again.state
        self._try(record, ways)
        if key is not None and self._passed is record and self._again.state == before:
            self._again.refuse(record, ways, key)

    def _try(self, record: JobRecord, flavours: Sequence[Flavour]) -> None:
        # 4. placed whole
        ways = [(one, self._growth.within(record, one.model)) for one in flavours]
        (_, job), *others = ways
        if self._closing.is_total(record):
            self._blocked(record, job)
            return
        if any(self._place(record, *way, moves=not others) for way in ways):
            return
        if others and any(self._place(record, *way, moves=True) for way in ways):
            return
        # 6. room is made
        if not any(self._make_room(record, *way) for way in ways):
            self._blocked(record, job)

    def _place(self, record: JobRecord, flavour: Flavour, job: Job, *, moves: bool) -> bool:
        """Whether it starts on what is free, or what `moves` make free."""
        self._closing.shut_for(record)
        seated = self._site(record, job, moves=moves)
        if seated is None:
            # 5. on what is kept for others
            moves = moves and self._closing.is_empty
            seated = self._keeper.try_open(record, lambda: self._site(record, job, moves=moves))
        if seated is not None:
            self._start(record, flavour, seated)
        return seated is not None

    def _make_room(self, record: JobRecord, flavour: Flavour, job: Job) -> bool:
        return (
            self._join(record, flavour, job)
            or self._narrow(record, flavour, job)
            or self._clear(record, flavour)
        )

    def _site(self, record: JobRecord, job: Job, *, moves: bool) -> list[Seated] | None:
        if job.elastic is not None:
            return seat_elastic(self._desk, job, load_of(self._desk))
        seated = seat_all(self._desk, job, explained=record.job.id == self._explained)
        if seated is not None:
            return seated
        shifted = self._shifting.seats(record, job, self._is_stopped) if moves else None
        if shifted is not None:
            self._bar(move.job for move in shifted.moves)
            self._steps.extend(shifted.moves)
            if shifted.gives_back:
                self._hopeless.renew()
            return shifted.seats
        if self._settings.scatter and job.scatter and len(job.members) == 1:
            return seat_scattered(self._desk, job)
        return None

    def _join(self, record: JobRecord, flavour: Flavour, job: Job) -> bool:
        """Whether it goes to the cards of others, who go on at the speed that leaves them."""

        def is_fixed(host: JobId) -> bool:
            return self._is_stopped(host) or self._closing.covers(record, host)

        joined = self._joining.join(record, job, self._steps, is_fixed)
        if joined is None:
            return False
        self._begin(record, flavour, joined.place, joined.seats)
        self._bar(joined.hosts)
        return True

    def _start(self, record: JobRecord, flavour: Flavour, seated: list[Seated]) -> None:
        seats = [seat.seat for seat in seated]
        self._begin(record, flavour, place_of(self._desk, record, seated), seats)

    def _begin(self, record: JobRecord, flavour: Flavour, place: Place, seats: Sequence[Seat]) -> None:
        self._steps.append(place)
        self._mover.count_placed()
        started, exact = self._growth.exact(record, flavour, place.placements)
        self._turns.admit(started, exact)
        if self._settings.backfill is not None or not self._keeper.is_empty:
            self._keeper.note_started(started, seats)
        self._spotting.start(started.job)
        if record.job.array is not None:
            name = record.job.array.name
            self._arrays[name] = self._arrays.get(name, 0) + 1

    def _narrow(self, record: JobRecord, flavour: Flavour, job: Job) -> bool:
        """Whether elastic jobs give way, before anybody is stopped."""

        def place(_: JobRecord) -> Step | None:
            seated = seat_late(self._desk, job)
            return None if seated is None else place_of(self._desk, record, seated)

        def narrower(is_fixed: Callable[[JobId], bool]) -> list[Step]:
            return give_way(self._desk, self._now, record, place, is_fixed, self._growth)

        steps = self._restarts.change(narrower, self._is_stopped, record.job.id)
        if not steps:
            return False
        self._steps.extend(steps)
        self._bar(step.job for step in steps if isinstance(step, Resize))
        places = [step.placements for step in steps if isinstance(step, Place | Reserve)]
        started, exact = self._growth.exact(record, flavour, places[0])
        starts = any(isinstance(step, Place) for step in steps)
        (self._turns.admit if starts else self._turns.promise)(started, exact)
        self._spotting.start(started.job)
        return True

    def _start_late(self, record: JobRecord) -> Step | None:
        """Place a job that had its turn already, now that others are narrower."""
        flavour = self._turns.flavour(record)
        if isinstance(flavour, Lack) or self._spotting.hold_back(record.job) is not None:
            return None
        seated = seat_late(self._desk, self._growth.within(record, flavour.model))
        if seated is None:
            return None
        place = place_of(self._desk, record, seated)
        started, exact = self._growth.exact(record, flavour, place.placements)
        self._turns.charge(started, exact)
        self._spotting.start(started.job)
        return place

    def _is_stopped(self, job: JobId) -> bool:
        """Whether a running job is stopped by this plan, or was changed by it already."""
        return job in self._changed or self._searches.is_taken(job)

    def _bar(self, moved: Iterable[JobId]) -> None:
        """What was moved in this plan is neither stopped nor changed again."""
        jobs = tuple(moved)
        self._changed.update(jobs)
        self._searches.bar(jobs)

    def _claim(self, record: JobRecord) -> None:
        """Start on what was cleared for the job, or wait for those who still hold it."""
        self._closing.shut_for(record)
        seats = self._keeper.try_kept(record)
        if seats is not None:
            self._start(record, self._any_flavour(record), [Seated(seat, 0.0, ()) for seat in seats])
        elif record.resizing is None and self._keeper.is_ending(record):
            self._turns.promise(record, self._any_flavour(record))
            self._steps.append(Wait(record.job.id, Gate.RELEASE))
        else:
            self._steps.append(self._keeper.drop(record.job.id))
            self._hopeless.renew()
            self._turn(record)

    def _any_flavour(self, record: JobRecord) -> Flavour:
        """What was cleared was weighed against quota then; it is not weighed again."""
        flavour = self._turns.flavour(record)
        return self._turns.first_flavour(record) if isinstance(flavour, Lack) else flavour

    def _is_put_off(self, record: JobRecord) -> bool:
        """Whether it is looked for others to stop for it in a later plan, and not in this one."""
        if not self._searches.puts_off(record):
            return False
        self._searches.put_off(record)
        return True

    def _clear(self, record: JobRecord, flavour: Flavour | None) -> bool:
        """Whether others are stopped for the job; what they hold is kept for it from now on."""
        rules = self._settings.preemption
        if rules is None or not self._searches.may(record):
            return False
        self._closing.shut_for(record)
        cleared = self._searches.clear(record, flavour)
        if cleared is None or not cleared.victims:
            return False
        seats = tuple(seat.seat for seat in cleared.seats)
        ends = self._now + rules.grace_ms
        kept = self._keeper.keep_firmly(record, seats, ends, ends + KEPT_FOR_MS)
        self._steps.append(replace(kept, sets=cleared.alternatives, next_cost_ms=cleared.next_cost))
        ended = [step for step in cleared.victims if isinstance(step, Evict)]
        narrowed = [step for step in cleared.victims if isinstance(step, Resize)]
        victims = with_guests(self._world, ended, rules, self._now, self._is_stopped)
        self._bar(victim.job for victim in victims[len(ended) :])
        self._steps.extend(narrowed)
        self._steps.extend(victims)
        others = (*(step.job for step in narrowed), *(step.job for step in victims))
        self._steps.append(Wait(record.job.id, Gate.RELEASE, others=others))
        self._note_wake(ends + KEPT_FOR_MS)
        self._turns.promise(record, flavour or self._turns.first_flavour(record))
        return True

    def _lack(self, record: JobRecord, lack: Lack) -> None:
        """Quota is used up: taken back from who borrowed it, or waited for."""
        rules = self._settings.preemption
        if lack.renews_ms is not None:
            self._note_wake(lack.again_ms)  # money comes back to nobody before that
        across = rules is None or rules.across_queues
        searched = put_off = False
        if lack.renews_ms is None and not across and not self._searches.is_ruled_out(record):
            if self._clear(record, None):
                return
            searched, put_off = True, self._is_put_off(record)
        self._steps.append(Wait(record.job.id, Gate.QUOTA, lack=lack, unsearched=put_off))
        if self._turns.is_strict(record):
            self._turns.close(record)
        elif lack.renews_ms is not None and lack.have:
            self._turns.pass_over(record)  # one like it may be shorter, and cost less
        elif lack.renews_ms is not None or not self._turns.hold(record):
            is_told_apart = searched or lack.renews_ms is not None or self._explained is not None
            (self._turns.pass_over_alike if is_told_apart else self._turns.pass_over_charged)(record)

    def _blocked(self, record: JobRecord, job: Job) -> None:
        """7. a reservation, or 8. the wait."""
        fenced = self._closing.blame(record, lambda: seat_all(self._desk, job))
        self._closing.open()
        if self._settings.backfill is not None:
            overdue = is_overdue(record, self._settings, self._now)
            step = self._keeper.reserve(record, job.members, overdue=overdue)
            if step is not None:
                self._steps.append(step)
        if len(self._blocked_first) < STRETCHED_FOR:
            self._blocked_first.append(record)
        gate = Gate.RESERVATION if fenced else Gate.FIT
        until = self._keeper.shadow_of(record.job.id)
        put_off = not fenced and self._is_put_off(record)
        self._steps.append(Wait(record.job.id, gate, until_ms=until, fenced=fenced, unsearched=put_off))
        if self._turns.is_strict(record):
            self._turns.close(record)
        elif not self._turns.hold(record):
            nothing_kept = self._keeper.is_empty and self._closing.is_empty
            if job is record.job and nothing_kept and may_refuse_alike(job, self._settings):
                self._refused.add(alike(record.job))
                self._turns.pass_over_alike(record)
            else:
                if job is record.job:
                    self._hopeless.note(record)
                self._turns.pass_over(record)
                self._passed = record

    def _hold_back(self, record: JobRecord, wait: Wait | Withdraw) -> None:
        self._steps.append(wait)
        if isinstance(wait, Wait) and wait.gate is Gate.BACKOFF:
            self._note_wake(record.not_before_ms)
        self._turns.pass_over(record)

    def _note_wake(self, at: int | None) -> None:
        if at is not None:
            self._wake = at if self._wake is None else min(self._wake, at)
