"""Without a terminal: one line at the end of each stage, failures at once, silence when asked for."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from geco_ray.experiments.worker import Outcome
from geco_ray.runtime.progress import RunProgress


@pytest.fixture
def console() -> Console:
    return Console(file=io.StringIO(), width=80)


def lines(console: Console) -> list[str]:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def done(number: int, error: str | None = None) -> Outcome:
    return Outcome(f"id{number}", f"cell {number}", 0.1, error)


def test_a_line_at_the_end_of_each_stage_counts_what_this_run_did(console: Console) -> None:
    with RunProgress(510, console) as progress:
        progress.stage("train")
        for number in range(33):
            progress.report(done(number))
        progress.set_finished(33)
        for _ in range(2):  # base models, then variants: one stage in two waves
            progress.stage("models")
            for number in range(100):
                progress.report(done(number))
        assert lines(console) == ["train: 33 cells done (33 of 510)"]
        progress.set_finished(336)  # 103 cells came from a worker that died before it could report them
        progress.stage("validity")
    assert lines(console)[1:] == ["models: 303 cells done (336 of 510)"]


def test_failures_are_told_at_once_and_counted(console: Console) -> None:
    with RunProgress(3, console) as progress:
        progress.stage("models")
        progress.report(done(1, "ValueError: no"))
        assert lines(console) == ["failed cell 1: ValueError: no"]
        progress.report(done(2))
    assert lines(console)[1:] == ["models: 1 cell done, 1 failed (2 of 3)"]


def test_a_run_that_is_stopped_does_not_call_its_stage_ended(console: Console) -> None:
    def stopped() -> None:
        with RunProgress(3, console) as progress:
            progress.stage("models")
            progress.report(done(1))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert lines(console) == []


def test_quiet_leaves_failures_alone(console: Console) -> None:
    with RunProgress(3, console, quiet=True) as progress:
        progress.stage("models")
        progress.report(done(1))
        progress.report(done(2, "ValueError: no"))
    assert lines(console) == ["failed cell 2: ValueError: no"]
