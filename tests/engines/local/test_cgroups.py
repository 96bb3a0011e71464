"""Cgroups: every layout is read as it is, limits hold where the kernel lets us, the rest is named."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from aliquot.core.events import Outcome
from aliquot.core.ids import JobId
from aliquot.engines.local.cgroups import Cgroups
from aliquot.engines.local.confining import Grounds
from aliquot.engines.local.mounts import find_mounts, name_layout
from aliquot.engines.local.payload import Limits
from tests.support.build import a_request
from tests.support.local import Site, is_root, wait_for
from tests.support.uml import Machine, need_kernel

PARENT = f"aliquot-test-{os.getpid()}"
BOOT_S = 300  # and all tests, on a slow machine within a busy one

V1 = """\
20 1 8:1 / / rw - ext4 /dev/sda1 rw
31 20 0:28 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct
33 31 0:30 / /sys/fs/cgroup/my\\040memory rw - cgroup cgroup rw,memory
34 31 0:31 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd
35 31 0:32 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer
"""
V2 = "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n"
BOTH = V1 + "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"


def a_host(root: Path, mountinfo: str, offered: str = "") -> Path:
    """A tree that looks like a host; kernel files that our writes go to are plain files."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/mountinfo").write_text(mountinfo)
    for line in mountinfo.splitlines():
        fields = line.split(" - ")
        point = root / fields[0].split()[4].replace("\\040", " ").lstrip("/")
        point.mkdir(parents=True, exist_ok=True)
        if fields[1].startswith("cgroup2"):
            (point / "cgroup.controllers").write_text(offered)
            (point / "cgroup.subtree_control").write_text("")
    return root


@pytest.mark.parametrize(
    ("mountinfo", "offered", "layout", "carried"),
    [
        pytest.param(V1, "", "v1", [(1, {"cpu"}), (1, {"memory"})], id="version 1"),
        pytest.param(V2, "cpu io memory pids\n", "v2", [(2, {"cpu", "io", "memory", "pids"})], id="2"),
        pytest.param(BOTH, "rdma\n", "hybrid", [(1, {"cpu"}), (1, {"memory"}), (2, {"rdma"})], id="both"),
        pytest.param("", "", "none", [], id="none"),
    ],
)  # fmt: skip  # a case per line
def test_every_layout_is_read_as_it_is(
    tmp_path: Path, mountinfo: str, offered: str, layout: str, carried: list[tuple[int, set[str]]]
) -> None:
    mounts = find_mounts(a_host(tmp_path, mountinfo, offered))
    assert name_layout(mounts) == layout
    assert [(mount.version, set(mount.controllers)) for mount in mounts] == carried


def test_what_a_host_cannot_enforce_is_named(tmp_path: Path) -> None:
    groups = Cgroups(a_host(tmp_path, V1))
    assert groups.missing == {
        "cpuset": "no hierarchy carries it",
        "pids": "no hierarchy carries it",
        "devices": "no hierarchy carries it",
    }
    group = groups.make("job-x", Limits(pids=10, cpus="0-3"))
    assert group.unenforced == ["cpuset: no hierarchy carries it", "pids: no hierarchy carries it"]


def test_version_2_has_no_list_of_devices_and_says_so(tmp_path: Path) -> None:
    groups = Cgroups(a_host(tmp_path, V2, "cpu memory"))
    assert groups.missing["devices"] == "version 2 has no list of devices"


def test_a_host_without_cgroups_still_makes_groups_of_nothing(tmp_path: Path) -> None:
    group = Cgroups(a_host(tmp_path, "")).make("job-x", Limits(memory_mib=1))
    assert (group.procs_files, group.kill_file, group.pids()) == ([], None, [])
    assert group.unenforced == ["memory: no hierarchy carries it"]


# --- this machine's own ----------------------------------------------------------------------------------


@pytest.fixture
def groups() -> Iterator[Cgroups]:
    if not is_root():
        pytest.skip("cgroups can be made only by root, or below a delegated group")
    made = Cgroups(parent=PARENT)
    yield made
    for mount in made.mounts:
        if (mount.path / PARENT).is_dir():
            (mount.path / PARENT).rmdir()  # fails where a test left a group behind


@pytest.fixture
def site(tmp_path: Path, groups: Cgroups) -> Iterator[Site]:
    with Site(tmp_path, durable=False, cgroups=groups) as made:
        yield made


def need(groups: Cgroups, *controls: str) -> None:
    """Skips where this machine cannot enforce one of `controls`."""
    absent = [f"{control}: {groups.missing[control]}" for control in controls if control in groups.missing]
    if absent:
        pytest.skip(f"no such cgroup here: {'; '.join(absent)}")


def test_a_job_that_takes_more_memory_than_granted_is_ended_for_it(site: Site, groups: Cgroups) -> None:
    need(groups, "memory")
    script = "x=$(head -c 60000000 /dev/zero | tr '\\0' x); echo ${#x}"
    site.submit("big", script, limits=Limits(memory_mib=24)).submit("small", "echo well").until_over(
        "big", "small"
    )
    assert site.ending("big").reason == "memory-limit"
    assert (site.outcomes("big"), site.outcomes("small")) == ([Outcome.FAILED], [Outcome.SUCCEEDED])


