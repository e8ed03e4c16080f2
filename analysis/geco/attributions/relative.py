"""Mass accuracy of trained models relative to a reference: a model that was never trained, and so has no seed.

A pair is of one data set, protocol, method, options and test row, and of one encoder; a model that uses a tokenizer
alone is paired with the reference of every encoder that has this tokenizer.
"""

from __future__ import annotations

import json
from collections.abc import Collection

import numpy as np
import pandas as pd

from analysis.aggregate import over_seeds
from analysis.geco.filters import Rule, counted_rows
from analysis.geco.frames import GecoFrames, model_settings
from analysis.geco.tables import GROUP
from geco_ray.geco.metrics import RELATIVE_METRICS

REFERENCE = ("reference", "reference_encoder", "reference_settings")
_PAIR = ("dataset", "data", "protocol", "method", "method_options", "row")
_COUNTS = ("pairs", *(f"{name}_undefined" for name in RELATIVE_METRICS))
_VALUES = tuple(f"{name}{end}" for name in RELATIVE_METRICS for end in ("_mean", "_median"))


def reference_paradigms() -> frozenset[str]:
    """The paradigms that are registered as a reference of others."""
    from geco_ray.geco.paradigms.base import PARADIGMS

    return frozenset(entry.name for entry in PARADIGMS.entries() if getattr(entry.target, "is_reference", False))


def with_reference(score: pd.DataFrame, references: Collection[str] | None = None) -> pd.DataFrame:
    """The rows of trained models that have a reference, one for each, with ``reference_mass_accuracy``.

    Args:
        score: scored rows.
        references: names of paradigms; None is :func:`reference_paradigms`.

    Returns:
        the rows with :data:`REFERENCE`: the reference's paradigm, encoder and settings; rows that have none are left
        out.
    """
    names = reference_paradigms() if references is None else references
    rows = score.assign(
        data=score["settings"].map(lambda text: json.loads(text).get("data")),
        method_options=score["settings"].map(_method_options),
        mass_accuracy=pd.to_numeric(score["mass_accuracy"]).astype("float64"),
    )
    known = rows[rows["paradigm"].isin(names)]
    known = known.assign(
        reference=known["paradigm"],
        reference_encoder=known["encoder"],
        reference_settings=known["settings"].map(model_settings),
        reference_mass_accuracy=known["mass_accuracy"],
        its_tokenizer="tokenizer " + known["tokenizer"].astype("string").fillna(""),
    )
    columns = [*_PAIR, *REFERENCE, "its_tokenizer", "reference_mass_accuracy"]
    known = known[columns].drop_duplicates([*_PAIR, *REFERENCE])
    pairs = rows[~rows["paradigm"].isin(names)].merge(known, on=list(_PAIR), how="inner")
    same = (pairs["encoder"] == pairs["reference_encoder"]) | (pairs["encoder"] == pairs["its_tokenizer"])
    return pairs[same].drop(columns="its_tokenizer").reset_index(drop=True)


def relative_by_seed(
    score: pd.DataFrame, rule: Rule = "per_model_row", references: Collection[str] | None = None
) -> pd.DataFrame:
    """One row per model seed, method and reference, over the model's rows that ``rule`` counts as correctly classified.

    ``pairs``: rows where both mass accuracies are defined. For each metric of :data:`RELATIVE_METRICS`: ``_mean`` and
    ``_median`` over pairs, and ``_undefined``, the pairs without a value. The published forms are null unless the
    protocol is ``paper``.
    """
    columns = [*GROUP, *REFERENCE, "seed", *_VALUES, *_COUNTS]
    if score.empty:
        return pd.DataFrame(columns=columns)
    pairs = with_reference(score.assign(counts=counted_rows(score, rule)), references)
    pairs = pairs[pairs["counts"]]
    masses = pairs[["mass_accuracy", "reference_mass_accuracy"]].to_numpy(np.float64)
    pairs = pairs[np.isfinite(masses).all(1)]
    if pairs.empty:
        return pd.DataFrame(columns=columns)
    by = [pairs[key] for key in (*GROUP, *REFERENCE, "seed")]
    parts = {"pairs": pairs.groupby(by, dropna=False, sort=True).size()}
    for name, metric in RELATIVE_METRICS.items():
        value = pd.Series(
            metric.compute(*pairs[["mass_accuracy", "reference_mass_accuracy"]].to_numpy(np.float64).T), pairs.index
        )
        shown = ~pd.Series(metric.published, pairs.index) | (pairs["protocol"] == "paper")
        groups = value.where(shown).groupby(by, dropna=False, sort=True)
        parts[f"{name}_mean"], parts[f"{name}_median"] = groups.mean(), groups.median()
        parts[f"{name}_undefined"] = (shown & value.isna()).groupby(by, dropna=False, sort=True).sum()
    return pd.DataFrame(parts).reset_index()[columns]


def relative_table(
    frames: GecoFrames, rule: Rule = "per_model_row", references: Collection[str] | None = None
) -> pd.DataFrame:
    """One row per data set, model, protocol, method and reference: the seeds' means and medians over seeds.

    Counts are sums over seeds; each value has ``_sd`` (ddof 1) and ``_n`` (seeds with a value).
    """
    per_seed = relative_by_seed(frames.score, rule, references)
    keys = [*GROUP, *REFERENCE]
    table = over_seeds(per_seed, keys, _VALUES)
    if table.empty:
        return table.assign(**{name: pd.Series(dtype="int64") for name in _COUNTS})
    counts = per_seed.groupby(keys, dropna=False, sort=True)[list(_COUNTS)].sum().reset_index(drop=True)
    return pd.concat([table, counts.astype("int64")], axis=1)


def _method_options(settings: str) -> str:
    return json.dumps(json.loads(settings).get("method_options", {}), sort_keys=True)
