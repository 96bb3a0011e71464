"""Who is stopped so that a job can start: the cheapest set found of which nobody could be spared.

One member goes on one row. Rows are compared by the worst rank among their victims, then by cost in whole
minutes of a card, by how many are stopped, by cards cleared beyond need, and by how few tenants that could be
stopped are left: single cards are taken from one node until it is empty. Several members take the cheapest
clearance next, wherever it is. In the end whoever turns out to be unneeded is spared, latest taken first.

Where a quota is lacking too, those who hold it are stopped, on whatever row they are.

It is a search with bounds, and what it has found when they are reached still is a valid set; `is_bounded`
says so. Whether a set truly lets all members in is asked of the `Bench`, which seats them by the policy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

from aliquot.core.jobs import Request
from aliquot.core.placement.cells import Cells
from aliquot.core.placement.shapes import Shape
from aliquot.core.room.candidates import Candidate, rank_of, victim_cost
from aliquot.core.room.gathering import Gathering
from aliquot.core.room.ground import Ground
from aliquot.core.room.reclaim import Claim, Right
from aliquot.core.room.vacancy import Wish

__all__ = ["Bench", "Candidate", "Claim", "Found", "rank_of", "search", "victim_cost"]

TRIES: Final = 64
"""How often members are seated for real to see who can be spared, where counting places can't tell."""

EXTRA: Final = 4
"""Places taken beyond what counting asks for, where the policy's own seats need more."""


class Bench(Protocol):
    """The draft, as far as the search needs it."""

    @property
    def cells(self) -> Cells:
        """What is free now."""

    @property
    def rows(self) -> int:
        """Rows in use."""

    def wish(self, request: Request) -> Wish:
        """The shapes that may stand for `request`."""

    def pick(self, kind: int, free: int, shape: Shape) -> int:
        """The cards of `free` that `shape` would take on a node of `kind`, 0 where none will do."""

    def seats(self, victims: Sequence[Candidate]) -> bool:
        """Whether all members find seats once `victims` are gone."""


class Found(NamedTuple):
    """`victims` as they were taken. `compared` sets were worked out; `next_cost`: of the best other."""

    victims: tuple[Candidate, ...]
    compared: int
    next_cost: int | None
    is_bounded: bool

    @property
    def cost(self) -> int:
        """What is lost, in ms of one whole card."""
        return sum(one.cost for one in self.victims)


def search(
    members: Sequence[Request],
    candidates: Sequence[Candidate],
    bench: Bench,
    *,
    claim: Claim | None = None,
    most: int = 512,
    each: int | None = None,
) -> Found | None:
    """Victims among `candidates` that let all `members` start; None where no set of up to `most` was found.

    `claim` is the account of quotas, left as it is (None: there are none). `each`: members one row may take.
    """
    narrow = _helpful(candidates, claim)
    for right in (Right.RANK,) if claim is None else (Right.RANK, Right.LAST):
        found: list[Found] = []
        for chosen in (candidates,) if narrow is None else (narrow, candidates):
            allowed = [one for one in chosen if one.right <= right]
            account = None if claim is None else claim.copy(right)
            attempt = _Attempt(members, allowed, bench, account, most, each)
            if allowed and attempt.run():
                found.append(attempt.result())
        if found:
            return _best_of(found)
    return None


def _best_of(found: Sequence[Found]) -> Found:
    """The best, with what the others show."""
    best = min(found, key=_order)
    others = [other.cost for other in found if other is not best and set(other.victims) != set(best.victims)]
    costs = [cost for cost in (best.next_cost, *others) if cost is not None]
    return best._replace(
        compared=sum(one.compared for one in found),
        next_cost=min(costs, default=None),
        is_bounded=any(one.is_bounded for one in found),
    )


def _helpful(candidates: Sequence[Candidate], claim: Claim | None) -> list[Candidate] | None:
    """Those who hold the quota that is lacking; None where none is lacking, or all or nobody does."""
    if claim is None:
        return None
    if claim.is_met():
        return None
    known: dict[tuple[int, object], bool] = {}
    helpful = []
    for one in candidates:
        key = (one.leaf, one.charge)
        if key not in known:
            known[key] = claim.helps(one.leaf, one.charge)
        if known[key]:
            helpful.append(one)
    return helpful if 0 < len(helpful) < len(candidates) else None


def _order(found: Found) -> tuple[object, ...]:
    worst = max((one.rank for one in found.victims), default=())
    return (worst, found.cost, len(found.victims))


