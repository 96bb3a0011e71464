"""What a supervisor is told: the fields of its `spec`, and the environment a job finds itself in.

Cards are named by the device's own ids, in the order of the grant; a job without cards is shown none. Every
process of a job carries ALIQUOT_ATTEMPT, by which the engine can find what outlived its supervisor.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from aliquot.control.arrays import array_of, index_of
from aliquot.core.grants import Placement
from aliquot.engines.local.cgroups import Group
from aliquot.engines.local.folders import Folder
from aliquot.engines.local.payload import Payload

MARK: Final = "ALIQUOT_ATTEMPT"
KEEP_FREE: Final = 256 << 20
"""Bytes of its disk that the output of jobs leaves free; of a small disk an eighth.

More than the reserve of the record: what that gives back is not for output."""
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def mark_of(folder: Folder) -> str:
    """The value of ALIQUOT_ATTEMPT: the folder of the member, which no other service of this machine has."""
    return os.path.realpath(folder.at)


def environment(
    payload: Payload,
    placements: Sequence[Placement],
    folder: Folder,
    extra: Iterable[tuple[str, str]] = (),
    port: int | None = None,
) -> dict[str, str]:
    """Of the member in `folder`; what the engine says wins over what the job says.

    `extra`: what drivers and the service add, such as the path of the report channel. `port`: on which the
    members of a gang may meet.
    """
    held = folder.held
    placement = placements[held.member]
    index = index_of(held.job)
    return {
        "PATH": PATH,
        **dict(payload.env),
        **dict(extra),
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": ",".join(placement.cards),
        "NVIDIA_VISIBLE_DEVICES": ",".join(placement.cards) or "void",
        "ALIQUOT_JOB": held.job,
        "ALIQUOT_ATTEMPT_NUMBER": str(held.attempt),
        "ALIQUOT_MEMBER": str(held.member),
        "ALIQUOT_MEMBERS": str(len(placements)),
        "ALIQUOT_CARDS": str(len(placement.cards)),
        "ALIQUOT_WIDTH": str(len(placements) if payload.members > 1 else len(placement.cards)),
        **({"ALIQUOT_WIDTHS": ",".join(map(str, payload.widths))} if payload.widths else {}),
        "ALIQUOT_CARD_MEMORY_MIB": str(placement.vector.memory) if placement.cards else "0",
        "ALIQUOT_CARD_COMPUTE_MILLI": str(placement.vector.compute) if placement.cards else "0",
        **({} if index is None else {"ALIQUOT_ARRAY": array_of(held.job), "ALIQUOT_ARRAY_INDEX": str(index)}),
        **({} if port is None else _meeting(held.member, len(placements), port)),
        MARK: mark_of(folder),
    }


def _meeting(rank: int, size: int, port: int) -> dict[str, str]:
    """How members find each other, in words of our own and in those of PyTorch's `env://`.

    Each member sees its own cards only, so locally it is the first and only one.
    """
    return {
        "ALIQUOT_RANK": str(rank),
        "ALIQUOT_SIZE": str(size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
    }


def spec_of(payload: Payload, env: dict[str, str], out: Path, group: Group | None) -> bytes:
    """The file `spec`. `out`: where output goes unless the payload says so."""
    fields: list[tuple[str, str | int]] = [("arg", word) for word in payload.command]
    fields += [("env", f"{name}={value}") for name, value in env.items()]
    fields += [("cwd", payload.cwd), ("out", payload.output.out or str(out)), ("umask", payload.umask)]
    if payload.output.out is None:
        fields.append(("out_dir", str(out.parent)))
    if payload.output.err is not None:
        fields.append(("err", payload.output.err))
    if payload.output.keep_kib is not None:
        fields += [("keep_bytes", payload.output.keep_kib * 1024), ("keep_files", payload.output.keep_files)]
    if payload.output.out is None:
        fields.append(("keep_free", KEEP_FREE))
    if payload.user is not None:
        fields += [("uid", payload.user.uid), ("gid", payload.user.gid)]
        fields += [("group", number) for number in payload.user.groups]
    stop = payload.stop
    fields += [("warn_ms", stop.warn_ms), ("grace_ms", stop.grace_ms)]
    if stop.warn_signal is not None:
        fields.append(("warn_signal", int(stop.warn_signal)))
    if payload.time_ms is not None:
        fields.append(("time_ms", payload.time_ms))
    fields += [("limit", f"{name}:{soft}:{hard}") for name, soft, hard in payload.rlimits]
    if group is not None:
        fields += [("cgroup", str(path)) for path in group.procs_files]
        if group.into is not None:
            fields.append(("into", str(group.into)))
        if group.kill_file is not None:
            fields.append(("kill_file", str(group.kill_file)))
        if group.is_bare:
            fields += [("own_group", str(folder)) for folder in group.folders]
    return "".join(f"{key}={value}\0" for key, value in fields).encode()
