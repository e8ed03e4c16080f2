"""A cell that takes too long has failed, wherever it is computed, and decides nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from geco_ray.experiments.time_limit import CellTimeLimitError, each_within, time_limit

LIMIT = 0.05


def busy(seconds: float = 5.0) -> None:
    """Work that survives its own errors, as a method may."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            sum(range(100))
        except Exception:
            continue


def in_a_thread(work: Callable[[], None]) -> BaseException | None:
    """What ended ``work`` in a thread that is not the main one."""
    ended: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            ended.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return ended[0] if ended else None


def limited() -> None:
    with time_limit(LIMIT):
        busy()


def test_what_takes_longer_is_left_in_the_main_thread() -> None:
    started = time.monotonic()
    with pytest.raises(CellTimeLimitError, match=r"longer than 0\.05 s, the limit of one cell"):
        limited()
    assert time.monotonic() - started < 2


def test_and_in_any_other_thread() -> None:
    started = time.monotonic()
    ended = in_a_thread(limited)
    assert isinstance(ended, CellTimeLimitError)
    assert "longer than 0.05 s" in str(ended)
    assert time.monotonic() - started < 2


@pytest.mark.parametrize("where", [lambda work: work(), in_a_thread], ids=["main thread", "another"])
def test_no_alarm_comes_after_the_block(where: Callable[[Callable[[], None]], None]) -> None:
    def quick() -> None:
        with time_limit(LIMIT):
            pass
        busy(2 * LIMIT)

    assert where(quick) is None


def test_what_is_done_with_an_item_takes_nothing_of_the_limit() -> None:
    for _ in each_within(iter([1, 2]), LIMIT):
        busy(2 * LIMIT)


def test_without_a_limit_nothing_ends() -> None:
    with time_limit(None):
        busy(0.01)
