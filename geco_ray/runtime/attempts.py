"""What counts as an attempt of a cell: its own faults, and never the loss of the node that it was computed on."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from geco_ray.errors import DeviceLostError

_LONGEST = 500  # characters of Ray's own words


def node_was_lost(error: object) -> bool:
    """Whether Ray gave up a worker since its node went: lost, drained or taken back by a cloud (spot machines are).

    Ray may call a worker unavailable before it knows of its node's death, so for such an error the nodes are asked,
    for some seconds if need be.
    """
    if getattr(error, "preempted", False) or "node has died" in str(error):
        return True
    return type(error).__name__ == "ActorUnavailableError" and _a_node_went()


_went: dict[str, float] = {}  # nodes that are gone, and when it was first seen
_RECENT, _PATIENCE, _PAUSE = 60.0, 5.0, 0.5  # seconds


def _a_node_went() -> bool:
    """Whether a node has been lost in the last minute."""
    import ray

    until = time.monotonic() + _PATIENCE
    while True:
        for node in ray.nodes():
            if not node["Alive"]:
                _went.setdefault(node["NodeID"], time.monotonic())
        if any(time.monotonic() - seen < _RECENT for seen in _went.values()):
            return True
        if time.monotonic() > until:
            return False
        time.sleep(_PAUSE)


def died_too_often(error: object, times: int) -> RuntimeError:
    """What is recorded of a cell whose worker was lost ``times`` times: the last error as Ray gave it.

    Args:
        error: what Ray raised for the last of them; None if it gave nothing.
    """
    if isinstance(cause := getattr(error, "cause", None), DeviceLostError):
        error = cause  # Ray's own words for it are a traceback
    words = " ".join(str(error).split())[:_LONGEST] if error is not None else "Ray gave no reason"
    lost = RuntimeError(f"its worker died {times} times ({type(error).__name__}: {words})")
    lost.__cause__ = error if isinstance(error, BaseException) else None
    return lost


@contextlib.contextmanager
def counted_by(note: Callable[[Any, object], None]) -> Iterator[None]:
    """While the block runs, Tune's trials don't count the loss of a node as a failure of theirs.

    Tune itself forgives the loss of a node that was drained first and counts that of one that just went. It has no
    setting for it, and no callback that is given an error before it is counted, so its own method is replaced.

    Args:
        note: called with each trial that lost its worker, and with the error.
    """
    from ray.tune.experiment import Trial

    real = Trial.handle_error

    def handle_error(trial: Any, exc: Any = None) -> None:
        counted = trial.run_metadata.num_failures
        real(trial, exc)
        note(trial, exc)
        if node_was_lost(exc):
            trial.run_metadata.num_failures = counted

    Trial.handle_error = handle_error
    try:
        yield
    finally:
        Trial.handle_error = real
