"""One bar on a terminal; on a pipe, a line at the end of a stage. A cell that fails is reported then, in one line."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from geco_ray.experiments.worker import Outcome

_SECONDS_BETWEEN_LINES = 600.0  # within a stage; so a log of hours stays short


class RunProgress:
    """Counts outcomes over all stages of a run. Use as a context manager."""

    def __init__(self, total: int, console: Console, *, quiet: bool = False) -> None:
        self.total, self.done, self.failed = total, 0, 0
        self._console, self._quiet = console, quiet
        self._stage = ""
        self._before = (0, 0)  # done and failed when this stage began
        self._last_line = time.monotonic()
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        if console.is_terminal and not quiet:
            self._bar = Progress(
                TextColumn("{task.description:<16}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                console=console,
            )

    def __enter__(self) -> RunProgress:
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task("starting", total=self.total)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
        if outcome.error is not None:
            self.failed += 1
            line = escape(f"{outcome.title}: {outcome.error}")
            self._console.print(f"[red]failed[/red] {line}", highlight=False, soft_wrap=True)
        if self._bar is not None and self._task is not None:
            self._bar.advance(self._task)
        elif not self._quiet and time.monotonic() - self._last_line > _SECONDS_BETWEEN_LINES:
            self._last_line = time.monotonic()
            self._console.print(f"{self._stage}: {self.done} of {self.total} cells", highlight=False)
