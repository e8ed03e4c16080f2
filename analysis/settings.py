"""What a table's numbers were made with, where a reader would not expect it: encoders, samples, options."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from typing import Any

import pandas as pd

from analysis.styles import in_order, look, title
from geco_ray.errors import UserError

_KEPT = "All options have their default values."


def geco_setup(part: pd.DataFrame) -> str:
    """Encoders, options of models and methods unlike their defaults, and the sample, of a table's rows."""
    settings = [json.loads(text) for text in part["settings"]]
    models = zip(part["paradigm"], (found.get("paradigm_options", {}) for found in settings), strict=True)
    methods = zip(part["method"], (found.get("method_options", {}) for found in settings), strict=True)
    odd = [*_odd("paradigm", models), *_odd("attribution", methods)]
    sizes = {found.get("sentences") for found in settings}
    sizes_text = " or ".join(f"a sample of {size:,}" if size else "all" for size in sorted(sizes, key=lambda n: n or 0))
    sample = "" if sizes == {None} else f" Explained: {sizes_text} source sentences."
    return f"{_encoders(part)} {_sentence(odd)}{sample}"


def cfe_setup(part: pd.DataFrame) -> str:
    """Options of the counterfactual methods unlike their defaults; a value from the frozen tuning is a default."""
    odd: list[str] = []
    for (dataset, protocol), rows in part.groupby(["dataset", "protocol"], sort=True):
        options = (json.loads(text).get("method_options", {}) for text in rows["settings"])
        odd += _odd("counterfactual", zip(rows["method"], options, strict=True), str(protocol), str(dataset))
    return _sentence(list(dict.fromkeys(odd)))


def _encoders(part: pd.DataFrame) -> str:
    names = sorted(set(part["encoder"]))
    if len(names) == 1:
        return f"Encoder: {names[0]}."
    users = {name: in_order("paradigm", part.loc[part["encoder"] == name, "paradigm"]) for name in names}
    texts = (f"{name} ({', '.join(title('paradigm', user) for user in users[name])})" for name in names)
    return f"Encoders: {', '.join(texts)}."


def _sentence(odd: list[str]) -> str:
    return f"Options unlike the defaults: {'; '.join(odd)}." if odd else _KEPT


def _odd(kind: str, found: Iterable[tuple[str, dict[str, Any]]], protocol: str = "", dataset: str = "") -> list[str]:
    """For each name with such options a text such as ``Integrated Gradients n_steps=5 or 10``."""
    values: dict[str, dict[str, list[Any]]] = {}
    for name, options in found:
        for key, value in options.items():
            seen = values.setdefault(name, {}).setdefault(key, [])
            if value not in seen:
                seen.append(value)
    texts = []
    for name in sorted(values, key=lambda name: (look(kind, name).rank, name)):
        usual = _defaults(kind, name, protocol, dataset)
        unlike = {key: seen for key, seen in values[name].items() if key not in usual or seen != [usual[key]]}
        if unlike:
            shown = (f"{key}={_either(seen, usual.get(key))}" for key, seen in sorted(unlike.items()))
            texts.append(f"{title(kind, name)} {', '.join(shown)}")
    return texts


def _either(values: list[Any], usual: Any) -> str:
    numbers = all(isinstance(value, int | float) for value in values)
    texts = [
        json.dumps(value) + (" (the default)" if value == usual else "")
        for value in sorted(values, key=None if numbers else json.dumps)
    ]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} or {texts[-1]}"


@cache
def _defaults(kind: str, name: str, protocol: str, dataset: str) -> dict[str, Any]:
    """The component's default options; empty when it is not registered here, so that all its options are named."""
    from geco_ray.cfe.methods.base import METHODS
    from geco_ray.cfe.tuning import GRIDS, tuned
    from geco_ray.geco.attribution.base import ATTRIBUTIONS
    from geco_ray.geco.paradigms.base import PARADIGMS

    registry: Any = {"paradigm": PARADIGMS, "attribution": ATTRIBUTIONS, "counterfactual": METHODS}[kind]
    try:
        entry = registry.get(name)
        usual: dict[str, Any] = entry.parse_options().model_dump(mode="json")
        frozen = tuned(entry.name, protocol, dataset) if kind == "counterfactual" and entry.name in GRIDS else {}
    except (UserError, KeyError):
        return {}
    return usual | {key: value for key, value in frozen.items() if usual.get(key) is None}
