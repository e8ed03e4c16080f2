"""What a table of the counterfactual benchmark was made with, where a reader would not expect it: options."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache, partial
from typing import Any

import pandas as pd

from analysis.cfe.styles import METHOD_REGISTRY, METHODS
from analysis.settings import default_options, options_sentence, unlike_defaults
from analysis.styles import registered_entry
from geco_ray.errors import UserError


def settings_sentence(part: pd.DataFrame) -> str:
    """Options of the methods unlike their defaults, of a labelled table's rows; a frozen tuned value is a default."""
    unlike: list[str] = []
    titles = dict(zip(part["method"], part["method_title"], strict=True))
    for (dataset, protocol, seeding), rows in part.groupby(["dataset", "protocol", "seeding"], sort=True):
        options = (json.loads(text).get("method_options", {}) for text in rows["settings"])
        used = zip(rows["method"], options, strict=True)
        unlike += unlike_defaults(
            METHODS, titles, used, partial(tuned_defaults, str(protocol), str(dataset), str(seeding))
        )
    return options_sentence(list(dict.fromkeys(unlike)))


@cache
def tuned_defaults(protocol: str, dataset: str, seeding: str, name: str) -> Mapping[str, Any]:
    """A method's default options, with the values of the frozen tuning where it has no default of its own."""
    from geco_ray.cfe.tuning import GRIDS, tuned

    usual = default_options(METHOD_REGISTRY, name)
    try:
        method = registered_entry(METHOD_REGISTRY, name).name
        frozen = tuned(method, protocol, dataset, seeding) if method in GRIDS else {}
    except (UserError, KeyError):
        return {}
    return {**usual} | {key: value for key, value in frozen.items() if usual.get(key) is None}