class _Attempt:
    """One search among given candidates."""

    def __init__(
        self,
        members: Sequence[Request],
        candidates: Sequence[Candidate],
        bench: Bench,
        claim: Claim | None,
        most: int,
        each: int | None,
    ) -> None:
        self._bench, self._claim, self._most = bench, claim, most
        self._ground = Ground(bench.cells, candidates, bench.pick, claim)
        self._groups = _groups(members)
        self._each = len(members) if each is None else each
        self._gatherings: list[Gathering] = []
        self._was_cut = False

    def run(self) -> bool:
        """Whether a set was found."""
        if not (self._gather() and self._meet_quota()):
            return False
        if len(self._groups) == 1:
            self._spare(self._counts)
        if not self._seat_truly():
            return False
        return self._claim is None or not self._would_return(self._claim)

    def result(self) -> Found:
        """The set, once `run` has found one."""
        compared = sum(gathering.compared for gathering in self._gatherings)
        next_cost = self._gatherings[0].rival if len(self._gatherings) == 1 else None
        cut = self._was_cut or self._ground.was_cut or any(one.was_cut for one in self._gatherings)
        return Found(tuple(self._victims()), max(compared, 1), next_cost, cut)

    def _victims(self) -> list[Candidate]:
        return [self._ground.candidates[at] for at in self._ground.taken]

    def _gather(self) -> bool:
        """Places for all members, the largest first."""
        for at, (request, count) in enumerate(self._groups):
            gathering = Gathering(
                self._ground, self._bench.rows, self._bench.wish(request), count, self._each
            )
            self._gatherings.append(gathering)
            if not gathering.run(self._most):
                return False
            if at + 1 < len(self._groups):
                gathering.settle()
        return True

    def _meet_quota(self) -> bool:
        """Stop further jobs, on whatever row, until the quota allows the start."""
        claim, ground = self._claim, self._ground
        if claim is None or claim.is_met():
            return True

        def place(at: int) -> tuple[object, ...]:
            one = ground.candidates[at]
            given = max(1, sum(amount for _, amount in one.charge))
            return (one.rank, one.cost * 1_000_000 // given, -one.submitted[0], -one.submitted[1], one.job)

        for at in sorted(range(len(ground.candidates)), key=place):
            one = ground.candidates[at]
            if at in ground.taken or not claim.helps(one.leaf, one.charge) or ground.take([at]) is not None:
                continue
            for gathering in self._gatherings:
                gathering.recount(at)
            if claim.is_met():
                return len(ground.taken) <= self._most
        return False

    def _spare(self, is_enough: Callable[[], bool], tries: int | None = None) -> None:
        """Spare whoever is not needed, latest taken first; with `tries` at most so many are asked about."""
        for number, at in enumerate(reversed(list(self._ground.taken))):
            if number == tries:
                self._was_cut = True
                return
            self._ground.spare(at)
            self._recount(at)
            if not is_enough():
                self._ground.restop(at)
                self._recount(at)

    def _counts(self) -> bool:
        return self._gatherings[0].is_done and (self._claim is None or self._claim.is_met())

    def _seats(self) -> bool:
        return (self._claim is None or self._claim.is_met()) and self._bench.seats(self._victims())

    def _recount(self, at: int) -> None:
        for gathering in self._gatherings:
            gathering.recount(at)

    def _seat_truly(self) -> bool:
        """Seat the members by the policy; where counting promised too much, clear a little more."""
        seated = self._bench.seats(self._victims())
        exact = seated and len(self._groups) == 1
        for _ in range(EXTRA):
            if seated:
                break
            if not all(gathering.more(self._most) for gathering in self._gatherings):
                return False
            seated = self._bench.seats(self._victims())
        if seated and not exact:
            self._spare(self._seats, TRIES)
        return seated

    def _would_return(self, claim: Claim) -> bool:
        """Whether a victim could take back what it lost: then it would go on for ever."""
        asked = {(one.leaf, one.charge) for one in self._victims() if one.right is not Right.SPOT}
        return any(claim.returns(leaf, charge) for leaf, charge in sorted(asked))


def _groups(members: Sequence[Request]) -> list[tuple[Request, int]]:
    """Members alike with their number, the largest first; those alike in size keep their order."""
    counts: dict[Request, int] = {}
    for request in members:
        counts[request] = counts.get(request, 0) + 1
    return sorted(counts.items(), key=lambda entry: _size(entry[0]), reverse=True)


def _size(request: Request) -> tuple[int, int, int]:
    return (request.cards, request.cpu_milli, request.host_mib)
