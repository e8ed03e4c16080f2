# ruff: noqa: E402  (threads and kernels are chosen before NumPy and torch are imported)
"""The bank of one base model, stacked against one by one: same jobs, same stopping rule, one thread each, one run.

    python benchmarks/bank.py breast_cancer diabetes --data-dir DATA
    python benchmarks/bank.py wine_quality heloc --data-dir DATA --every 5

CPU seconds (of this process) decide the ratio, since the machine may be shared; wall seconds stand beside them.
Set OPENBLAS_CORETYPE=Haswell to see the stacked trainer without AVX-512. ``--every 5`` trains every fifth variant of a
family one by one and scales its time by 5.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch and NumPy start their threads
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from geco_ray.blas import choose_kernels

KERNELS = choose_kernels() or os.environ.get("OPENBLAS_CORETYPE", "OpenBLAS' own choice")

import numpy as np
import torch

from geco_ray.cfe.base_model import BaseModel, train_base
from geco_ray.cfe.changes.base import FAMILIES, Variant, family_names, make_variants, variant_specs
from geco_ray.cfe.data.datasets import load_dataset
from geco_ray.cfe.methods.betarce.ensemble import betarce_ensemble
from geco_ray.cfe.model_stack import StackedModels
from geco_ray.cfe.seeding import BaseKey
from geco_ray.cfe.training import Pool, TrainingJob, train_one

T = TypeVar("T")


@dataclass
class Clock:
    """CPU and wall seconds of what was measured."""

    cpu: float = 0.0
    wall: float = 0.0

    def __add__(self, other: Clock) -> Clock:
        return Clock(self.cpu + other.cpu, self.wall + other.wall)

    def measure(self, work: Callable[[], T]) -> T:
        """Run ``work`` and add its time."""
        cpu, wall = time.process_time(), time.perf_counter()
        result = work()
        self.cpu += time.process_time() - cpu
        self.wall += time.perf_counter() - wall
        return result


def compare_family(family: str, base: BaseModel, pool: Pool, every: int) -> tuple[Clock, Clock, list[Variant]]:
    """One by one and stacked; the one-by-one time is scaled to all variants."""
    plain, stacked = Clock(), Clock()
    specs = variant_specs(family, base.key)
    variants = stacked.measure(lambda: make_variants(specs, base, pool))
    sample = specs[::every]
    make = FAMILIES.get(family).target().change
    differing, largest = 0, 0.0
    for spec in sample:
        change = plain.measure(lambda spec=spec: make(spec, base, pool))
        if isinstance(change, TrainingJob):
            one = plain.measure(lambda change=change: train_one(change, pool))
            ours = variants[spec.variant]
            differing += (one.epochs, one.best_epoch) != (ours.epochs, ours.best_epoch)
            gap = np.abs(one.model.probability(pool.val_x) - ours.model.probability(pool.val_x)).max()
            largest = max(largest, float(gap))
    scale = len(specs) / len(sample)
    plain = Clock(plain.cpu * scale, plain.wall * scale)
    epochs = np.mean([variant.epochs for variant in variants])
    print(
        f"  {family:18s} {plain.cpu:8.2f} s one by one {stacked.cpu:8.2f} s stacked"
        f" {plain.cpu / max(stacked.cpu, 1e-9):6.1f} x   {epochs:5.0f} epochs,"
        f" {differing} of {len(sample)} stop elsewhere, largest probability gap {largest:.1e}",
        flush=True,
    )
    return plain, stacked, variants


def compare(name: str, data_dir: Path | None, every: int) -> float:
    """Print the comparison for a data set; returns the CPU seconds of base model, bank and ensemble."""
    dataset = load_dataset(name, data_dir)
    pool = Pool.of(dataset)
    base = train_base(BaseKey(name, 2026), pool)  # also warms torch up
    train_one(variant_job(base, pool), pool)
    print(f"{name}: {len(dataset.train)} training rows, {len(dataset.features)} features")
    plain, stacked, variants = Clock(), Clock(), []
    for family in family_names():
        one, many, made = compare_family(family, base, pool, every)
        plain, stacked = plain + one, stacked + many
        variants += made
    print(
        f"  bank of 200: {plain.cpu:.2f} s one by one, {stacked.cpu:.2f} s stacked: {plain.cpu / stacked.cpu:.1f} x"
        f" (wall {plain.wall:.1f} s, {stacked.wall:.1f} s: {plain.wall / stacked.wall:.1f} x)"
    )
    ensemble = Clock()
    ensemble.measure(lambda: betarce_ensemble(base.key, base.model, pool))
    print(f"  BetaRCE's ensemble: {ensemble.cpu:.2f} s")
    judge(variants, len(dataset.features))
    return stacked.cpu + ensemble.cpu


def judge(variants: list[Variant], features: int) -> None:
    """Print the time of 250 points against all variants."""
    stacked = StackedModels([variant.model for variant in variants])
    points = np.random.default_rng(0).normal(size=(250, features))
    stacked.favourable(points)
    times = []
    for _ in range(5):
        clock = Clock()
        clock.measure(lambda: stacked.favourable(points))
        times.append(clock)
    middle = sorted(times, key=lambda clock: clock.cpu)[2]
    print(f"  250 points x {len(variants)} variants: {middle.cpu:.4f} s CPU, {middle.wall:.4f} s wall")


def variant_job(base: BaseModel, pool: Pool) -> TrainingJob:
    """A job to warm up with."""
    made = FAMILIES.get("seed").target().change(variant_specs("seed", base.key, [0])[0], base, pool)
    assert isinstance(made, TrainingJob)
    return made


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--every", type=int, default=1, help="train every n-th variant one by one")
    given = parser.parse_args()
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, NumPy {np.__version__} with kernels: {KERNELS}; one thread")
    spent = [compare(name, given.data_dir, given.every) for name in given.datasets]
    print(f"five base models of these data sets: {5 * sum(spent) / 60:.1f} CPU minutes with banks and ensembles")


if __name__ == "__main__":
    main()
