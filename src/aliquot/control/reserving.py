"""Reservations of a live site: what its documents say and what people asked for, against what is in force.

What people asked for is kept beside the documents and outlives them. A reservation of the documents takes the
place of one of the same name that somebody asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from aliquot.control.errors import ConflictError
from aliquot.control.parts import Rules
from aliquot.control.reservation_views import ReservationView, ReservedPart
from aliquot.control.words import quoted
from aliquot.core.errors import NotFoundError
from aliquot.core.events import WindowCancelled, WindowMade
from aliquot.core.windows import Closure, Inside, Window, check_window


def changes_of(
    wanted: Sequence[Window], closures: Iterable[Closure], now: int
) -> list[WindowMade | WindowCancelled]:
    """What makes the windows in force those that are `wanted`, as far as these are not over."""
    there = {closure.window.name: closure.window for closure in closures}
    names = {window.name for window in wanted}
    gone = [WindowCancelled(0, name) for name, window in there.items() if name not in names]
    made = [
        WindowMade(0, window) for window in wanted if window.end_ms > now and there.get(window.name) != window
    ]
    return [*gone, *made]


def wanted_by(rules: Rules) -> tuple[Window, ...]:
    """All that are to be in force: those of the documents, then others."""
    documented = {window.name for window in rules.windows}
    others = (window for window in rules.configuration.reserved if window.name not in documented)
    return (*rules.windows, *others)


def with_window(rules: Rules, window: Window, now: int) -> Rules:
    """With `window` too, and without those that are over.

    Raises SpecError where it is over itself, ConflictError where there is one of its name.
    """
    check_window(window, now)
    left = _not_over(rules, now)
    if any(window.name == other.name and other.end_ms > now for other in wanted_by(left)):
        raise ConflictError(
            f"there is a reservation {window.name!r} already; choose another name, or take that one back"
        )
    return _holding(left, (*left.configuration.reserved, window))


def without_window(rules: Rules, name: str, now: int) -> Rules:
    """Without the one called `name`. Raises NotFoundError, and ConflictError for one of the documents."""
    left = _not_over(rules, now)
    if any(window.name == name for window in rules.windows):
        raise ConflictError(
            f"reservation {name!r} is one of the documents; take it out of them, then 'aliquot apply FILE...'"
        )
    if all(window.name != name for window in left.configuration.reserved):
        raise NotFoundError(f"no reservation {quoted(name)}; 'aliquot reservations' lists those there are")
    return _holding(left, [window for window in left.configuration.reserved if window.name != name])


def reservation_views(
    closures: Iterable[Closure],
    rules: Rules,
    now: int,
    strangers_of: Callable[[Inside], tuple[str, ...]] = lambda inside: (),
) -> list[ReservationView]:
    """Those in force that are not over, by start. `strangers_of`: who of those let in is nobody here."""
    documented = {window.name for window in rules.windows}
    return [
        replace(
            _view(closure, is_documented=closure.window.name in documented),
            strangers=strangers_of(closure.window.inside),
        )
        for closure in closures
        if closure.window.end_ms > now
    ]


def find_strangers(
    inside: Inside,
    is_user: Callable[[str], bool],
    is_queue: Callable[[str], bool],
    is_job: Callable[[str], bool],
) -> tuple[str, ...]:
    """Who of `inside` is nobody here, kind and name: the cards are closed to everybody else."""
    kinds = (
        ("queue", inside.queues, is_queue),
        ("user", inside.users, is_user),
        ("job", inside.jobs, is_job),
    )
    return tuple(
        f"{kind} {quoted(name)}" for kind, names, is_here in kinds for name in names if not is_here(name)
    )


def _view(closure: Closure, *, is_documented: bool) -> ReservationView:
    window = closure.window
    return ReservationView(
        name=window.name,
        start_ms=window.start_ms,
        end_ms=window.end_ms,
        reason=window.reason,
        parts=tuple(ReservedPart(str(part.node), part.cards) for part in closure.parts),
        wanted=window.count,
        queues=window.inside.queues,
        users=window.inside.users,
        jobs=window.inside.jobs,
        grace_ms=window.grace_ms,
        is_documented=is_documented,
    )


def _not_over(rules: Rules, now: int) -> Rules:
    return _holding(rules, [window for window in rules.configuration.reserved if window.end_ms > now])


def _holding(rules: Rules, reserved: Iterable[Window]) -> Rules:
    return rules._replace(configuration=replace(rules.configuration, reserved=tuple(reserved)))
