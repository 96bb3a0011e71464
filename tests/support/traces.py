"""A made-up trace folder in the form of the 'openb' GPU-sharing workloads: six machines, forty pods."""

from __future__ import annotations

from pathlib import Path

import numpy as np

NODES = (
    "sn,cpu_milli,memory_mib,gpu,model",
    "node-a,64000,262144,2,T4",
    "node-b,96000,393216,8,V100M32",
    "node-c,96000,393216,8,V100M32",
    "node-d,32000,131072,1,P100",
    "node-e,128000,786432,8,G2",
    "node-f,64000,262144,4,T4",
)
PODS = (
    (4000, 8192, 1, 250, ""),
    (8000, 16384, 1, 1000, ""),
    (16000, 65536, 4, 1000, ""),
    (2000, 4096, 0, 0, ""),
    (4000, 8192, 1, 500, "T4|P100"),
    (48000, 196608, 8, 1000, "V100M32"),
    (1000, 2048, 1, 30, ""),
    (8000, 32768, 2, 1000, ""),
)
COLUMNS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time"


def write_traces(
    folder: Path, workload: str = "small", *, pods: int = 40, seeds: tuple[int, ...] = ()
) -> Path:
    """Write the folder; `seeds` get a published order, which is the names backwards. Returns `folder`."""
    openb = folder / "openb"
    openb.mkdir(parents=True)
    (openb / "openb_node_list_gpu_node.csv").write_text("\n".join(NODES) + "\n")
    rows = [COLUMNS]
    for number in range(pods):
        cpu, memory, cards, milli, spec = PODS[number % len(PODS)]
        rows.append(f"pod-{number:03},{cpu},{memory},{cards},{milli},{spec},LS,Running,0,1")
    (openb / f"openb_pod_list_{workload}.csv").write_text("\n".join(rows) + "\n")
    if seeds:
        (folder / "openb_sequences").mkdir()
        arrays = {}
        for seed in seeds:
            arrays[f"pods_{seed}"] = np.tile(np.arange(pods)[::-1], 3)
            arrays[f"nodes_{seed}"] = np.arange(len(NODES) - 1)
        np.savez(folder / "openb_sequences" / f"{workload}.npz", **arrays)
    return folder
