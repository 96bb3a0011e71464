"""The live view: cards and jobs as they are, drawn anew every few seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from io import StringIO
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from aliquot.control.card_views import CardView
from aliquot.control.errors import UnavailableError
from aliquot.control.live import Remote
from aliquot.control.views import JobSummary, Site
from aliquot.control.words import counted, visible
from aliquot.core.units import format_memory
from aliquot.interfaces.cli.job_rows import cards_of, counts_of
from aliquot.interfaces.cli.live_text import in_use, users_of
from aliquot.interfaces.cli.plain import age, now_ms, print_lines
from aliquot.interfaces.cli.screen import Screen

ROWS: Final = 30  # of jobs; the rest is counted
BAR: Final = 10
BLOCKS: Final = "\u2588\u2591"  # of a bar: granted, and free
PLAIN_BLOCKS: Final = "#."  # the same where an encoding lacks them
WIDEST: Final = 1000  # columns of a picture that goes to no screen
_STYLE: Final = {"running": "green", "pending": "yellow", "starting": "cyan", "stopping": "magenta"}


def watch_site(remote: Remote, every_s: float, *, once: bool) -> None:
    """Draw until interrupted; `once`, and where nobody would see it change: print what there is and leave."""
    if once or not sys.stdout.isatty():
        print_once(remote)
        return
    with Live(draw_site(remote), console=Screen(), auto_refresh=False, screen=True) as live:
        while True:
            time.sleep(every_s)
            live.update(_draw_anyway(remote), refresh=True)


def print_once(remote: Remote) -> None:
    """One picture as plain text, as wide as it is: for a file, a pipe, or a terminal that is to keep it."""
    with StringIO() as text:
        Console(file=text, width=WIDEST, highlight=False, color_system=None).print(draw_site(remote))
        print_lines(line.rstrip() for line in text.getvalue().splitlines())


def draw_site(remote: Remote) -> RenderableType:
    """One picture. Raises UnavailableError."""
    site, cards, jobs = remote.site(), remote.gpus(), remote.jobs(over=False, fold=True)
    return Group(_head(site, cards, jobs), _card_table(cards), _job_table(jobs))


def _draw_anyway(remote: Remote) -> RenderableType:
    """A service that goes away for a while comes back."""
    try:
        return draw_site(remote)
    except UnavailableError as error:
        return Text(str(error), style="red")


def _head(site: Site, cards: Sequence[CardView], jobs: Sequence[JobSummary]) -> Text:
    waiting, running = count_jobs(jobs)
    cards = [card for card in cards if card.index is not None]
    granted = sum(map(_granted, cards))
    known = [card.busy_percent for card in cards if card.busy_percent is not None]
    busy = f"{sum(known) / len(known):.0f} %" if known else "not known"
    return Text(
        f"aliquot {site.version}   {granted / 1000:g} of {counted(len(cards), 'card')} granted, busy {busy}"
        f"   {running} running, {waiting} waiting   {time.strftime('%H:%M:%S')}"
    )


def count_jobs(jobs: Sequence[JobSummary]) -> tuple[int, int]:
    """(waiting, running) jobs, those of arrays each."""
    counts = [job.counts or {job.phase: 1} for job in jobs]
    waiting = sum(one.get("pending", 0) for one in counts)
    running = sum(one.get(phase, 0) for one in counts for phase in ("starting", "running", "stopping"))
    return waiting, running


def _card_table(cards: Sequence[CardView]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("CARD", "MODEL", "STATE", "GRANTED", "", "FREE MEMORY", "IN USE", "ON IT"):
        table.add_column(name, no_wrap=name != "ON IT")
    for card in cards:
        granted = _granted(card)
        table.add_row(
            "-" if card.index is None else str(card.index),
            _plain(card.model),
            Text(card.fault or card.state, style="" if card.state == "ok" else "red"),
            _bar(granted),
            f"{granted / 10:g} %",
            format_memory(card.free_memory_mib),
            in_use(card),
            _plain(users_of(card)),
        )
    return table


def _granted(card: CardView) -> int:
    """Thousandths of it; what others take of it, and what is out, is granted to nobody."""
    return min(1000, sum(use.compute_milli for use in card.jobs))


def _job_table(jobs: Sequence[JobSummary]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("JOB", "NAME", "USER", "QUEUE", "CARDS", "PHASE", "FOR"):
        table.add_column(name, no_wrap=True)
    now = now_ms()
    ordered = sorted(jobs, key=lambda job: job.phase == "pending")
    for job in ordered[:ROWS]:
        since = now - (job.started_ms or job.submitted_ms)
        table.add_row(
            job.id, *map(_plain, (job.name, job.user, job.queue)), cards_of(job),
            Text(counts_of(job), style=_STYLE.get(job.phase, "")), age(since),
        )  # fmt: skip  # as the heading
    if len(ordered) > ROWS:
        table.add_row("...", f"{len(ordered) - ROWS} more")
    return table


def _plain(word: str) -> Text:
    """What a person has chosen is text, and neither markup nor commands to a terminal."""
    return Text(visible(word))


def _bar(milli: int) -> Text:
    full = min(BAR, -(-milli * BAR // 1000))
    granted, free = BLOCKS if _is_writable(BLOCKS) else PLAIN_BLOCKS
    return Text(granted * full, style="green") + Text(free * (BAR - full), style="dim")


def _is_writable(text: str) -> bool:
    """Whether what is printed has these characters in its encoding."""
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True
