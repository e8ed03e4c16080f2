"""Where the cells of a wave are computed: in this process, or on Ray's trials and actors; and on which device."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from rich.console import Console

from geco_ray.cells import Cell
from geco_ray.errors import ResourceError
from geco_ray.experiments.base import WorkerContext
from geco_ray.experiments.worker import ModelActor, run_pack
from geco_ray.plan.benchmark import Stage
from geco_ray.plan.config import RunSettings
from geco_ray.runtime.actors import Crew
from geco_ray.runtime.progress import RunProgress
from geco_ray.runtime.shares import may_grow, workers_that_fit


@dataclass(frozen=True)
class Wave:
    """A scheduling wave: the cells of one stage and kind that can be computed now, and the packs they belong to."""

    stage: Stage
    ready: Sequence[Cell]
    packs: Sequence[tuple[Cell, ...]]


class Executor(Protocol):
    """Runs the cells of one wave; a pack of it may hold cells that are done already."""

    def run(self, wave: Wave, progress: RunProgress) -> None: ...


def context_for(stage: Stage, context: WorkerContext) -> WorkerContext:
    """Where a stage computes, whatever the executor: ``auto`` leaves small networks on CPUs, where they are fast.

    One device per stage and not per executor, since a cell's id does not know where it was computed. What the driver
    computes itself is cheap and stays on its CPU.
    """
    on_cpus = stage.runs_as == "driver" or (context.device == "auto" and stage.small)
    return replace(context, device="cpu") if on_cpus else context


def by_device(wave: Wave, context: WorkerContext) -> list[tuple[WorkerContext, list[tuple[Cell, ...]]]]:
    """The packs of a wave by where they compute: those of small networks apart, where a stage has others too."""
    stage = wave.stage
    packs: dict[bool, list[tuple[Cell, ...]]] = {True: [], False: []}
    for pack in wave.packs:
        packs[stage.small or (stage.small_cell is not None and stage.small_cell(pack[0]))].append(pack)
    return [(context_for(replace(stage, small=small), context), some) for small, some in packs.items() if some]


def with_share(context: WorkerContext, gpus: float) -> WorkerContext:
    """The context of a worker with that share of a GPU, and ``auto`` made definite.

    Who got no GPU takes none that it happens to see, who got one never falls back on a core: a node may have a GPU that
    Ray counts and torch can't use, and cells that fail with the reason are seen.
    """
    device = context.device if context.device != "auto" else "cuda" if gpus else "cpu"
    return replace(context, device=device, gpu_share=gpus)


@dataclass
class InlineExecutor:
    """Everything in this process, one cell after another: for tests, debugging and single cells."""

    context: WorkerContext

    def run(self, wave: Wave, progress: RunProgress) -> None:
        from geco_ray.device import limit_threads

        limit_threads(self.context.threads)
        if wave.stage.runs_as == "actors":
            actor = ModelActor(context_for(wave.stage, self.context))
            for cell in wave.ready:
                progress.report(actor.answer(cell))
            actor.release()
            return
        for place, packs in by_device(wave, self.context):
            for pack in packs:
                for outcome in run_pack(pack, place):
                    progress.report(outcome)


class RayExecutor:
    """Trials and actors on Ray, which starts with the first stage that needs it and ends with the run."""

    def __init__(
        self,
        settings: RunSettings,
        context: WorkerContext,
        stack: contextlib.ExitStack,
        console: Console,
        on_death: Callable[[str], None],
    ) -> None:
        self._settings, self._context, self._stack, self._console = settings, context, stack, console
        self._on_death = on_death
        self._started = False

    def run(self, wave: Wave, progress: RunProgress) -> None:
        if wave.stage.runs_as == "driver":
            InlineExecutor(self._context).run(wave, progress)
            return
        if not self._started:
            from geco_ray.runtime.session import ray_session

            self._stack.enter_context(ray_session(self._settings, self._on_death))
            self._started = True
            self._meet_the_cluster()
        if wave.stage.runs_as == "trials":
            from geco_ray.runtime.trials import run_trials

            for context, packs in by_device(wave, self._context):
                gpus = self._gpus(context, self._settings.gpus_per_trial)
                run_trials(packs, with_share(context, gpus), gpus, progress.report)
        else:
            from geco_ray.runtime.actors import run_on_actors

            context = context_for(wave.stage, self._context)
            gpus = self._gpus(context, self._settings.gpus_per_actor)
            run_on_actors(wave.ready, with_share(context, gpus), self._crew(gpus), progress.report, self._say)

    def _meet_the_cluster(self) -> None:
        """Say which cluster this is and ask its nodes; of those that are not there yet, say what they must see."""
        address = self._settings.address or os.environ.get("RAY_ADDRESS")
        if address in (None, "", "local"):
            return
        from geco_ray.runtime.probe import joined, probe_nodes

        self._say(joined(str(address)))
        if not probe_nodes(self._context.root) and "://" not in self._context.root:
            self._say(
                f"note: every node of the cluster must see {self._context.root} as its own; "
                "else give --root s3://BUCKET/PATH"
            )

    def _say(self, text: str) -> None:
        self._console.print(text, highlight=False, soft_wrap=True)

    def _available(self, resource: str) -> float:
        import ray

        return float(ray.cluster_resources().get(resource, 0.0))  # asked again: a cluster grows between stages

    def _gpus(self, context: WorkerContext, requested: float | None) -> float:
        """GPUs of one worker: none where it computes on CPUs, else what is requested, else a whole one."""
        if context.device == "cpu":
            return 0.0
        available = self._available("GPU")
        if requested is None:
            return 1.0 if available >= 1 or context.device.startswith("cuda") else 0.0
        if requested > available and not may_grow(self._settings):
            raise ResourceError(
                f"{requested:g} GPU per worker is asked for and the cluster has {available:g}. Give 0 for CPUs."
            )
        return requested

    def _crew(self, gpus: float) -> Crew:
        present = workers_that_fit(gpus, self._available("GPU")) if gpus else int(self._available("CPU"))
        count = self._settings.actors
        if count is None:
            count = max(1, present)
        elif gpus and present and not may_grow(self._settings):
            count = min(count, present)
        # On a cluster a whole CPU, or an autoscaler would see no demand; on one machine the next stage needs them all.
        return Crew(count, gpus, 1.0) if not gpus and may_grow(self._settings) else Crew(count, gpus)
