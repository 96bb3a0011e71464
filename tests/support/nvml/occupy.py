"""A stand-in for a GPU program: takes memory on the cards it may see, says so, and stays until it is ended.

    python -m tests.support.nvml.occupy --memory-mib 32768 [--seconds 5] [--sm 80]

It goes by CUDA_VISIBLE_DEVICES as a CUDA program does: UUIDs or positions; unset means all cards, empty none.
Its entries end with the process, however it ends.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

from tests.support.nvml.state import SimulatedNvml, joined_machine


def main() -> int:
    parser = argparse.ArgumentParser(description="play a program on the simulated cards it may see")
    parser.add_argument("--memory-mib", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--sm", type=int, default=None)
    asked = parser.parse_args()
    sim = joined_machine()
    cards = visible_cards(sim, os.environ.get("CUDA_VISIBLE_DEVICES"))
    for card in cards:
        sim.add_process(card, os.getpid(), memory_mib=asked.memory_mib, sm_util=asked.sm, follow=True)
    sys.stdout.write(f"on {','.join(map(str, cards))}\n")
    sys.stdout.flush()
    time.sleep(asked.seconds)
    return 0


def visible_cards(sim: SimulatedNvml, visible: str | None) -> list[int]:
    """Positions of the named cards; CUDA stops at the first name that leads nowhere, and so does this."""
    known = {sim.uuid(card): card for card in range(sim.state.devices)}
    if visible is None:
        return list(known.values())
    found: list[int] = []
    for name in filter(None, visible.split(",")):
        card = int(name) if name.isdigit() and int(name) < len(known) else known.get(name)
        if card is None:
            break
        found.append(card)
    return found


if __name__ == "__main__":
    raise SystemExit(main())
