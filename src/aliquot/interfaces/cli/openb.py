"""`aliquot replay openb`: runs over seeds and policies with one progress bar."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from aliquot.control.experiments import Experiments, ReplayAsk
from aliquot.core.errors import SpecError
from aliquot.core.report.result import RunResult
from aliquot.core.settings import MixSource, Rescue
from aliquot.interfaces.cli.output import watch

MIXES = {source.value: source for source in MixSource}


class Replay(NamedTuple):
    """What to run, as it stands on the command line."""

    workload: str
    seeds: str
    offered: float
    stream: int
    mix: str
    moves: float
    folder: Path | None


def replay_openb(experiments: Experiments, asked: Replay, policies: Sequence[str]) -> list[RunResult]:
    """All runs, policy by policy, seed by seed; raises SpecError for a mix or seeds that are none."""
    if asked.mix not in MIXES:
        raise SpecError(
            f"{asked.mix!r} is no demand mix", field="--mix", value=asked.mix, hint=" or ".join(MIXES)
        )
    changes = {"seed": asked.stream, "mix_source": MIXES[asked.mix], "rescue": Rescue(share=asked.moves)}
    runs = [(policy, seed) for policy in policies for seed in parse_seeds(asked.seeds)]
    results = []
    for number, (policy, seed) in enumerate(runs, start=1):
        ask = ReplayAsk(asked.workload, seed, asked.offered, asked.folder, movable=asked.moves > 0)
        with watch(f"{policy}, seed {seed} ({number}/{len(runs)})") as progress:
            results.append(experiments.replay("openb", ask, policy, changes, progress))
    return results


def parse_seeds(text: str) -> list[int]:
    """`42`, `42-51`, `1,3,5-7` as a list; raises SpecError."""
    seeds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part.strip())
        if not match or (match[2] is not None and int(match[2]) < int(match[1])):
            raise SpecError(
                f"{part!r} is no seed or range", field="--seeds", value=text, hint="42, 42-51 or 1,3,5"
            )
        seeds.extend(range(int(match[1]), int(match[2] or match[1]) + 1))
    if len(seeds) > 1000:
        raise SpecError(f"{len(seeds)} seeds", field="--seeds", value=text, hint="at most 1000")
    return seeds
