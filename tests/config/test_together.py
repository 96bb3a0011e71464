"""Sharing by agreement: what a job says of it, what is wrong with it, and the policies that use it."""

from __future__ import annotations

from pathlib import Path

import pytest

from aliquot.config.spelling import spell_policy
from aliquot.core.settings import Colocation, Settings, SpotCap
from aliquot.core.together import Together
from tests.config.documents import CLUSTER, check_error, document, job, jobs_of, load


def policy_of(folder: Path, spec: str) -> Settings:
    """The policy of a document."""
    return dict(load(folder, CLUSTER, document("Policy", "p", spec)).policies)["p"]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        pytest.param(
            "{memory: 12GiB, stages: {storage: 10%, cpu: 20%, gpu: 60%, network: 10%}, iteration: 180ms}",
            Together(12 * 1024, (100, 200, 600, 100), 180),
            id="stages of an iteration",
        ),
        pytest.param(
            "{memory: 1GiB, stages: {cpu: 1/3, gpu: 2/3}}", Together(1024, (0, 333, 667, 0)), id="rounding"
        ),
        pytest.param(
            "{memory: 1GiB, compute: 45%, bandwidth: 0, overhead: 8%}",
            Together(1024, compute_milli=450, bandwidth_milli=0, overhead_milli=80),
            id="use, measured alone",
        ),
    ],
)
def test_what_a_job_says_of_sharing(tmp_path: Path, said: str, expected: Together) -> None:
    found = jobs_of(tmp_path, job(f"{{gpu: {{count: 2}}, together: {said}}}"))["j"]
    assert found.together == expected
    assert found.may_share


@pytest.mark.parametrize(
    ("spec", "field", "why"),
    [
        ("{gpu: {}, together: {compute: 40%, bandwidth: 40%}}", "spec.together", "'memory' is missing"),
        ("{gpu: {}, together: {memory: 1GiB}}", "spec.together", "has to be said once"),
        (
            "{gpu: {}, together: {memory: 1GiB, compute: 1%, bandwidth: 1%, stages: {gpu: 100%}}}",
            "spec.together",
            "has to be said once",
        ),
        ("{gpu: {}, together: {memory: 1GiB, compute: 40%}}", "spec.together", "compute without the other"),
        ("{gpu: {}, together: {memory: 1GiB, stages: {gpu: 90%}}}", "spec.together.stages", "90% in all"),
        (
            "{gpu: {}, together: {memory: 1GiB, stages: {disk: 100%}}}",
            "spec.together.stages.disk",
            "unknown key",
        ),
        (
            "{gpu: {}, together: {memory: 1GiB, compute: 1%, bandwidth: 1%, iteration: 1s}}",
            "spec.together.iteration",
            "without its stages",
        ),
        (
            "{gpu: {compute: 50%}, together: {memory: 1GiB, stages: {gpu: 100%}}}",
            "spec.together",
            "whole cards",
        ),
        ("{cpu: 1, together: {memory: 1GiB, stages: {gpu: 100%}}}", "spec.together", "whole cards"),
        (
            "{gpu: {}, elastic: {widths: [1, 2], serial: 5%}, together: {memory: 1GiB, stages: {gpu: 100%}}}",
            "spec.together",
            "changing shape",
        ),
        (
            "{gpu: {exclusive: true, memory: 8GiB}, together: {memory: 9GiB, stages: {gpu: 100%}}}",
            "spec.together.memory",
            "more memory together",
        ),
    ],
)
def test_what_is_no_agreement(tmp_path: Path, spec: str, field: str, why: str) -> None:
    check_error(tmp_path, job(spec), field, why)


@pytest.mark.parametrize(
    ("spec", "colocation", "spot"),
    [
        ("{}", None, None),
        ("{colocation: true, spot: true}", Colocation(), SpotCap()),
        (
            "{colocation: {leastGain: 0.5, most: 3}, spot: {quantile: 0.95, horizon: 2h}}",
            Colocation(500, 3),
            SpotCap(950, 7_200_000),
        ),
        ("{colocation: false, spot: false}", None, None),
    ],
)
def test_policies_that_let_jobs_share_or_cap_spot_work(
    tmp_path: Path, spec: str, colocation: Colocation | None, spot: SpotCap | None
) -> None:
    found = policy_of(tmp_path, spec)
    assert (found.colocation, found.spot_cap) == (colocation, spot)
    said = spell_policy(found)
    again = {key: value for key, value in said.items() if key.startswith(("colocation", "spot"))}
    if spot is None:
        assert again == {"colocation": "false", "spot": "false"}
        return
    gain, most, quantile, horizon = again.values()
    shared, capped = f"{{leastGain: {gain}, most: {most}}}", f"{{quantile: {quantile}, horizon: {horizon}}}"
    assert policy_of(tmp_path, f"{{colocation: {shared}, spot: {capped}}}") == found


def test_more_seats_than_there_are_stages_are_refused(tmp_path: Path) -> None:
    text = document("Policy", "p", "{colocation: {most: 5}}")
    check_error(tmp_path, text, "spec.colocation.most", "5")
