"""Variables of the environment: folders that somebody named come before the usual one."""

from __future__ import annotations

from pathlib import Path

import pytest

from aliquot.config import read_environment

USUAL = Path("../shared/traces")


@pytest.mark.parametrize(
    ("variables", "folders"),
    [
        pytest.param({}, (USUAL,), id="nothing said: beside the checkout"),
        pytest.param({"ALIQUOT_TRACES": ""}, (USUAL,), id="empty is not said"),
        pytest.param({"ALIQUOT_SHARED": "s"}, (Path("s/traces"), USUAL), id="a shared folder"),
        pytest.param(
            {"ALIQUOT_TRACES": "t", "ALIQUOT_SHARED": "s"},
            (Path("t"), Path("s/traces"), USUAL),
            id="traces before shared",
        ),
    ],
)
def test_the_folders_of_traces(variables: dict[str, str], folders: tuple[Path, ...]) -> None:
    assert read_environment(variables).trace_folders == folders
