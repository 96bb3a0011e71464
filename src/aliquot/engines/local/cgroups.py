"""One cgroup per member of a job: limits, the list of its processes, and a way to end them all.

Works on version 1, version 2 and both side by side. Only groups below its own parent are made, changed or
removed. What this host cannot enforce is named, never passed over.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from aliquot.engines.local.mounts import CONTROLS, Mount, find_mounts, name_layout
from aliquot.engines.local.payload import Limits

_PERIOD_US: Final = 100_000
_MIB: Final = 1 << 20


class Group:
    """The directories of the group `name`, one per hierarchy: below all `parents` unless `folders` are given.

    `unenforced`: limits asked for but not in force.
    """

    def __init__(
        self, name: str, parents: Mapping[Path, Mount], folders: dict[Path, Mount] | None = None
    ) -> None:
        self._name, self._parents, self._folders = name, parents, folders
        self.unenforced: list[str] = []
        self.is_bare = False  # without limits, in one hierarchy: whoever enters makes and removes it
        self.has_kill: bool | None = None  # None: look

    @property
    def folders(self) -> dict[Path, Mount]:
        """Worked out when first asked for: of a job that ends as it should nobody asks."""
        if self._folders is None:
            self._folders = {parent / self._name: mount for parent, mount in self._parents.items()}
        return self._folders

    @property
    def procs_files(self) -> list[Path]:
        """What a process writes `0` to, to enter. The first is the one that lists all of them."""
        ordered = sorted(self.folders, key=lambda folder: -self.folders[folder].version)
        return [folder / "cgroup.procs" for folder in ordered]

    @property
    def into(self) -> Path | None:
        """The folder that a process can be born in: version 2's, which is the first of `procs_files` then."""
        return next((folder for folder, mount in self.folders.items() if mount.version == 2), None)

    @property
    def kill_file(self) -> Path | None:
        """Writing `1` here ends every process at once (version 2, Linux 5.14); None where there is none."""
        if self.has_kill is False:
            return None
        found = (folder / "cgroup.kill" for folder, mount in self.folders.items() if mount.version == 2)
        return next((path for path in found if self.has_kill or path.exists()), None)

    def pids(self) -> list[int]:
        """Processes in the group now."""
        found: set[int] = set()
        for path in self.procs_files:
            found.update(map(int, _read(path).split()))
        return sorted(found)

    def kill(self) -> None:
        """KILL every process in it once; ask `pids` whether all are gone."""
        if self.kill_file is not None:
            _write(self.kill_file, "1")
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def oom_kills(self) -> int | None:
        """Processes the kernel ended for want of memory in this group; None where it does not say."""
        for folder, mount in self.folders.items():
            if "memory" in mount.controllers:
                name = "memory.events" if mount.version == 2 else "memory.oom_control"
                return _entry(_read(folder / name), "oom_kill")
        return None

    def memory_mib(self) -> int | None:
        """Memory in use, MiB; None where unknown."""
        for folder, mount in self.folders.items():
            if "memory" in mount.controllers:
                name = "memory.current" if mount.version == 2 else "memory.usage_in_bytes"
                text = _read(folder / name).strip()
                return int(text) // _MIB if text else None
        return None

    def remove(self) -> bool:
        """Take the directories away; False where a process is still in one."""
        for folder in self.folders:
            try:
                folder.rmdir()
            except FileNotFoundError:
                continue
            except OSError:
                return False
        return True


