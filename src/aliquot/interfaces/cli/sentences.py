"""Why a job is where it is, or waits, as sentences. Every number comes from the plan; none is reckoned here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from aliquot.control.experiments import Explanation
from aliquot.core.grants import Placement
from aliquot.core.steps import Gate, Place, Reason, Shortfall, Term, Wait
from aliquot.core.units import FULL, format_memory, format_ms

MILLI_TERMS: Final[dict[str, str]] = {
    "packing": "destroys {amount} of a card of future packing",
    "price": "uses {amount} of a card where such cards are scarce",
    "reserve": "breaks whole-card slots worth {amount} of a card",
    "wiring": "loses {amount} of a card to the wiring of its set",
}

_GATES: Final[dict[Gate, str]] = {
    Gate.ORDER: "a job before it waits, and the queue is strict first-in, first-out",
    Gate.FIT: "nothing that is free fits",
    Gate.NEVER: "it can never fit: no node could hold it even with nothing else on it",
    Gate.BACKOFF: "a node refused it; it is tried again later",
}

_REASONS: Final[dict[Shortfall, Callable[[Reason], str]]] = {
    Shortfall.GONE: lambda reason: "not available (down, drained or without a healthy card)",
    Shortfall.PROFILE: lambda reason: "without enough cards of the kind asked for",
    Shortfall.SIZE: lambda reason: "too small even when empty",
    Shortfall.CPU: lambda reason: _lack(reason, "cpu", _cores),
    Shortfall.HOST: lambda reason: _lack(reason, "host memory", format_memory),
    Shortfall.CARDS: lambda reason: _lack(reason, "free cards", str),
    Shortfall.MEMORY: lambda reason: _lack(reason, "card memory", format_memory),
    Shortfall.COMPUTE: lambda reason: _lack(reason, "card compute", _percent),
    Shortfall.BANDWIDTH: lambda reason: _lack(reason, "card memory bandwidth", _percent),
    Shortfall.LINK: lambda reason: (
        f"with enough free cards, but not {reason.need} linked by NVLink: largest linked set {reason.best}"
    ),
}


def explain_lines(explanation: Explanation) -> list[str]:
    """The explanation, one sentence a line."""
    if explanation.place is not None:
        return list(_placed(explanation, explanation.place))
    if explanation.wait is not None:
        return list(_waits(explanation, explanation.wait))
    return [f"{explanation.job} is neither placed nor waiting at {format_ms(explanation.at_ms)}: it is over."]


def _placed(explanation: Explanation, place: Place) -> Iterator[str]:
    waited = explanation.at_ms - explanation.submitted_ms
    yield (
        f"{explanation.job} was placed at {format_ms(explanation.at_ms)} by policy {explanation.policy}, "
        f"after waiting {format_ms(waited)}."
    )
    for placement in place.placements:
        yield f"  {_where(placement)}"
    yield from (f"  {sentence}" for sentence in _terms(place.terms, place.score))
    runner_up = place.runner_up
    if runner_up is not None:
        yield f"Runner-up: {runner_up.node} (score {runner_up.score:.1f}; smaller is better)."
        yield from (f"  {sentence}" for sentence in _terms(runner_up.terms, runner_up.score))
    elif len(place.placements) == 1:
        yield "No other node had room for it."


def _waits(explanation: Explanation, wait: Wait) -> Iterator[str]:
    yield (
        f"{explanation.job} waits at {format_ms(explanation.at_ms)} under policy {explanation.policy}: "
        f"{_GATES[wait.gate]}."
    )
    if explanation.position is not None:
        yield f"  Place {explanation.position} of {explanation.waiting} in the queue."
    for reason in wait.reasons:
        nodes = "1 node is" if reason.nodes == 1 else f"{reason.nodes} nodes are"
        yield f"  {nodes} {_REASONS[reason.shortfall](reason)}"
    if wait.reasons:
        yield f"  {sum(reason.nodes for reason in wait.reasons)} nodes in all."


def _where(placement: Placement) -> str:
    parts = [f"node {placement.node}"]
    if placement.cards:
        cards = ", ".join(placement.cards)
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


def _terms(terms: Sequence[Term], score: float) -> Iterator[str]:
    known = [term for term in terms if term.name in MILLI_TERMS]
    for term in known:
        if abs(term.value) >= 0.5:
            yield MILLI_TERMS[term.name].format(amount=f"{term.value / FULL:+.2f}")
    if not known:
        yield f"score {score:.1f} (smaller is better)"


def _lack(reason: Reason, what: str, show: Callable[[int], str]) -> str:
    need = "" if reason.need is None else f" {show(reason.need)}"
    best = "" if reason.best is None else f", the best has {show(reason.best)}"
    return f"short of {what}:{need} needed{best}"


def _cores(milli: int) -> str:
    return f"{milli / 1000:g} cores"


def _percent(milli: int) -> str:
    return f"{milli / 10:g} %"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
