"""Tables of GECOBench: mass accuracy by model and method, and the accuracy of the models.

Mass accuracy is the share of an attribution's absolute mass that falls on the words marked as decisive: 1 is perfect,
and an attribution that knows nothing gets, on average, ``chance``: the share of marked pieces where a method scores
pieces, of marked words where it scores words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from analysis.aggregate import over_seeds, ratio, reasons, seed_values
from analysis.geco.filters import Rule, counted_rows
from analysis.geco.frames import GecoFrames, model_settings, with_chance
from analysis.intervals import bootstrap, resampling_seed

GROUP = ("dataset", "encoder", "paradigm", "protocol", "method", "settings")
MODEL = ("dataset", "encoder", "paradigm", "protocol", "model_settings")
RANKING = ("roc_auc", "average_precision", "pr_auc", "precision_specificity", "top_k_precision")
SPLITS = ("train_accuracy", "validation_accuracy", "test_accuracy")
_SEED_VALUES = ("mean", "median", "chance", "all_mean", "all_median", "all_chance")
_COUNTS = ("rows", "undefined", "all_rows", "all_undefined")


def metric_by_seed(
    score: pd.DataFrame, truth_share: pd.DataFrame, metric: str = "mass_accuracy", rule: Rule = "per_model_row"
) -> pd.DataFrame:
    """One row per model seed and method: the metric over the seed's test sentences.

    ``mean``, ``median``, ``chance``: over the rows that count as correctly classified by ``rule`` (see
    :func:`analysis.geco.filters.counted_rows`) and whose metric is defined; ``rows``: the rows that count;
    ``undefined``: those of them without a value. ``all_*``: the same over all rows. ``chance`` is the mean over the
    same rows of the share of marked pieces or words, whichever the method scores (see :func:`with_chance`).
    """
    columns = [*GROUP, "seed", *_SEED_VALUES, *_COUNTS]
    if score.empty or metric not in score.columns:
        return pd.DataFrame(columns=columns)
    share = with_chance(score, truth_share)["chance"].set_axis(score.index)
    value = pd.to_numeric(score[metric]).astype("float64")
    out = by_cell(score)
    for prefix, counted in (("", counted_rows(score, rule)), ("all_", pd.Series(True, index=score.index))):
        known = value.where(counted)
        groups = known.groupby(score["cell"], sort=False)
        chance = share.where(known.notna()).groupby(score["cell"], sort=False).mean()
        lost = (counted & value.isna()).groupby(score["cell"], sort=False).sum()
        parts = {"mean": groups.mean(), "median": groups.median(), "chance": chance,
                 "rows": counted.groupby(score["cell"], sort=False).sum(), "undefined": lost}  # fmt: skip
        for name, values in parts.items():
            out[f"{prefix}{name}"] = values.reindex(out["cell"]).to_numpy()
    return out[columns].sort_values([*GROUP, "seed"], ignore_index=True)


def by_cell(score: pd.DataFrame) -> pd.DataFrame:
    """One row per cell of ``score``: its id, the columns of :data:`GROUP` and its seed, which all its rows share."""
    return score[["cell", *GROUP, "seed"]].drop_duplicates("cell").reset_index(drop=True)


def metric_table(frames: GecoFrames, metric: str = "mass_accuracy", rule: Rule = "per_model_row") -> pd.DataFrame:
    """One row per dataset, model, protocol and method.

    ``mean`` and ``median`` are means over seeds of the seed's mean and median over sentences, each with ``_sd``
    (ddof 1 over seeds) and ``_n`` (seeds); ``low`` and ``high`` bound the 95 % bootstrap interval of ``mean``.
    Counts are sums over seeds; ``reasons`` says why rows (all of them) have no value; ``unit`` is what the method
    scores, pieces or words.
    """
    per_seed = metric_by_seed(frames.score, frames.truth_share, metric, rule)
    table = over_seeds(per_seed, GROUP, _SEED_VALUES)
    if table.empty:
        return table.assign(
            **{name: pd.Series(dtype="float64") for name in (*_COUNTS, "low", "high", "reasons", "unit")}
        )
    keys = list(GROUP)
    counts = per_seed.groupby(keys, dropna=False, sort=True)[list(_COUNTS)].sum().reset_index(drop=True)
    table = pd.concat([table, counts.astype("int64")], axis=1)
    values = seed_values(per_seed, keys, "mean")
    bounds = [
        bootstrap(value, resampling_seed(str(dataset))) for value, dataset in zip(values, table["dataset"], strict=True)
    ]
    table["low"], table["high"] = _numbers([b.low for b in bounds]), _numbers([b.high for b in bounds])
    column = "reason" if metric == "mass_accuracy" else "ranking_reason"
    score = frames.score if column in frames.score.columns else frames.score.assign(**{column: None})
    table["reasons"] = reasons(score, keys, metric, column).to_numpy()
    units = score.assign(unit=score.get("unit", pd.Series(index=score.index, dtype="object")))
    table["unit"] = units.groupby(keys, dropna=False, sort=True)["unit"].first().fillna("word").to_numpy()
    return table


def ranking_table(frames: GecoFrames) -> pd.DataFrame:
    """The other measures of each explanation, as :func:`metric_table` gives them, with a leading column ``metric``."""
    frames = replace(frames, truth_share=frames.truth_share.iloc[:0])  # their chance is not the share of marked words
    tables = [
        metric_table(frames, metric).assign(metric=metric) for metric in RANKING if metric in frames.score.columns
    ]
    if not tables:
        return pd.DataFrame(columns=["metric", *GROUP])
    table = pd.concat(tables, ignore_index=True)
    aside = ("metric", *(f"{prefix}chance{end}" for prefix in ("", "all_") for end in ("", "_sd", "_n")))
    return table[["metric", *(name for name in table.columns if name not in aside)]]


def accuracy_table(frames: GecoFrames) -> pd.DataFrame:
    """Accuracy of each model: mean, standard deviation and n over seeds.

    ``test_accuracy`` and, where recorded, ``train_accuracy`` and ``validation_accuracy`` come from training and cover
    the whole splits; ``explained_accuracy`` is the share of the explained test rows that the model got right.
    """
    splits = list(SPLITS)
    trained = _trained(frames.train, splits)
    explained = _explained(frames.score)
    if trained.empty and explained.empty:
        return over_seeds(trained, MODEL, [*splits, "explained_accuracy"])
    keys = [*MODEL, "seed"]
    per_seed = (
        explained.assign(**dict.fromkeys(splits)) if trained.empty else trained.merge(explained, on=keys, how="outer")
    )
    return over_seeds(per_seed, MODEL, [*splits, "explained_accuracy"])


def accuracy_by_seed(frames: GecoFrames) -> pd.DataFrame:
    """One row per model and seed: its accuracies on the whole splits at its best epoch."""
    return _trained(frames.train, list(SPLITS)).sort_values([*MODEL, "seed"], ignore_index=True)


def _trained(train: pd.DataFrame, splits: Sequence[str]) -> pd.DataFrame:
    """Accuracies of the saved model: the one row of a training table, its best epoch's, that has them."""
    at_best = {f"{split}_at_best": split for split in splits}
    if train.empty or not set(at_best) <= set(train.columns):
        return pd.DataFrame(columns=[*MODEL, "seed", *splits])
    rows = train[train["test_accuracy_at_best"].notna()].drop(columns=splits, errors="ignore")
    rows = rows.assign(model_settings=rows["settings"].map(model_settings))
    return rows.rename(columns=at_best)[[*MODEL, "seed", *splits]].reset_index(drop=True)


def _explained(score: pd.DataFrame) -> pd.DataFrame:
    """Share of correct rows per model seed; methods explain the same rows, so the one with most of them tells it."""
    keys = [*MODEL, "seed"]
    if score.empty:
        return pd.DataFrame(columns=[*keys, "explained_accuracy"])
    correct = score["correct"].astype("float64").groupby(score["cell"], sort=False).agg(["sum", "count"])
    cells = by_cell(score).merge(correct, left_on="cell", right_index=True)
    cells["model_settings"] = cells["settings"].map(model_settings)
    cells = cells.sort_values([*keys, "count", "cell"]).drop_duplicates(keys, keep="last")
    return cells.assign(explained_accuracy=ratio(cells["sum"], cells["count"]))[[*keys, "explained_accuracy"]]


def _numbers(values: Sequence[float | None]) -> pd.Series:
    return pd.Series([float("nan") if value is None else value for value in values], dtype="float64")
