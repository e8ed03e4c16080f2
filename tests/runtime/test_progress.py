"""Without a terminal: lines that grow rarer, one at the end of each stage, failures at once, silence when asked for."""

from __future__ import annotations

import io
import itertools
import time

import pytest
from rich.console import Console

from geco_ray.experiments.worker import Outcome
from geco_ray.runtime.progress import RunProgress, next_line


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


def test_lines_come_each_half_minute_for_five_minutes_then_rarer_up_to_ten() -> None:
    times = [0.0]
    while times[-1] < 3 * 3600:
        times.append(next_line(times[-1]))
    gaps = [after - before for before, after in itertools.pairwise(times)]
    assert gaps[:10] == [30.0] * 10
    assert gaps[10:] == sorted(gaps[10:])
    assert gaps[-1] == 600.0


def test_a_line_comes_while_nothing_ends(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("geco_ray.runtime.progress.next_line", lambda elapsed: elapsed + 0.02)
    with RunProgress(3, console) as progress:
        progress.stage("train")
        until = time.monotonic() + 10
        while not lines(console) and time.monotonic() < until:
            time.sleep(0.01)
    assert lines(console)[0].startswith("train: 0 of 3 cells, 0.0 a minute")


def test_the_time_left_weighs_cells_by_what_they_take(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with RunProgress(3, console, quiet=True, expected={"id0": 1.0, "id1": 1.0, "id2": 98.0}) as progress:
        progress.stage("train")
        now[0] += 60
        progress.report(done(0))
        progress.report(done(1, "ValueError: no"))
        assert progress.line() == "train: 2 of 3 cells, 2.0 a minute, about 49 min left, 1 failed"