def test_half_a_core_is_half_a_core(site: Site, groups: Cgroups) -> None:
    need(groups, "cpu")
    script = "i=0; while [ $i -lt 1000000000 ]; do i=$((i+1)); done"
    site.submit("j", script, limits=Limits(cpu_milli=300), time_ms=1000).until_over("j")
    ending = site.ending("j")
    assert ending.user_ms + ending.system_ms <= 450


def test_a_job_cannot_fork_without_end(site: Site, groups: Cgroups) -> None:
    need(groups, "pids")
    script = "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 5 & done; echo unreached"
    site.submit("j", script, limits=Limits(pids=5)).until_over("j")
    assert "unreached" not in site.output("j")
    assert "fork" in site.output("j").lower()


def test_a_device_that_was_not_granted_does_not_open(site: Site, groups: Cgroups) -> None:
    need(groups, "devices")
    script = "echo x > /dev/full; head -c 1 /dev/zero | wc -c"
    site.submit("j", script, limits=Limits(denied_devices=("/dev/full",))).until_over("j")
    assert "Operation not permitted" in site.output("j")
    assert site.output("j").endswith("1\n")


def test_a_cards_device_file_opens_through_a_grant_of_that_card_alone(site: Site, groups: Cgroups) -> None:
    """Whatever a job makes of the names of its cards; one without cards opens none."""
    need(groups, "devices")
    cards = [card.uuid for card in site.nodes[0].cards]
    files = ("/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")  # as good as any cards' own
    site.launcher.grounds = Grounds(devices=dict(zip(cards, files, strict=True)))
    script = f"for file in {' '.join(files)}; do head -c 0 $file 2>/dev/null && echo $file; done; sleep 60"
    site.submit("one", script).submit("two", script, a_request(2)).submit("none", script, a_request(0, cpu=1))
    site.until_running("one", "two", "none")
    for name, count in (("one", 1), ("two", 2), ("none", 0)):
        held = site.world.grants[JobId(name)][0].placement.cards
        mine = [files[cards.index(card)] for card in held]
        assert len(mine) == count
        wait_for(
            lambda name=name, mine=mine: site.output(name).split() == sorted(mine, key=files.index), name
        )
        site.cancel(name)
    site.until_over("one", "two", "none")


def test_cores_are_those_that_were_named(site: Site, groups: Cgroups) -> None:
    need(groups, "cpuset")
    site.submit(
        "j", "grep Cpus_allowed_list /proc/self/status", limits=Limits(cpus="0", mems="0")
    ).until_over("j")
    assert site.output("j").split() == ["Cpus_allowed_list:", "0"]


def test_a_limit_the_kernel_refuses_is_noted_and_the_job_runs(site: Site, groups: Cgroups) -> None:
    need(groups, "cpuset")
    site.submit("j", "sleep 60", limits=Limits(cpus="900")).until_running("j")
    (lapse,) = site.launcher.lapses(JobId("j"), ())
    assert lapse.startswith("cpuset: cpuset.cpus = 900:")
    site.cancel("j").until_over("j")


def test_a_process_that_wiped_its_environment_and_lost_its_supervisor_is_found_by_its_group(
    site: Site, groups: Cgroups
) -> None:
    if not groups.find("x").procs_files:
        pytest.skip("no cgroups here")
    site.submit("j", "env -i setsid sleep 300 & sleep 300").until_running("j")
    group = groups.find("job-j.1.0")
    end = time.monotonic() + 5
    while len(group.pids()) < 3 and time.monotonic() < end:
        time.sleep(0.01)
    pid = site.at("j").holder()
    assert pid is not None
    os.kill(pid, 9)
    site.until(lambda: site.outcomes("j") == [Outcome.LOST])
    assert group.pids() == []
    site.cancel("j").until_over("j")


# --- a machine that has version 2 alone --------------------------------------------------------------------


@pytest.mark.uml
def test_on_a_machine_with_version_2_alone_the_limits_hold_too(tmp_path: Path) -> None:
    """These very tests, on a User-Mode Linux machine. One core of its own has no cpuset."""
    need_kernel()
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-rs",
        "--tb=short",
        "--color=no",
        "-k",
        "not alone",
        __file__,
    ]
    words += ["-p", "no:cacheprovider", "--basetemp", "/run/pytest"]
    variables = {"ALIQUOT_NO_SKIP": "", "ALIQUOT_TEST_PATIENCE_S": str(BOOT_S)}
    with Machine(tmp_path / "machine", words, **variables) as machine:
        assert machine.exit_status(patience_s=BOOT_S) == 0, "\n".join(machine.lines)
        skipped = machine.said("SKIPPED ")
        assert all("cpuset" in line or "devices" in line for line in skipped), skipped
        assert any("passed" in line for line in machine.lines)
