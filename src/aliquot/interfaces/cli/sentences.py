"""Why a job is where it is, or waits, as sentences. Every number comes from the plan."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from aliquot.control.experiments import Explanation
from aliquot.control.words import measured
from aliquot.core.grants import Placement
from aliquot.core.steps import Place, Reason, Shortfall, Term, Wait
from aliquot.core.units import FULL, format_memory, format_ms
from aliquot.interfaces.cli.endings import given_up_words
from aliquot.interfaces.cli.expectations import expected_line, overcommit_line, place_line, promise_lines
from aliquot.interfaces.cli.gates import GATES, company_line, gate_lines, stopped_line

TIE: Final = 1e-9
IN_CARDS: Final = "future-packing"
_IN_CARDS: Final[dict[str, str]] = {
    "destroyed": "of future packing that it makes impossible",
    "price": "since cards of this kind are scarce for those who need them",
    "reserve": "since it breaks up idle sets of 2, 4 or 8 cards",
}
_PREFERS: Final[dict[str, str]] = {
    "best-fit": "the node with the least left free",
    "spread": "the node with the most left free",
    "fgd": "the node where the least becomes useless to typical requests",
    "dot-product": "the node whose free resources are least like what is asked for",
    "gpu-packing": "cards in use, then nodes in use",
    "gpu-clustering": "nodes that already serve the same kind of request",
    "random": "any node with room, by lot",
}

_REASONS: Final[dict[Shortfall, Callable[[Reason], str]]] = {
    Shortfall.GONE: lambda reason: _be(reason, "not available: down, drained or without a healthy card"),
    Shortfall.PROFILE: lambda reason: _have(reason, "too few cards of the kind asked for"),
    Shortfall.SIZE: lambda reason: _be(reason, "too small even when empty"),
    Shortfall.CPU: lambda reason: _lack(reason, "cpu", _cores),
    Shortfall.HOST: lambda reason: _lack(reason, "host memory", _mib),
    Shortfall.CARDS: lambda reason: _lack(reason, "free cards", str),
    Shortfall.MEMORY: lambda reason: _lack(reason, "memory", _mib),
    Shortfall.COMPUTE: lambda reason: _lack(reason, "compute", _percent),
    Shortfall.BANDWIDTH: lambda reason: _lack(reason, "memory bandwidth", _percent),
    Shortfall.LINK: lambda reason: (
        f"{_have(reason, 'the cards but not the links')}: needs {reason.need} linked cards, "
        f"largest linked set {'unknown' if reason.best is None else reason.best}"
    ),
}
_OF_A_CARD: Final = frozenset({Shortfall.MEMORY, Shortfall.COMPUTE, Shortfall.BANDWIDTH})


def explain_lines(explanation: Explanation) -> list[str]:
    """The explanation, one sentence a line."""
    if explanation.place is not None:
        return [*_placed(explanation, explanation.place), *_made_room(explanation)]
    if explanation.wait is not None:
        return list(_waits(explanation, explanation.wait))
    at = format_ms(explanation.at_ms)
    if explanation.over:
        return [_given_up(explanation, at)]
    return [f"{explanation.job} is submitted at {format_ms(explanation.submitted_ms)}, which is after {at}."]


def _given_up(explanation: Explanation, at: str) -> str:
    """Of a job that is over and never started."""
    unplaced = f"before {at} without ever being placed"
    if explanation.given_up is None:
        return f"{explanation.job} was given up by its owner {unplaced}."
    return f"{explanation.job} was withdrawn {unplaced}{given_up_words(explanation.given_up)}."


def explain_reason(reason: Reason) -> str:
    """One reason of a wait, such as `12 nodes lack free cards: 8 needed, at most 2 free`."""
    return _REASONS[reason.shortfall](reason)


def _placed(explanation: Explanation, place: Place) -> Iterator[str]:
    placed_ms = explanation.at_ms if explanation.placed_ms is None else explanation.placed_ms
    over = f" It is over by {format_ms(explanation.at_ms)}." if explanation.over else ""
    yield (
        f"{explanation.job} was placed at {format_ms(placed_ms)} by policy {explanation.policy}, "
        f"after waiting {format_ms(placed_ms - explanation.submitted_ms)}.{over}"
    )
    for placement in place.placements:
        yield f"  {_where(placement)}"
    if explanation.promise is not None:
        yield from promise_lines(explanation.promise, format_ms)
    shared = explanation.company or place
    if shared.company is not None:
        yield company_line(shared, explanation.job)
    if place.company is not None and place.company.jobs[-1] == explanation.job:
        yield "Nothing that was free fitted."
        return
    yield from _score(explanation, place)
    runner_up = place.runner_up
    if runner_up is not None and abs(runner_up.score - place.score) < TIE:
        drawn = (
            "one is drawn by lot" if explanation.placement == ("random",) else "the first in order is taken"
        )
        yield f"Runner-up: {runner_up.node}, as good; of equals {drawn}."
    elif runner_up is not None:
        yield f"Runner-up: {runner_up.node}, {_amount(explanation, runner_up.score)} (smaller is better)."
        yield from _terms(explanation, runner_up.terms)
    elif len(place.placements) == 1:
        yield "No other node had room for it."


def _waits(explanation: Explanation, wait: Wait) -> Iterator[str]:
    yield (
        f"{explanation.job} waits at {format_ms(explanation.at_ms)} under policy {explanation.policy}: "
        f"{GATES[wait.gate]}."
    )
    yield from (f"  {line}" for line in gate_lines(wait))
    yield from (f"  {line}" for line in _made_room(explanation))
    if explanation.position is not None:
        yield "  " + place_line(
            explanation.position,
            explanation.waiting,
            explanation.queue,
            explanation.queue_position,
            explanation.queue_waiting,
        )
    if explanation.expected is not None and not wait.is_for_ever:
        yield "  " + expected_line(explanation.expected, explanation.at_ms)
    if explanation.promise is not None:
        yield from (f"  {line}" for line in promise_lines(explanation.promise, format_ms))
    yield from (f"  {overcommit_line(over)}" for over in explanation.overcommits)
    for reason in wait.reasons:
        yield f"  {explain_reason(reason)}"
    if wait.reasons:
        yield f"  {_count(sum(reason.nodes for reason in wait.reasons), 'node')} in all."


def _made_room(explanation: Explanation) -> Iterator[str]:
    if explanation.stopped:
        yield stopped_line(explanation.stopped, explanation.cleared)


def _where(placement: Placement) -> str:
    parts = [f"node {placement.node}"]
    if placement.cards:
        cards = ", ".join(_short(card) for card in placement.cards)
        if placement.whole:
            parts.append(f"{_count(len(placement.cards), 'whole card')}: {cards}")
        else:
            vector = placement.vector
            parts.append(
                f"{_count(len(placement.cards), 'slice')} of {_percent(vector.compute)} compute and "
                f"{format_memory(vector.memory)} on {cards}"
            )
    if placement.cpu or placement.host:
        parts.append(f"{_cores(placement.cpu)} and {format_memory(placement.host)} of the host")
    if placement.numa:
        parts.append("NUMA " + ", ".join(str(at) for at, _, _ in placement.numa))
    return "; ".join(parts)


def _score(explanation: Explanation, place: Place) -> Iterator[str]:
    """What the choice cost, in the policy's own unit."""
    if len(explanation.placement) > 1:
        yield f"Score {place.score:.3f}, weighed together (smaller is better):"
        yield from (f"  {term.value:.3f} by {term.name}" for term in place.terms)
        return
    name = explanation.placement[0]
    if name in _PREFERS:
        yield f"Policy {name} prefers {_PREFERS[name]}; score {_amount(explanation, place.score)}."
        return
    yield f"It costs {_amount(explanation, place.score)} (smaller is better):"
    yield from _terms(explanation, place.terms)


