"""A time limit for what computes a cell. It ends the cell with a failure that says so, and never decides a value."""

from __future__ import annotations

import contextlib
import ctypes
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TypeVar

T = TypeVar("T")


class CellTimeLimitError(BaseException):
    """A cell took longer than ``--cell-seconds`` allows.

    No :class:`Exception`, so that a component which survives its own errors can't go on with half of its work.
    """

    def __init__(self, message: str = "took longer than --cell-seconds allows; nothing of it is kept") -> None:
        super().__init__(message)


@contextlib.contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """End the block after ``seconds`` of the clock; None sets no limit.

    The block is left at its next step in Python: a long call into a compiled library ends first. What ends late by
    itself fails too, so that a value never hangs on the moment of the alarm.

    Raises:
        CellTimeLimitError: the block took longer.
    """
    if seconds is None:
        yield
        return
    start = time.monotonic()
    disarm = (_alarm if threading.current_thread() is threading.main_thread() else _timer)(seconds)
    try:
        yield
    except CellTimeLimitError:
        pass  # said below, with the limit
    finally:
        disarm()
    if time.monotonic() - start >= seconds:
        raise CellTimeLimitError(
            f"took longer than {seconds:g} s, the limit of one cell (--cell-seconds); nothing of it is kept"
        )


def each_within(steps: Iterator[T], seconds: float | None) -> Iterator[T]:
    """The items of ``steps``, each computed within the limit; what is done with an item takes none of it."""
    end = object()
    while True:
        with time_limit(seconds):
            item = next(steps, end)
        if item is end:
            return
        yield item  # type: ignore[misc]


def _alarm(seconds: float) -> Callable[[], None]:
    """A signal, which also ends a sleep; for the main thread, the only one that gets signals."""
    waits = True

    def ring(number: int, frame: FrameType | None) -> None:
        if waits:
            raise CellTimeLimitError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)

    def disarm() -> None:
        nonlocal waits
        waits = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

    return disarm


def _timer(seconds: float) -> Callable[[], None]:
    """An exception that another thread puts into this one, where Tune's trials compute."""
    thread = ctypes.c_ulong(threading.get_ident())
    put = ctypes.pythonapi.PyThreadState_SetAsyncExc
    timer = threading.Timer(seconds, put, (thread, ctypes.py_object(CellTimeLimitError)))
    timer.daemon = True
    timer.start()

    def disarm() -> None:
        timer.cancel()
        timer.join()
        put(thread, None)  # one that was put and not raised yet

    return disarm
