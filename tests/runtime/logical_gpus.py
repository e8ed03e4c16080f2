"""Run as a process: stages on actors and on trials of a Ray that counts two GPUs, which this machine need not have.

The arguments are the run folder and words such as ``actors:3:0.6:8``: what, how many at once, share, cells.
"""

from __future__ import annotations

import sys
from pathlib import Path

from geco_ray.experiments.base import WorkerContext
from geco_ray.experiments.cfe.cells import BaseCell, CounterfactualCell, ValidityCell, VariantCell
from geco_ray.plan.config import RunSettings
from geco_ray.registry import NoOptions
from geco_ray.runtime.actors import Crew, run_on_actors
from geco_ray.runtime.session import ray_session
from geco_ray.runtime.trials import run_trials


def bases(count: int, first: int) -> list[BaseCell]:
    return [BaseCell("compas", "f" * 8, seed, "paper") for seed in range(first, first + count)]


def answers(count: int, first: int) -> list[ValidityCell]:
    """Cells of three models."""
    models = bases(3, first)
    found = (CounterfactualCell(models[number % 3], "kdtree", NoOptions(), "paper") for number in range(count))
    return [ValidityCell(one, "seed", (VariantCell(one.base, "seed", number),)) for number, one in enumerate(found)]


def main(root: str, *words: str) -> None:
    context = WorkerContext(root, device="cpu")
    with ray_session(RunSettings(root=root, cpus=4, gpus=2)):
        for number, word in enumerate(words):
            kind, count, share, cells = word.split(":")
            ended: list[object] = []
            if kind == "actors":
                crew = Crew(int(count), float(share))
                run_on_actors(answers(int(cells), 100 * number), context, crew, ended.append)
            else:
                packs = [(cell,) for cell in bases(int(cells), 100 * number)]
                run_trials(packs, context, float(share), ended.append)
            with (Path(root) / "ended").open("a") as stream:
                stream.write(f"{word} {len(ended)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
