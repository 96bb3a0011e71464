"""Measured profiles of the Pollux applications: step times by placement, and the course of training by batch.

A folder per application holds `placements.csv` (step and synchronisation time by placement and local batch),
`scalability.csv` (the same by node and card counts, beyond four nodes) and one `validation-BATCH.csv` per
batch size (progress and gradient statistics by epoch). Epochs to finish and the cap on the local batch are
not in the files but in the authors' description; they are the table APPLICATIONS.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from aliquot.core.errors import DocumentError, NotFoundError
from aliquot.traces.tables import Row, broken_cell, number, read_table, whole

F64 = npt.NDArray[np.float64]
PLACEMENT_COLUMNS = ("placement", "local_bsz", "step_time", "sync_time")
SCALING_COLUMNS = ("num_nodes", "num_replicas", "local_bsz", "step_time", "sync_time")
COURSE_COLUMNS = ("progress", "grad_sqr", "grad_var")


class Fixed(msgspec.Struct, frozen=True):
    """What a user fixes about an application: epochs, and where it has them a cap and one batch for all."""

    epochs: int
    largest_local: int | None = None
    batch: int | None = None  # runs with this batch on one card, whoever schedules it


APPLICATIONS: dict[str, Fixed] = {
    "bert": Fixed(2),
    "cifar10": Fixed(100),
    "deepspeech2": Fixed(80),
    "imagenet": Fixed(90),
    "ncf": Fixed(10, batch=32768),
    "yolov3": Fixed(50, largest_local=8),
}


class Course(msgspec.Struct, frozen=True, eq=False):
    """Training by batch size: rows are batches in rising order, columns epochs."""

    batches: tuple[int, ...]
    progress: F64  # [batches, epochs] where the epoch ends
    grad_sqr: F64  # [batches, epochs]
    grad_var: F64  # [batches, epochs]


class Profile(msgspec.Struct, frozen=True, eq=False):
    """One application. Times are seconds [.., 2]: step, and the part of it that synchronises."""

    name: str
    fixed: Fixed
    course: Course
    smallest_local: int
    largest_local: int
    by_placement: Mapping[tuple[int, ...], tuple[F64, F64]]  # local batches [k], times [k, 2]
    points: F64  # [n, 3] nodes, cards, local batch
    times: F64  # [n, 2]

    @property
    def initial_batch(self) -> int:
        """The least batch size with a course."""
        return self.course.batches[0]

    @property
    def largest_batch(self) -> int:
        """The greatest batch size with a course."""
        return self.course.batches[-1]


def read_profiles(folder: Path) -> dict[str, Profile]:
    """Every application of APPLICATIONS below `folder`; raises where one is missing or broken."""
    return {name: read_profile(folder / name, name, fixed) for name, fixed in APPLICATIONS.items()}


def read_profile(folder: Path, name: str, fixed: Fixed) -> Profile:
    """One application's profile from its folder."""
    if not folder.is_dir():
        raise NotFoundError(f"no profile of {name}: expected the folder {folder}")
    by_placement = _read_placements(folder / "placements.csv")
    locals_ = np.concatenate([local for local, _ in by_placement.values()])
    points, times = _pool(by_placement, folder / "scalability.csv")
    return Profile(
        name,
        fixed,
        _read_course(folder, fixed.epochs),
        int(locals_.min()),
        fixed.largest_local or int(locals_.max()),
        by_placement,
        points,
        times,
    )


def _read_placements(path: Path) -> dict[tuple[int, ...], tuple[F64, F64]]:
    found: dict[tuple[int, ...], list[tuple[int, float, float]]] = {}
    for line, row in enumerate(read_table(path, PLACEMENT_COLUMNS), start=2):
        text = row["placement"].strip()
        if not (text.isascii() and text.isdecimal()) or "0" in text:
            raise broken_cell(path, line, "placement", text, "one digit of 1 to 9 per node, such as 44")
        found.setdefault(tuple(map(int, text)), []).append(_timing(path, line, row))
    if not found:
        raise DocumentError("holds no placement", file=str(path))
    return {placement: _columns(rows) for placement, rows in sorted(found.items())}


def _timing(path: Path, line: int, row: Row) -> tuple[int, float, float]:
    local = whole(path, line, row, "local_bsz", least=1)
    return local, number(path, line, row, "step_time"), number(path, line, row, "sync_time")


def _columns(rows: list[tuple[int, float, float]]) -> tuple[F64, F64]:
    rows.sort()
    return np.array([row[0] for row in rows], float), np.array([row[1:] for row in rows], float)


def _pool(by_placement: Mapping[tuple[int, ...], tuple[F64, F64]], scaling: Path) -> tuple[F64, F64]:
    """Points (nodes, cards, local batch) with mean times: placements and scalability together."""
    sums: dict[tuple[int, int, int], list[F64]] = {}
    for placement, (local, times) in by_placement.items():
        for at, size in enumerate(local):
            sums.setdefault((len(placement), sum(placement), int(size)), []).append(times[at])
    points: list[tuple[int, int, int]] = list(sums)
    values = [np.mean(found, axis=0) for found in sums.values()]
    for line, row in enumerate(read_table(scaling, SCALING_COLUMNS), start=2):
        nodes, cards = (whole(scaling, line, row, key, least=1) for key in ("num_nodes", "num_replicas"))
        batch, step, sync = _timing(scaling, line, row)
        points.append((nodes, cards, batch))
        values.append(np.array([step, sync]))
    return np.array(points, float), np.array(values, float)


def _read_course(folder: Path, epochs: int) -> Course:
    files = {}
    for path in folder.glob("validation-*.csv"):
        text = path.stem.removeprefix("validation-")
        if not (text.isascii() and text.isdecimal()):
            raise DocumentError(f"{text!r} is no batch size", file=str(path), hint="validation-128.csv")
        files[int(text)] = path
    if not files:
        raise NotFoundError(f"no validation-BATCH.csv in {folder}")
    columns = [_read_epochs(path, epochs) for _, path in sorted(files.items())]
    progress, grad_sqr, grad_var = (np.array([found[at] for found in columns]) for at in range(3))
    return Course(tuple(sorted(files)), progress, grad_sqr, grad_var)


def _read_epochs(path: Path, epochs: int) -> list[list[float]]:
    rows = read_table(path, COURSE_COLUMNS)
    if len(rows) < epochs:
        raise DocumentError(f"{len(rows)} epochs of {epochs}", file=str(path), line=len(rows) + 1)
    return [
        [number(path, line, row, name) for line, row in enumerate(rows[:epochs], start=2)]
        for name in COURSE_COLUMNS
    ]
