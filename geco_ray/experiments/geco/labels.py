"""Columns that make a file of GECOBench's explanations and scores say what it is, wherever it is copied to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from geco_ray.experiments.labels import options_text, with_labels

if TYPE_CHECKING:
    import pyarrow as pa

    from geco_ray.experiments.geco.cells import ExplainCell

LABELS = ("dataset", "encoder", "tokenizer", "paradigm", "seed", "protocol", "method", "options")


def labelled(table: pa.Table, cell: ExplainCell, tokenizer: str) -> pa.Table:
    """``table`` with :data:`LABELS` in front; ``seed`` is null where nothing is drawn.

    ``tokenizer`` is the beginning of its fingerprint, by which a model that uses a tokenizer alone finds those of an
    encoder. See :func:`geco_ray.experiments.labels.with_labels`.
    """
    params = cell.params()
    params = params | {"options": options_text(params["method_options"]), "tokenizer": tokenizer}
    return with_labels(table, {name: params[name] for name in LABELS})
