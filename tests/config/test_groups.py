"""Groups and wishes for nearness in job documents: what they come to, and what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from aliquot.core.wishes import Level, Wish
from tests.config.documents import CLUSTER, check_error, job, jobs_of, load, nodes

WORKERS = "{name: workers, members: 4, minimum: 2, gpu: {count: 8}, topology: {required: rack}}"


def test_a_launcher_and_workers(tmp_path: Path) -> None:
    found = jobs_of(tmp_path, job(f"{{groups: [{{name: launcher, cpu: 4}}, {WORKERS}]}}"))["j"]
    assert [member.cards for member in found.members] == [0, 8, 8, 8, 8]
    launcher, workers = found.groups
    assert (launcher.name, launcher.members, launcher.least, launcher.wish) == ("launcher", (0,), 1, None)
    assert (workers.members, workers.least) == ((1, 2, 3, 4), 2)
    assert workers.wish == Wish(required=Level.RACK)
    assert found.least == 3


def test_a_group_of_members_that_differ(tmp_path: Path) -> None:
    text = job("{groups: [{name: g, members: [{cpu: 1}, {count: 2, gpu: {count: 4}}]}]}")
    assert [member.cards for member in jobs_of(tmp_path, text)["j"].members] == [0, 4, 4]


@pytest.mark.parametrize(
    ("said", "wish"),
    [
        ("{required: rack}", Wish(required=Level.RACK)),
        ("{preferred: links}", Wish(preferred=Level.LINKS)),
        ("{required: block, preferred: rack}", Wish(required=Level.BLOCK, preferred=Level.RACK)),
        ("{balanced: rack, slice: 2, over: 2}", Wish(balanced=Level.RACK, slice=2, over=2)),
    ],
)
def test_wishes_of_a_job(tmp_path: Path, said: str, wish: Wish) -> None:
    assert jobs_of(tmp_path, job(f"{{members: 4, cpu: 1, topology: {said}}}"))["j"].wish == wish


def test_nodes_say_where_they_are(tmp_path: Path) -> None:
    text = nodes("{name: n, count: 2, shape: dgx-a100-320, rack: r1, block: b1, linkDomain: d1}")
    first = load(tmp_path, text, job("{cpu: 1}")).nodes[0]
    assert (first.rack, first.block, first.link_domain) == ("r1", "b1", "d1")


SHARING = "{memory: 1GiB, compute: 40%, bandwidth: 10%}"
GROUP = "{groups: [{name: a, cpu: 1}]"


@pytest.mark.parametrize(
    ("said", "field", "why"),
    [
        ("{groups: [], cpu: 1}", "spec.cpu", "both 'cpu' of the job and groups"),
        ("{groups: [{name: a, cpu: 1}], members: 2}", "spec.members", "both 'members' of the job and groups"),
        ("{groups: []}", "spec.groups", "empty"),
        ("{groups: [{cpu: 1}]}", "spec.groups[0]", "'name' is missing"),
        ("{groups: [{name: a, cpu: 1}, {name: a, cpu: 1}]}", "spec.groups[1]", "two groups called 'a'"),
        ("{groups: [{name: a}]}", "spec.groups[0]", "asks for nothing"),
        ("{groups: [{name: a, cpu: 1, minimum: 2}]}", "spec.groups[0].minimum", "minimum 2 of 1"),
        ("{groups: [{name: a, cpu: 1, minimum: 0}]}", "spec.groups[0].minimum", "minimum 0 of 1"),
        (GROUP + ", minimum: 2}", "spec.minimum", "minimum 2 of 1 members"),
        (
            f"{{members: 2, gpu: {{count: 2}}, topology: {{required: rack}}, together: {SHARING}}}",
            "spec.together",
            "both topology and together",
        ),
        (GROUP + ", spread: true}", "spec.spread", "both groups and spread"),
        ("{members: 2, cpu: 1, topology: {}}", "spec.topology", "says of no level"),
        ("{members: 2, cpu: 1, topology: {required: row}}", "spec.topology.required", "'row' is not known"),
        (
            "{members: 3, cpu: 1, topology: {balanced: rack, slice: 2}}",
            "spec.topology",
            "3 members are no slices of 2",
        ),
        ("{members: 2, cpu: 1, topology: {require: rack}}", "spec.topology.require", "unknown key"),
        (
            "{members: 2, cpu: 1, topology: {preferred: rack, balanced: rack}}",
            "spec.topology",
            "both preferred and balanced",
        ),
        (
            "{members: 2, cpu: 1, topology: {required: rack, slice: 2}}",
            "spec.topology.slice",
            "without balanced",
        ),
        (
            "{members: 2, cpu: 1, topology: {required: rack, preferred: block}}",
            "spec.topology",
            "can't be told apart by block",
        ),
        ("{cpu: 1, topology: {required: rack}}", "spec.topology", "one member on one node"),
        (
            "{members: [{cpu: 1}, {cpu: 2}], topology: {balanced: rack}}",
            "spec.topology",
            "members that ask for different things",
        ),
        (
            "{groups: [{name: a, cpu: 1}, {name: b, cpu: 1}], topology: {balanced: rack}}",
            "spec.topology",
            "groups are not cut into slices together",
        ),
        (
            "{members: 2, cpu: 1, spread: true, topology: {required: rack}}",
            "spec.spread",
            "both topology and spread",
        ),
    ],
)
def test_what_is_wrong(tmp_path: Path, said: str, field: str, why: str) -> None:
    check_error(tmp_path, CLUSTER + "---\n" + job(said), field, why, after_line=6)
