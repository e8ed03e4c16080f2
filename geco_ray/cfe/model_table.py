"""One row per model, base or changed: how it was made, how far it is from its base model, its weights."""

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

NAMED = ("change_id", "family", "level", "seed", "draw")  # null for a base model, but for its seed


def base_table(base: BaseModel, test: Part) -> pa.Table:
    """The one row of a base model.

    Columns: ``change_id``, ``family``, ``level``, ``seed`` (the base seed), ``draw``, ``epochs``, ``best_epoch``,
    ``adverse_test_rows`` (rows of the test part that it decides adversely), the fields of
    :class:`geco_ray.cfe.descriptors.Descriptors`, and ``weights`` (safetensors).
    """
    named: dict[str, Any] = dict.fromkeys(NAMED) | {"seed": base.key.seed}
    trained = {"epochs": base.epochs, "best_epoch": base.best_epoch}
    adverse = {"adverse_test_rows": int(np.sum(~base.model.favourable(test.x)))}
    return _table([named | trained | adverse | _measured(base.model, base.model, test)])


def model_table(base: BaseModel, variants: Sequence[Variant], test: Part) -> pa.Table:
    """One row per variant of ``base``, in order; the columns of :func:`base_table` without ``adverse_test_rows``.

    Descriptors are taken on the test part.
    """
    rows = []
    for variant in variants:
        named: dict[str, Any] = {name: getattr(variant.spec, name) for name in NAMED}
        trained = {"epochs": variant.epochs, "best_epoch": variant.best_epoch}
        rows.append(named | trained | _measured(base.model, variant.model, test))
    return _table(rows)


def _measured(base: Mlp, model: Mlp, test: Part) -> dict[str, Any]:
    return asdict(describe(base, model, test)) | {"weights": model.to_bytes()}


def _table(rows: list[dict[str, Any]]) -> pa.Table:
    import pyarrow as pa

    table = pa.Table.from_pylist(rows)
    for name in ("linf_distance", "l2_distance"):  # null for another architecture, and still a number's column
        table = table.set_column(table.schema.get_field_index(name), name, table[name].cast(pa.float64()))
    return table