class Cgroups:
    """Groups below `parent` in every hierarchy under `root`. `missing`: control -> why it is not in force."""

    def __init__(self, root: Path = Path("/"), parent: str = "aliquot") -> None:
        self.mounts = find_mounts(root)
        self.layout = name_layout(self.mounts)
        self.missing: dict[str, str] = {}
        self._parents = dict(self._prepare(parent))
        # the one that lists all processes of a group: version 2 where it is there
        self._listing = min(self._parents, key=lambda path: -self._parents[path].version, default=None)
        self._has_kill = self._listing is not None and (self._listing / "cgroup.kill").exists()
        for control in CONTROLS:
            if control == "devices" and self.layout == "v2":
                self.missing[control] = "version 2 has no list of devices"
            elif not any(control in mount.controllers for mount in self._parents.values()):
                self.missing.setdefault(control, "no hierarchy carries it")

    def make(self, name: str, limits: Limits) -> Group:
        """A group with `limits`, made now or there already. `name` is one path component.

        In the hierarchies whose limits need it, and in one to know its processes; where that is all, it is
        only named: the supervisor makes it.
        """
        wanted = _wanted(limits)
        if not wanted and self._listing is not None:
            group = Group(name, self._parents, {self._listing / name: self._parents[self._listing]})
            group.is_bare, group.has_kill = True, self._has_kill
            return group
        controls = {control for control, _ in wanted}
        group = Group(name, self._parents, {})
        for parent, mount in self._parents.items():
            if parent != self._listing and not controls & mount.controllers:
                continue
            folder = parent / name
            try:
                folder.mkdir(exist_ok=True)
            except OSError as error:
                group.unenforced += [f"{control}: {error.strerror}" for control in sorted(mount.controllers)]
                continue
            group.folders[folder] = mount
            if mount.version == 1 and "cpuset" in mount.controllers:
                _copy_cpuset(folder)
        for control, text in wanted:
            if control in self.missing:
                group.unenforced.append(f"{control}: {self.missing[control]}")
                continue
            for folder, mount in group.folders.items():
                if control in mount.controllers:
                    group.unenforced += _apply(folder, mount, control, text)
        return group

    def find(self, name: str) -> Group:
        """The group called `name`, whether it is there or not."""
        return Group(name, self._parents)

    def _prepare(self, parent: str) -> Iterator[tuple[Path, Mount]]:
        """The parent of our groups in each hierarchy that lets us make one."""
        for mount in self.mounts:
            folder = mount.path / parent
            try:
                folder.mkdir(exist_ok=True)
            except OSError as error:
                self.missing.update(
                    dict.fromkeys(mount.controllers & {*CONTROLS}, f"{folder}: {error.strerror}")
                )
                continue
            if mount.version == 1:
                if "cpuset" in mount.controllers:
                    _copy_cpuset(folder)
                yield folder, mount
            else:
                yield folder, mount._replace(controllers=self._delegate(mount, folder))

    def _delegate(self, mount: Mount, folder: Path) -> frozenset[str]:
        """Hand our controllers down to groups below `folder`; those that came through."""
        for control in sorted(mount.controllers & {*CONTROLS}):
            for above in (mount.path, folder):
                if error := _write(above / "cgroup.subtree_control", f"+{control}"):
                    self.missing[control] = f"{above}/cgroup.subtree_control: {error}"
        return frozenset(_read(folder / "cgroup.subtree_control").split())


def _wanted(limits: Limits) -> list[tuple[str, dict[str, str]]]:
    """(control, {file of version 1 or 2: text}) of each limit that was said."""
    wanted: list[tuple[str, dict[str, str]]] = []
    if limits.memory_mib is not None:
        size = str(limits.memory_mib * _MIB)
        wanted.append(
            (
                "memory",
                {
                    "memory.max": size,
                    "memory.swap.max": "0",
                    "memory.oom.group": "1",
                    "memory.limit_in_bytes": size,
                    "memory.memsw.limit_in_bytes": size,
                },
            )
        )
    if limits.cpu_milli is not None:
        quota = max(1000, limits.cpu_milli * _PERIOD_US // 1000)  # 1500 milli-cores: 150 ms in each 100 ms
        wanted.append(("cpu", {"cpu.max": f"{quota} {_PERIOD_US}", "cpu.cfs_quota_us": str(quota)}))
    if limits.mems is not None:
        wanted.append(("cpuset", {"cpuset.mems": limits.mems}))
    if limits.cpus is not None:
        wanted.append(("cpuset", {"cpuset.cpus": limits.cpus}))
    if limits.pids is not None:
        wanted.append(("pids", {"pids.max": str(limits.pids)}))
    wanted += [("devices", {"devices.deny": _device_rule(path)}) for path in limits.denied_devices]
    return wanted


_OPTIONAL: Final = {"memory.swap.max", "memory.oom.group", "memory.memsw.limit_in_bytes"}


def _apply(folder: Path, mount: Mount, control: str, texts: dict[str, str]) -> list[str]:
    """Write the files that this version has; what failed, in words."""
    wrong, written = [], 0
    for name, text in texts.items():
        path = folder / name
        if not path.exists():
            continue
        written += 1
        error = _write(path, text) if text else "no such device"
        if error and name not in _OPTIONAL:
            wrong.append(f"{control}: {name} = {text}: {error}")
    return wrong if written else [f"{control}: version {mount.version} has none of {', '.join(texts)}"]


def _device_rule(path: str) -> str:
    """`c MAJOR:MINOR rwm`, or "" where there is no such device."""
    try:
        number = Path(path).stat().st_rdev
    except OSError:
        return ""
    return f"c {os.major(number)}:{os.minor(number)} rwm"


def _copy_cpuset(folder: Path) -> None:
    """A version 1 cpuset begins empty and takes no process until both lists are filled."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        if not _read(folder / name).strip():
            _write(folder / name, _read(folder.parent / name).strip())


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except OSError:
        return ""


def _write(path: Path, text: str) -> str:
    """ "" or why it could not be written. Opened without creating: the kernel makes these files."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, text.encode("ascii"))
        finally:
            os.close(fd)
    except OSError as error:
        return error.strerror or errno.errorcode.get(error.errno or 0, "unknown")
    return ""


def _entry(text: str, key: str) -> int | None:
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if name == key:
            return int(value)
    return None
