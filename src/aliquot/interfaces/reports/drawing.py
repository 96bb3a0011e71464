"""What a chart is made of: a plotly figure as plain values, texts in both languages, colours by name.

The page's script picks the language and looks the colours up, so switching redraws without a second copy of
the data. A text is `{"en": ..., "zh": ...}`, a colour is `var(--name)`.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from aliquot.core.report.metrics import Bilingual
from aliquot.interfaces.reports.strings import TIME_UNITS

Spec = dict[str, Any]
"""Part of a plotly figure."""

COLOURS: Final = 8


class Figure(msgspec.Struct, frozen=True):
    """One chart. `group` is the section it stands in; `title` None: the section's title is enough."""

    id: str
    group: str
    height: int
    data: list[Spec]
    layout: Spec
    title: Bilingual | None = None


class Clock(msgspec.Struct, frozen=True):
    """How the time axes count."""

    unit_ms: int
    axis: Bilingual
    length_ms: int
    ticks: bool = True  # False: only the order is known

    @classmethod
    def for_length(cls, length_ms: int) -> Clock:
        """Days, hours, minutes or seconds, whichever reads best over `length_ms`."""
        unit, axis = next((unit, axis) for least, unit, axis in TIME_UNITS if length_ms >= least)
        return cls(unit, axis, length_ms)

    def __call__(self, ms: float) -> float:
        """`ms` on the axis."""
        return round(ms / self.unit_ms, 5)

    def xaxis(self) -> Spec:
        """The axis, equal for all runs so that their lengths can be compared."""
        return {
            "title": {"text": words(self.axis)},
            "range": [0, self(self.length_ms)],
            "zeroline": False,
            "showticklabels": self.ticks,
        }


def words(found: Bilingual) -> Spec:
    """A text for the page's script to choose from."""
    return {"en": found.en, "zh": found.zh}


def colour(at: int) -> str:
    """The colour of run `at`."""
    return f"var(--run-{at % COLOURS})"
