"""Training-like cells as Ray Tune trials: one trial per pack, each committing its own cells to the ledger.

Tune schedules; it is never asked what is done. Its own restore loses finished trials when the driver is killed, and
runs one trial without a configuration when its state file is damaged, so the ledger decides and every run gets a fresh
experiment in a temporary folder.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from geco_ray.cells import Cell
from geco_ray.errors import StorageError
from geco_ray.experiments.base import WorkerContext
from geco_ray.experiments.worker import Outcome, run_pack
from geco_ray.ledger import Ledger
from geco_ray.plan.benchmark import owner_of
from geco_ray.plugins import with_plugins
from geco_ray.runtime.attempts import counted_by, died_too_often
from geco_ray.runtime.session_folder import remove_folder, temporary_folder

Report = Callable[[Outcome], None]
_RETRIES_OF_A_DEAD_WORKER = 2
_SECONDS_BETWEEN_EPOCHS = 1.0  # a small network has many epochs a second, and each told one costs the driver


def _trainable() -> Any:
    from ray import tune

    class PackTrial(tune.Trainable):  # type: ignore[misc]
        """One pack of cells. With ``reuse_actors`` the process serves pack after pack."""

        def setup(self, config: dict[str, Any], packs: Any = None, context: Any = None) -> None:
            from geco_ray.device import limit_memory, limit_threads

            self._packs, self._context, self._number = packs, context, config["pack"]
            self._work: PackWork | None = None
            limit_threads(context.threads)
            limit_memory(context.gpu_share)

        def step(self) -> dict[str, Any]:
            """The next epoch of a training, or how the pack ended."""
            if self._work is None:
                self._work = PackWork(self._packs[self._number], self._context)
            return self._work.next_result()

        def reset_config(self, new_config: dict[str, Any]) -> bool:
            self._number, self._work = new_config["pack"], None
            return True

        def save_checkpoint(self, checkpoint_dir: str) -> None:
            """Nothing: the ledger holds all that is finished."""

        def load_checkpoint(self, checkpoint: Any) -> None:
            """Nothing, see :meth:`save_checkpoint`."""

    return PackTrial


class PackWork:
    """A pack in a thread of its own, so that Tune hears of its epochs while it goes on."""

    def __init__(self, pack: Sequence[Cell], context: WorkerContext) -> None:
        self._said: queue.SimpleQueue[dict[str, Any] | BaseException] = queue.SimpleQueue()
        self._told = -_SECONDS_BETWEEN_EPOCHS
        threading.Thread(target=self._run, args=(pack, context), daemon=True).start()

    def next_result(self) -> dict[str, Any]:
        """What happened next: an epoch, or how the pack ended, which is ``done``.

        Raises:
            BaseException: what ended the pack's computation.
        """
        said = self._said.get()
        if isinstance(said, BaseException):
            raise said
        return said

    def _run(self, pack: Sequence[Cell], context: WorkerContext) -> None:
        from geco_ray.device import limit_threads

        limit_threads(context.threads)  # OpenMP counts by thread
        try:
            outcomes = run_pack(pack, replace(context, on_epoch=self._tell))
            self._said.put({"done": True, "storage": None, "outcomes": [asdict(outcome) for outcome in outcomes]})
        except StorageError as error:
            self._said.put({"done": True, "storage": str(error), "outcomes": []})
        except BaseException as error:
            self._said.put(error)

    def _tell(self, cell: Cell, values: Mapping[str, float | None]) -> None:
        if time.monotonic() - self._told >= _SECONDS_BETWEEN_EPOCHS:
            self._told = time.monotonic()
            self._said.put({"done": False, "cell": cell.title, **values})


def describe(pack: Sequence[Cell]) -> dict[str, Any]:
    """What tells a pack from others, as a trial's configuration: benchmark, stage, kind and its cells' readable values.

    A value in which its cells differ is a list, or ``0 to 24`` where it is whole numbers without a gap.
    """
    first, values = pack[0], [cell.readable() for cell in pack]
    described: dict[str, Any] = {"benchmark": owner_of(first.stage).name, "stage": first.stage}
    if first.KIND:
        described["kind"] = first.KIND
    for key in dict.fromkeys(key for one in values for key in one):
        different: list[Any] = []
        for one in values:
            if one.get(key) not in different:
                different.append(one.get(key))
        described[key] = different[0] if len(different) == 1 else _range(different)
    return described


def _range(values: list[Any]) -> Any:
    if len(values) > 2 and all(isinstance(value, int) for value in values):
        low, high = min(values), max(values)
        if high - low == len(values) - 1:
            return f"{low} to {high}"
    return values


def _param_space(packs: Sequence[tuple[Cell, ...]]) -> dict[str, Any]:
    """One trial per pack: its number, and beside it what people and callbacks tell it by."""
    from ray import tune

    described = [describe(pack) for pack in packs]

    def take(key: str) -> Any:
        return tune.sample_from(lambda spec: described[spec.config.pack].get(key))

    space = {key: take(key) for key in dict.fromkeys(key for one in described for key in one)}
    return space | {"pack": tune.grid_search(list(range(len(packs))))}


class _Inbox:
    """Where the driver's Tune callback hands its results in; Tune pickles callbacks, so it can't hold them itself."""

    report: Report | None = None
    storage_error: str | None = None
    reported: set[int]  # the packs whose trials came to an end of their own
    errors: dict[int, object]  # the last error that ended the worker of a pack


def _listener() -> Any:
    from ray import tune

    class Listener(tune.Callback):  # type: ignore[misc]
        def on_trial_result(self, iteration: int, trials: Any, trial: Any, result: dict[str, Any], **info: Any) -> None:
            if result.get("done"):
                _Inbox.reported.add(trial.config["pack"])
            _Inbox.storage_error = _Inbox.storage_error or result.get("storage")
            for outcome in result.get("outcomes", []):
                if _Inbox.report is not None:
                    _Inbox.report(Outcome(**outcome))

    return Listener()


def _stop_on_storage_error() -> Any:
    from ray import tune

    class Stop(tune.Stopper):  # type: ignore[misc]
        def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
            return bool(result.get("done"))

        def stop_all(self) -> bool:
            return _Inbox.storage_error is not None

    return Stop()


def run_trials(packs: Sequence[tuple[Cell, ...]], context: WorkerContext, gpus: float, report: Report) -> int:
    """Run every pack as one trial and report each cell's outcome as it comes.

    Args:
        packs: cells computed together. gpus: GPUs of one trial, may be a fraction.
    Returns:
        The number of trials.
    Raises:
        StorageError: a worker could not write the ledger; the trials still waiting are not started.
    """
    folder = temporary_folder()
    _Inbox.report, _Inbox.storage_error, _Inbox.reported, _Inbox.errors = report, None, set(), {}

    def note(trial: Any, error: object) -> None:
        _Inbox.errors[trial.config["pack"]] = error

    try:
        with counted_by(note):
            results = _tuner(packs, context, gpus, folder).fit()
    finally:
        _Inbox.report = None
        remove_folder(folder)
    if _Inbox.storage_error:
        raise StorageError(_Inbox.storage_error)
    _note_lost_packs(packs, context, report)
    return len(results)


def _tuner(packs: Sequence[tuple[Cell, ...]], context: WorkerContext, gpus: float, folder: Path) -> Any:
    from ray import tune

    trainable = tune.with_parameters(_trainable(), packs=with_plugins(list(packs)), context=context)
    return tune.Tuner(
        tune.with_resources(trainable, {"cpu": 1, "gpu": gpus}),
        param_space=_param_space(packs),
        tune_config=tune.TuneConfig(
            # A fresh process per trial frees GPU memory for certain; on CPUs it would cost seconds per trial.
            reuse_actors=gpus == 0,
            trial_dirname_creator=lambda trial: str(trial.trial_id),
        ),
        run_config=tune.RunConfig(
            name="packs",
            storage_path=str(folder),
            verbose=0,
            callbacks=[_listener()],
            stop=_stop_on_storage_error(),
            failure_config=tune.FailureConfig(max_failures=_RETRIES_OF_A_DEAD_WORKER),
        ),
    )


def _note_lost_packs(packs: Sequence[tuple[Cell, ...]], context: WorkerContext, report: Report) -> None:
    """A trial whose process died once too often reported nothing: its cells that are not done have failed."""
    ledger = Ledger(context.root)
    for number, pack in enumerate(packs):
        lost = died_too_often(_Inbox.errors.get(number), _RETRIES_OF_A_DEAD_WORKER + 1)
        for cell in () if number in _Inbox.reported else pack:
            if ledger.get(cell) is None:
                ledger.fail(cell, lost)
                report(Outcome(cell.id, cell.title, 0.0, str(lost)))
