"""The `aliquot` command as a program that is sent a signal at one certain moment.

    python interrupted.py SIGINT load:typer run -- true
    python interrupted.py SIGTERM after:/v1/jobs run -- sleep 60

`load`: when that module is looked for; `before`, `after`: around the first question to a path that ends so.
"""

from __future__ import annotations

import importlib.abc
import os
import signal
import sys
from collections.abc import Mapping
from typing import Any

from aliquot.__main__ import main
from aliquot.client.asking import Asking


class Finder(importlib.abc.MetaPathFinder):
    """Finds nothing; is asked for every module that is not loaded."""

    def __init__(self, name: str, number: int) -> None:
        self.name, self.number = name, number

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        """The moment, when the name is right."""
        if name == self.name:
            self.name = ""
            os.kill(os.getpid(), self.number)


def interrupt_asking(moment: str, path: str, number: int) -> None:
    """Send the signal around the first question to `path`."""
    ask, left = Asking.ask, [number]

    def asked(
        self: Asking, method: str, target: str, *more: Any, **options: Any
    ) -> tuple[bytes, Mapping[str, str]]:
        mine = bool(left) and target.partition("?")[0].endswith(path)
        if mine and moment == "before":
            os.kill(os.getpid(), left.pop())
        answer = ask(self, method, target, *more, **options)
        if mine and moment == "after":
            os.kill(os.getpid(), left.pop())
        return answer

    Asking.ask = asked  # type: ignore[method-assign]  # a program of its own, to be interrupted there


if __name__ == "__main__":
    _, word, when, *words = sys.argv
    moment, _, at = when.partition(":")
    sys.argv = ["aliquot", *words]
    if moment == "load":
        sys.meta_path.insert(0, Finder(at, signal.Signals[word]))
        for name in [name for name in sys.modules if name.startswith(("aliquot.", "msgspec"))]:
            del sys.modules[name]  # the command loads them itself
        from aliquot.__main__ import main
    else:
        interrupt_asking(moment, at, signal.Signals[word])
    main()
