"""HTML from values: escaped, and every text in both languages side by side (the style hides one)."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from aliquot.core.report.metrics import Bilingual

Text = Bilingual | str


def both(text: Text) -> str:
    """`text` in both languages, or as it is where it is one word for all."""
    if isinstance(text, str):
        return escape(text)
    if text.en == text.zh:
        return escape(text.en)
    return f'<span lang="en">{escape(text.en)}</span><span lang="zh">{escape(text.zh)}</span>'


def tag(name: str, *inside: str, **attributes: str) -> str:
    """One element. `inside` is HTML already; attributes are escaped, `class_` stands for class."""
    written = "".join(f' {key.rstrip("_")}="{escape(value)}"' for key, value in attributes.items())
    return f"<{name}{written}>{''.join(inside)}</{name}>"


def section(anchor: str, title: Text, *inside: str, note: Text | None = None) -> str:
    """A titled part of the page."""
    head = tag("h2", both(title))
    below = tag("p", both(note), class_="note") if note is not None else ""
    return tag("section", head, below, *inside, id=anchor)


def bullets(items: Iterable[Text]) -> str:
    """A list, or nothing."""
    written = [tag("li", both(item)) for item in items]
    return tag("ul", *written) if written else ""


def table(head: Iterable[str], rows: Iterable[str], **attributes: str) -> str:
    """A table that scrolls sideways on its own where it is wide. `head` and `rows` are HTML."""
    body = tag("table", tag("thead", tag("tr", *head)), tag("tbody", *rows), **attributes)
    return tag("div", body, class_="scroll")
