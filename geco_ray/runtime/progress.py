"""One bar on a terminal; on a pipe, lines: often at first, then rarely. A cell that fails is told then, in one line.

The time that is left weighs each cell by what cells like it took before (:mod:`geco_ray.plan.costs`), scaled to the
speed of this run: ten thousand quick cells before a slow one say little about it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.text import Text

from geco_ray.experiments.worker import Outcome
from geco_ray.plan.costs import duration

_OFTEN, _OFTEN_UNTIL, _SELDOM = 30.0, 300.0, 600.0  # seconds: a line each half minute for five minutes, then rarer


def next_line(elapsed: float) -> float:
    """Seconds from a run's start to its next line, given that the last one came at ``elapsed``."""
    return elapsed + (_OFTEN if elapsed < _OFTEN_UNTIL else min(elapsed / 2, _SELDOM))


class RunProgress:
    """Counts outcomes over all stages of a run. Use as a context manager.

    Args:
        total: cells to do.
        console: where to show it.
        quiet: show nothing but failures.
        expected: cell id to the seconds that it is expected to take, in any common unit; others count 1.
    """

    def __init__(
        self, total: int, console: Console, *, quiet: bool = False, expected: Mapping[str, float] | None = None
    ) -> None:
        self.total, self.done, self.failed = total, 0, 0
        self._expected = dict(expected or {})
        self._work = sum(self._expected.values()) or float(total)
        self._worked = 0.0
        self._console, self._quiet = console, quiet
        self._stage = ""
        self._before = (0, 0)  # done and failed when this stage began
        self._started = time.monotonic()
        self._over = threading.Event()
        self._lines: threading.Thread | None = None
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        if console.is_terminal and not quiet:
            self._bar = Progress(
                TextColumn("{task.description:<16}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[left]}"),
                console=console,
            )

    def __enter__(self) -> RunProgress:
        self._started = time.monotonic()
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task("starting", total=self.total, left="")
        elif not self._quiet:
            self._lines = threading.Thread(target=self._print_lines, name="geco-ray-progress", daemon=True)
            self._lines.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._lines is not None:
            self._lines.join()
        if self._bar is not None:
            self._bar.stop()
        if error is None:
            self._end_stage()

    def stage(self, name: str) -> None:
        """Say which stage runs now."""
        if name != self._stage:  # a stage may come in several waves
            self._end_stage()
            self._stage, self._before = name, (self.done, self.failed)
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=name)

    def _end_stage(self) -> None:
        finished, failed = self.done - self._before[0], self.failed - self._before[1]
        if self._bar is None and not self._quiet and finished:
            count = finished - failed
            cells = f"{count:,} {'cell' if count == 1 else 'cells'} done" + (f", {failed:,} failed" if failed else "")
            self._console.print(f"{self._stage}: {cells} ({self.done:,} of {self.total:,})", highlight=False)

    def set_finished(self, done: int) -> None:
        """Correct the count after a stage: cells committed by a worker that then died were never reported."""
        self.done = max(self.done, done)
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self.done)

    def report(self, outcome: Outcome) -> None:
        """Count one cell."""
        self.done += 1
        self._worked += self._expected.get(outcome.cell_id, 0.0) if self._expected else 1.0
        if outcome.error is not None:
            self.failed += 1
            line = Text.assemble(("failed", "red"), f" {outcome.title}: {outcome.error}")
            self._console.print(line, soft_wrap=True)
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, advance=1, left=self.left())

    def left(self) -> str:
        """The time that is left, in words; empty before there is anything to judge by."""
        elapsed = time.monotonic() - self._started
        if self._worked <= 0 or self.done >= self.total:
            return ""
        return f"about {duration(elapsed * max(self._work - self._worked, 0) / self._worked)} left"

    def line(self) -> str:
        """Where the run stands: stage, cells done, rate, time left, failures."""
        minutes = max(time.monotonic() - self._started, 1e-9) / 60
        parts = [f"{self._stage}: {self.done:,} of {self.total:,} cells", f"{self.done / minutes:,.1f} a minute"]
        parts += [self.left()] if self.left() else []
        parts += [f"{self.failed:,} failed"] if self.failed else []
        return ", ".join(parts)

    def _print_lines(self) -> None:
        due = next_line(0.0)
        while not self._over.wait(max(0.0, self._started + due - time.monotonic())):
            if self._stage:
                self._console.print(self.line(), highlight=False)
            due = next_line(due)
