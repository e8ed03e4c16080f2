"""BetaRCE's ensemble, and the wall between methods and the models they are judged by."""

from __future__ import annotations

import ast
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import geco_ray
from geco_ray.cfe.base_model import train_base
from geco_ray.cfe.changes.base import family_names, make_variants, variant_specs
from geco_ray.cfe.data.datasets import load_dataset
from geco_ray.cfe.methods.base import GenerationTask
from geco_ray.cfe.methods.betarce.ensemble import betarce_ensemble, ensemble_seeds
from geco_ray.cfe.methods.betarce.search import train_helpers
from geco_ray.cfe.mlp import Mlp
from geco_ray.cfe.seeding import BASE_SEEDS, BaseKey
from geco_ray.cfe.training import Pool, base_job, resampled, train_one, train_stacked

ROOT = Path(geco_ray.__file__).parent
JUDGES = (
    "geco_ray.cfe.bank",
    "geco_ray.cfe.changes",
    "geco_ray.cfe.model_table",
    "geco_ray.ledger",
    "geco_ray.runtime",
)


def test_the_ensemble_is_the_papers_and_not_in_the_bank() -> None:
    torch.set_num_threads(1)
    key = BaseKey("breast_cancer", 2026)
    pool = Pool.of(load_dataset("breast_cancer"))
    base = train_base(key, pool)
    ensemble = betarce_ensemble(key, base.model, pool)
    assert len(ensemble) == 32
    rows = np.random.default_rng(2026 + 100_000 + 5).integers(0, 284, size=284)
    job = resampled(base_job(pool, 2026), 2026 + 100_000 + 5)
    assert job.rows.tolist() == rows.tolist()
    np.testing.assert_allclose(ensemble[5].weights[0], train_one(job, pool).model.weights[0], atol=1e-5)
    evaluated = {variant.model.digest() for variant in make_variants(variant_specs("bootstrap", key), base, pool)}
    digests = {model.digest() for model in ensemble}
    assert len(digests) == 32
    assert not digests & (evaluated | {base.model.digest()})


def test_only_the_helpers_in_use_are_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(1)
    key, data = BaseKey("breast_cancer", 2026), load_dataset("breast_cancer")
    base = train_base(key, Pool.of(data))
    parts = {
        name: (getattr(data, name).x.astype(np.float32), getattr(data, name).y) for name in ("train", "update", "val")
    }
    rows = {f"{name}_{axis}": part[i] for name, part in parts.items() for i, axis in enumerate("xy")}
    task = GenerationTask("breast_cancer", 2026, "paper", "paper", base.model, **rows)
    whole = train_helpers(task, 32)
    jobs: list[int] = []

    def counted(these: list[Any], *rest: Any) -> Any:
        jobs.append(len(these))
        return train_stacked(these, *rest)

    monkeypatch.setattr("geco_ray.cfe.methods.betarce.ensemble.train_stacked", counted)
    few = train_helpers(task, 3)
    assert jobs == [len(few)] == [3]
    for one, other in zip(few, whole, strict=False):
        for a, b in zip((*one.weights, *one.biases), (*other.weights, *other.biases), strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-6)


@pytest.mark.parametrize("seeding", ["paper", "independent"])
def test_helper_seeds_meet_no_variants_seed(seeding: str) -> None:
    keys = [BaseKey("diabetes", seed, seeding) for seed in BASE_SEEDS]
    helpers = {seed for key in keys for seed in ensemble_seeds(key)}
    # A perturbation's number seeds a direction of parameters, so it may equal one that seeds a resample of rows.
    families = [family for family in family_names() if family != "bounded_parameter"]
    judges = {spec.seed for key in keys for family in families for spec in variant_specs(family, key)}
    assert not helpers & judges
    assert len(helpers) == (36 if seeding == "paper" else 160)


def is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split(".")[1:])
    return path.is_dir() or path.with_suffix(".py").is_file()


def imports(module: str) -> set[str]:
    """Modules of ours that a module imports, anywhere in its code."""
    path = ROOT.joinpath(*module.split(".")[1:])
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    if not file.is_file():
        return set()
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            # What is taken from a package's folder does not go through its face, which gives names of all modules.
            found |= inner if all(map(is_module, inner)) else {node.module, *inner}
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "import_module":
            found.add("a dynamic import")
    return {name for name in found if name.startswith("geco_ray") or name == "a dynamic import"}


def test_no_method_can_reach_an_evaluation_model() -> None:
    files = (ROOT / "cfe" / "methods").rglob("*.py")
    methods = [
        ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__") for path in files
    ]
    seen: set[str] = set()
    waiting = [*methods, "geco_ray.cfe.generation"]
    while waiting:
        module = waiting.pop()
        if module in seen or module == "geco_ray.registry":  # it imports by name, within its own folder
            continue
        seen.add(module)
        waiting += imports(module)
    assert "geco_ray.cfe.methods.wachter" in seen
    assert "a dynamic import" not in seen
    assert [module for module in sorted(seen) if module.startswith(JUDGES)] == []


def test_a_task_holds_the_base_model_and_no_other() -> None:
    model = Mlp.initial(2, seed=0)
    rows, y = np.zeros((3, 2), dtype=np.float32), np.zeros(3, dtype=np.int64)
    task = GenerationTask("toy", 2026, "paper", "paper", model, rows, y, rows, y, rows, y)
    held = [getattr(task, field.name) for field in dataclasses.fields(task)]
    assert [value for value in held if isinstance(value, Mlp)] == [model]
    assert not [value for value in held if isinstance(value, list | tuple | dict) and value]  # nor where to hide one
