"""What people are told of the end of an attempt, from what the journal and the supervisors recorded."""

from __future__ import annotations

import pytest

from aliquot.control.end_views import GivenUp
from aliquot.control.endings import reason_of, status_of, with_exits
from aliquot.control.views import AttemptView, Exit
from aliquot.interfaces.cli.endings import exit_line, given_up_words, outcome_words

FAILED = Exit("exited", 1)


def killed(reason: str, number: int = 15) -> Exit:
    """Ended by a signal, for a reason."""
    return Exit("signalled", 128 + number, reason, signal=number)


@pytest.mark.parametrize(
    ("recorded", "exits", "told"),
    [
        pytest.param("succeeded", (Exit("exited", 0),), "succeeded", id="a success"),
        pytest.param("failed", (FAILED,), "failed", id="a failure"),
        pytest.param("lost", (FAILED,), "failed", id="a failure that is tried again"),
        pytest.param("lost", (None,), "lost", id="its supervisor was killed"),
        pytest.param("lost", (), "lost", id="nothing was recorded"),
        pytest.param("lost", (FAILED, None), "lost", id="of one member nothing is known"),
        pytest.param("lost", (FAILED, killed("gang")), "failed", id="the others end since one failed"),
        pytest.param("lost", (killed("preempted"),), "preempted", id="it made room"),
        pytest.param("lost", (Exit("exited", 0, "preempted"),), "preempted", id="it made room by itself"),
        pytest.param("lost", (killed("moved"),), "moved", id="it was moved"),
        pytest.param("lost", (killed("supervisor-stopped"),), "lost", id="somebody stopped its supervisor"),
        pytest.param(
            "failed", (Exit("unseen", 0, "lost"),), "lost", id="its supervisor was killed once more"
        ),
        pytest.param("failed", (Exit("unseen", 0, "time-limit"),), "failed", id="it hung at its time limit"),
        pytest.param("failed", (killed("cancelled"),), "cancelled", id="its owner gave it up"),
        pytest.param("failed", (killed("time-limit"),), "failed", id="its time was up"),
        pytest.param("resized", (Exit("exited", 3, "resized"),), "resized", id="another width"),
        pytest.param("refused", (), "refused", id="the node refused it"),
    ],
)
def test_an_attempt_is_told_as_what_it_was(recorded: str, exits: tuple[Exit | None, ...], told: str) -> None:
    attempt = AttemptView(1, 0, (), started_ms=1, ended_ms=2, outcome=recorded)
    seen = with_exits(attempt, lambda: exits)
    assert (seen.outcome, seen.exits) == (told, exits)
    assert with_exits(seen, lambda: ()) == seen, "told once, it stays"


def test_of_an_attempt_that_runs_no_end_is_looked_for() -> None:
    def never() -> tuple[Exit | None, ...]:
        raise AssertionError

    attempt = AttemptView(1, 0, (), started_ms=1)
    assert with_exits(attempt, never) == attempt


def test_the_reason_of_a_gang_is_that_of_the_member_that_began_it() -> None:
    assert reason_of((killed("gang"), None, killed("time-limit"), killed("gang"))) == "time-limit"
    assert reason_of((FAILED, killed("gang"))) == ""


@pytest.mark.parametrize(
    ("exits", "status"),
    [
        pytest.param((Exit("exited", 0), Exit("exited", 0)), 0, id="all is well"),
        pytest.param((killed("gang"), Exit("exited", 4), killed("gang", 9)), 4, id="a later member failed"),
        pytest.param(
            (Exit("exited", 1, ended_ms=9), Exit("exited", 4, ended_ms=5)),
            4,
            id="the second failed first",
        ),
        pytest.param((Exit("exited", 0), Exit("exited", 4)), 4, id="one was done before another failed"),
        pytest.param((killed("time-limit"), killed("time-limit")), 143, id="the time of all was up"),
        pytest.param((None,), None, id="nobody saw how"),
        pytest.param((Exit("unseen", 0, "lost"), killed("gang")), None, id="its supervisor was killed"),
        pytest.param((killed("gang"), None), None, id="of who began it nobody saw how it ended"),
        pytest.param((Exit("exited", 0), None), None, id="of one nobody saw how it ended"),
        pytest.param((None, FAILED), 1, id="one was lost and another failed"),
        pytest.param((Exit("refused", 0), killed("gang")), 127, id="one could not be started"),
        pytest.param((), None, id="nothing was recorded"),
    ],
)
def test_an_exit_code_is_that_of_the_member_that_failed_first(
    exits: tuple[Exit | None, ...], status: int | None
) -> None:
    assert status_of(exits) == status


