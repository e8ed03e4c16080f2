"""One row per model, base or changed: how it was made, how far it is from its base model, its weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from geco_ray.cfe.base_model import BaseModel
from geco_ray.cfe.changes.base import Variant
from geco_ray.cfe.descriptors import Descriptors, describe
from geco_ray.cfe.mlp import Mlp

if TYPE_CHECKING:
    import pyarrow as pa

    from geco_ray.cfe.data.datasets import Part

NAMED = ("change_id", "family", "level", "seed", "draw")  # null for a base model, but for its seed
TRAINED = ("epochs", "best_epoch")
MEASURED = (*(field.name for field in fields(Descriptors)), "weights")


def base_table(base: BaseModel, test: Part) -> pa.Table:
    """The one row of a base model.

    Columns: ``change_id``, ``family``, ``level``, ``seed`` (the base seed), ``draw``, ``epochs``, ``best_epoch``,
    ``adverse_test_rows`` (rows of the test part that it decides adversely), the fields of
    :class:`geco_ray.cfe.descriptors.Descriptors`, and ``weights`` (safetensors).
    """
    named: dict[str, Any] = dict.fromkeys(NAMED) | {"seed": base.key.seed}
    trained = {"epochs": base.epochs, "best_epoch": base.best_epoch}
    adverse = {"adverse_test_rows": int(np.sum(~base.model.favourable(test.x)))}
    row = named | trained | adverse | _measured(base.model, base.model, test)
    return _table([row], (*NAMED, *TRAINED, "adverse_test_rows", *MEASURED))


def model_table(base: BaseModel, variants: Sequence[Variant], test: Part) -> pa.Table:
    """One row per variant of ``base``, in order; the columns of :func:`base_table` without ``adverse_test_rows``.

    Descriptors are taken on the test part.
    """
    rows = []
    for variant in variants:
        named: dict[str, Any] = {name: getattr(variant.spec, name) for name in NAMED}
        trained = {"epochs": variant.epochs, "best_epoch": variant.best_epoch}
        rows.append(named | trained | _measured(base.model, variant.model, test))
    return _table(rows, (*NAMED, *TRAINED, *MEASURED))


def _measured(base: Mlp, model: Mlp, test: Part) -> dict[str, Any]:
    return asdict(describe(base, model, test)) | {"weights": model.to_bytes()}


def _table(rows: list[dict[str, Any]], names: Sequence[str]) -> pa.Table:
    import pyarrow as pa

    texts, numbers = ("change_id", "family", "level", "draw"), ("seed", "epochs", "best_epoch", "adverse_test_rows")
    kinds = dict.fromkeys(texts, pa.string()) | dict.fromkeys(numbers, pa.int64()) | {"weights": pa.binary()}
    return pa.Table.from_pylist(rows, schema=pa.schema([(name, kinds.get(name, pa.float64())) for name in names]))
