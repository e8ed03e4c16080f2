"""One row per model, base or changed: its name, how it was made, how far it is from its base model, its weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from geco_ray.cfe.base_model import BaseModel
from geco_ray.cfe.changes.base import Variant
from geco_ray.cfe.descriptors import describe
from geco_ray.cfe.mlp import Mlp

if TYPE_CHECKING:
    import pyarrow as pa

    from geco_ray.cfe.data.datasets import Part

NAMED = {"change_id": "string", "family": "string", "variant": "int64", "level": "string", "replicate": "int64"}
MEASURED = (
    "hard_disagreement",
    "probability_mae",
    "base_balanced_accuracy",
    "balanced_accuracy",
    "balanced_accuracy_drop",
    "linf_distance",
    "l2_distance",
)


def model_schema() -> pa.Schema:
    """Columns of :func:`model_table`; a base model has null in those that name a change."""
    import pyarrow as pa

    kinds = {"string": pa.string(), "int64": pa.int64()}
    fields = [pa.field(name, kinds[kind]) for name, kind in NAMED.items()]
    fields += [pa.field("seed", pa.int64()), pa.field("draw", pa.string())]
    fields += [pa.field(name, pa.float64()) for name in MEASURED]
    fields += [pa.field(name, pa.int64()) for name in ("adverse_test_rows", "best_epoch", "epochs")]
    return pa.schema([*fields, pa.field("sha256", pa.string()), pa.field("weights", pa.binary())])


def model_table(base: BaseModel, variants: Sequence[Variant], test: Part) -> pa.Table:
    """One row per variant, in order; descriptors are taken on the test part."""
    import pyarrow as pa

    rows = []
    for variant in variants:
        spec = asdict(variant.spec)
        named = {name: spec[name] for name in (*NAMED, "seed", "draw")}
        rows.append(named | _measured(base, variant.model, variant.epochs, variant.best_epoch, test))
    return pa.Table.from_pylist(rows, schema=model_schema())


def _measured(base: BaseModel, model: Mlp, epochs: int, best_epoch: int, test: Part) -> dict[str, Any]:
    return asdict(describe(base.model, model, test)) | {
        "adverse_test_rows": int(np.sum(~model.favourable(test.x))),
        "epochs": epochs,
        "best_epoch": best_epoch,
        "sha256": model.digest(),
        "weights": model.to_bytes(),
    }