@pytest.mark.parametrize(
    ("ending", "line"),
    [
        pytest.param(None, "ended, and nobody saw how", id="not seen"),
        pytest.param(
            Exit("unseen", 0, "lost"),
            "ended, and nobody saw how: its supervisor was killed time after time (lost)",
            id="not seen too often",
        ),
        pytest.param(
            Exit("exited", 3, wall_ms=1500), "exited with 3 after 1.5 s; cpu 0 s, at most 0 MiB", id="a code"
        ),
        pytest.param(
            killed("", 9),
            "ended by signal 9 (KILL), exit code 137, after 0 s; cpu 0 s, at most 0 MiB",
            id="a signal",
        ),
        pytest.param(
            Exit("signalled", 139),
            "ended by signal 11 (SEGV), exit code 139, after 0 s; cpu 0 s, at most 0 MiB",
            id="a signal of an older record",
        ),
        pytest.param(
            killed("", 40),
            "ended by signal 40, exit code 168, after 0 s; cpu 0 s, at most 0 MiB",
            id="real-time",
        ),
        pytest.param(
            killed("time-limit"),
            "ended by signal 15 (TERM), exit code 143, after 0 s: it ran into its time limit (time-limit); "
            "cpu 0 s, at most 0 MiB",
            id="a limit",
        ),
        pytest.param(
            Exit("exited", 0, "preempted"),
            "exited with 0 after 0 s: it made room for others (preempted); cpu 0 s, at most 0 MiB",
            id="an end in good order that was asked for",
        ),
        pytest.param(
            Exit("unrunnable", 127, text="cannot run x: No such file or directory"),
            "could not be run: cannot run x: No such file or directory; exit code 127",
            id="not there",
        ),
        pytest.param(
            Exit("unrunnable", 0, text="cannot run x"), "could not be run: cannot run x", id="an older record"
        ),
        pytest.param(
            Exit("refused", 0, text="cannot enter /sys/x: Permission denied"),
            "could not be started here: cannot enter /sys/x: Permission denied",
            id="the host refused",
        ),
        pytest.param(
            Exit("refused", 0, "cancelled"),
            "could not be started here: it was cancelled",
            id="given up before",
        ),
    ],
)
def test_an_end_is_a_sentence_that_is_true(ending: Exit | None, line: str) -> None:
    assert exit_line(ending) == line


@pytest.mark.parametrize(
    ("outcome", "is_last", "is_over", "words"),
    [
        ("failed", False, True, "failed, tried again"),
        ("failed", True, False, "failed, to be tried again"),
        ("failed", True, True, "failed"),
        ("preempted", False, True, "preempted"),
        ("refused", True, False, "refused, to be tried again"),
        ("lost", False, True, "lost, nobody saw how it ended, tried again"),
        (None, True, False, "runs"),
    ],
)
def test_whether_another_follows_is_said(
    outcome: str | None, is_last: bool, is_over: bool, words: str
) -> None:
    attempt = AttemptView(1, 0, (), started_ms=1, outcome=outcome)
    assert outcome_words(attempt, is_last=is_last, is_over=is_over) == words


def test_an_attempt_that_is_told_to_end_does_not_just_run() -> None:
    attempt = AttemptView(1, 0, (), started_ms=1)
    assert outcome_words(attempt, is_last=True, is_over=False, is_ending=True) == "is ending"


@pytest.mark.parametrize(
    ("given_up", "words"),
    [
        pytest.param(GivenUp(0, "root"), " by root", id="by somebody"),
        pytest.param(
            GivenUp(reason="dependency", why="job 3, which had to succeed, failed"),
            ", since job 3, which had to succeed, failed (dependency)",
            id="by nobody",
        ),
        pytest.param(GivenUp(), "", id="an older record"),
    ],
)
def test_who_gave_a_job_up_is_said_as_far_as_it_is_known(given_up: GivenUp, words: str) -> None:
    assert given_up_words(given_up) == words