def _terms(explanation: Explanation, terms: Sequence[Term]) -> Iterator[str]:
    if explanation.placement != (IN_CARDS,):
        return
    for term in terms:
        if abs(term.value) >= FULL / 200:
            yield f"  {term.value / FULL:.2f} {_IN_CARDS.get(term.name, term.name)}"


def _amount(explanation: Explanation, score: float) -> str:
    return f"{score / FULL:.2f} cards" if explanation.placement == (IN_CARDS,) else f"{score:.1f}"


def _lack(reason: Reason, what: str, show: Callable[[int], str]) -> str:
    """`12 nodes lack memory: 40960 MiB needed, at most 8192 MiB free on a card`."""
    need = "" if reason.need is None else f": {show(reason.need)} needed"
    place = " on a card" if reason.shortfall in _OF_A_CARD else ""
    best = "" if reason.best is None else f", at most {show(reason.best)} free{place}"
    return f"{_nodes(reason, 'lacks', 'lack')} {what}{need}{best}"


def _be(reason: Reason, what: str) -> str:
    return f"{_nodes(reason, 'is', 'are')} {what}"


def _have(reason: Reason, what: str) -> str:
    return f"{_nodes(reason, 'has', 'have')} {what}"


def _nodes(reason: Reason, one: str, many: str) -> str:
    return f"{_count(reason.nodes, 'node')} {one if reason.nodes == 1 else many}"


def _mib(mib: int) -> str:
    return f"{mib} MiB"


def _cores(milli: int) -> str:
    return measured(milli / 1000, "core")


def _percent(milli: int) -> str:
    return f"{milli / 10:g} %"


def _short(card: str) -> str:
    """`GPU-59ccb45b` of `GPU-59ccb45b-3af0-...`, which is enough for nvidia-smi; JSON has the whole."""
    begin = re.match(r"GPU-[0-9a-f]{8}(?=-)", card)
    return begin[0] if begin else card


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
