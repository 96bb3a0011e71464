"""Where pictures and tables go: a terminal, or a pipe that somebody may close."""

from __future__ import annotations

import errno
import os

from rich.console import Console


class Screen(Console):
    """A console that says so where nobody reads on, in place of ending the process with 1."""

    def on_broken_pipe(self) -> None:
        """Raise BrokenPipeError."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
