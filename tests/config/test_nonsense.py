"""Whatever stands where a value belongs: it is taken, or it is one DocumentError with a file and advice."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.config.jobs import JOB
from aliquot.config.policies import BACKFILL, OBJECTIVES, ORDER, OVERRUN, POLICY, PREEMPTION, RESCUE
from aliquot.config.queues import AMOUNTS, LIMITS, QUEUE
from aliquot.core.errors import DocumentError
from tests.config.documents import CLUSTER, document, load

NONSENSE = (
    *("0", "-1", "1", "0.0005", "1e9", "99999999999999999999", "010", "0x10", ".nan", ".inf", "-.inf", "1/0"),
    *("''", "' '", "' 1 '", "true", "no", "unlimited", "none", "j", "j-0", "0s", "1h", "101%", "-5%", "1GB"),
    *("0GiB", "1_000MiB", "[]", "[1]", "[[1]]", "[j, j]", "{}", "{a: 1}", "{size: 2}", "{nominal: 0}"),
    *(
        "[{cpu: 1}]",
        "[{count: 0}]",
        "{widths: [1], speeds: [1]}",
        "{T4: 1}",
        "{T4: {month: 0}}",
        "~",
        '"\\x07"',
    ),
)
PLACES = (
    *(
        (kind, "{{{}}}", key)
        for kind, table in (("Job", JOB), ("Queue", QUEUE), ("Policy", POLICY))
        for key in table
    ),
    *(("Queue", "{{quota: {{{}}}}}", key) for key in AMOUNTS),
    *(("Queue", f"{{{{quota: {{{{{what}: {{{{{{}}}}}}}}}}}}}}", key) for what in AMOUNTS for key in LIMITS),
    *(
        ("Policy", f"{{{{{part}: {{{{{{}}}}}}}}}}", key)
        for part, table in (
            ("objectives", OBJECTIVES),
            ("order", ORDER),
            ("backfill", BACKFILL),
            ("overrun", OVERRUN),
            ("preemption", PREEMPTION),
            ("rescue", RESCUE),
        )
        for key in table
    ),
)


@given(st.sampled_from(PLACES), st.sampled_from(NONSENSE), st.booleans())
def test_nonsense_is_taken_or_refused_in_one_line(
    place: tuple[str, str, str], value: str, beside: bool
) -> None:
    kind, form, key = place
    fields = f"{key}: {value}"
    if kind == "Job" and beside and key != "gpu":
        fields += ", gpu: {count: 2}"
    with tempfile.TemporaryDirectory() as folder:
        refused = None
        try:
            load(Path(folder), CLUSTER, document(kind, "j", form.format(fields)))
        except DocumentError as error:
            refused = error
        if refused is not None:
            assert refused.file.endswith("a.yaml")
            assert "\n" not in str(refused)
            assert refused.field


@pytest.mark.parametrize("place", PLACES, ids=lambda place: f"{place[0]} {place[1]} {place[2]}")
def test_no_field_takes_a_list_of_lists(tmp_path: Path, place: tuple[str, str, str]) -> None:
    kind, form, key = place
    with pytest.raises(DocumentError) as caught:
        load(tmp_path, CLUSTER, document(kind, "j", form.format(f"{key}: [[[x]]]")))
    assert caught.value.hint
