"""What a table of GECOBench was made with, where a reader would not expect it: encoders, samples, options."""

from __future__ import annotations

import json
from functools import partial

import pandas as pd

from analysis.geco.styles import ATTRIBUTION_REGISTRY, METHODS, PARADIGM_REGISTRY, PARADIGMS
from analysis.settings import default_options, options_sentence, unlike_defaults


def settings_sentence(part: pd.DataFrame) -> str:
    """Encoders, options of models and methods unlike their defaults, and the sample, of a labelled table's rows."""
    settings = [json.loads(text) for text in part["settings"]]
    unlike: list[str] = []
    for names, place in ((PARADIGMS, PARADIGM_REGISTRY), (METHODS, ATTRIBUTION_REGISTRY)):
        titles = dict(zip(part[names.kind], part[f"{names.kind}_title"], strict=True))
        options = (values.get(f"{names.kind}_options", {}) for values in settings)
        used = zip(part[names.kind], options, strict=True)
        unlike += unlike_defaults(names, titles, used, partial(default_options, place))
    sizes = {values.get("sentences") for values in settings}
    sizes_text = " or ".join(f"a sample of {size:,}" if size else "all" for size in sorted(sizes, key=lambda n: n or 0))
    sample = "" if sizes == {None} else f" Explained: {sizes_text} source sentences."
    return f"{_encoders(part)} {options_sentence(unlike)}{sample}"


def _encoders(part: pd.DataFrame) -> str:
    names = sorted(set(part["encoder"]))
    hashed = any(name.startswith("tokenizer ") for name in names)
    known = (
        " A tokenizer is named by the first digits of its hash; the model has no pretrained encoder." if hashed else ""
    )
    if len(names) == 1:
        return f"Encoder: {names[0]}.{known}"
    titles = dict(zip(part["paradigm"], part["paradigm_title"], strict=True))
    users = {name: PARADIGMS.in_order(part.loc[part["encoder"] == name, "paradigm"]) for name in names}
    texts = (f"{name} ({', '.join(titles[user] for user in users[name])})" for name in names)
    return f"Encoders: {', '.join(texts)}.{known}"
