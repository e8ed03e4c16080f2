"""What the base models are worth and how far the changed models are from them (the paper's Tables 3 and 4)."""

from __future__ import annotations

import pandas as pd

DESCRIPTORS = ("hard_disagreement", "probability_mae", "balanced_accuracy_drop")
MACRO = "macro average"


def base_models(models: pd.DataFrame) -> pd.DataFrame:
    """One row per data set and seeding, over its base models (Table 3).

    ``models``; test balanced accuracy ``_min``, ``_mean``, ``_max`` (fractions); test rows that a base model rejects:
    ``adverse_total`` over the models, ``adverse_min`` and ``adverse_max`` per model.
    """
    columns = ["dataset", "seeding", "models", "balanced_accuracy_min", "balanced_accuracy_mean",
               "balanced_accuracy_max", "adverse_total", "adverse_min", "adverse_max"]  # fmt: skip
    rows = models[models["kind"] == "base"] if not models.empty else models
    if rows.empty:
        return pd.DataFrame(columns=columns)
    if "adverse_test_rows" not in rows.columns:
        rows = rows.assign(adverse_test_rows=None)
    rows = rows.assign(adverse_test_rows=pd.to_numeric(rows["adverse_test_rows"]).astype("Int64"))
    groups = rows.groupby(["dataset", "seeding"], dropna=False, sort=True)
    return groups.agg(
        models=("cell", "size"),
        balanced_accuracy_min=("balanced_accuracy", "min"),
        balanced_accuracy_mean=("balanced_accuracy", "mean"),
        balanced_accuracy_max=("balanced_accuracy", "max"),
        adverse_total=("adverse_test_rows", lambda values: values.sum(min_count=1)),
        adverse_min=("adverse_test_rows", "min"),
        adverse_max=("adverse_test_rows", "max"),
    ).reset_index()[columns]


def descriptor_table(models: pd.DataFrame) -> pd.DataFrame:
    """One row per change family and data set, and one per family for the macro average over data sets (Table 4).

    For each descriptor d (see :mod:`geco_ray.cfe.descriptors`; fractions of the test part): ``d`` and ``d_sd`` (ddof
    1) over ``models``, the finished variants of all base models. The macro row is the mean of the data sets' means and
    standard deviations; its ``models`` is their sum.
    """
    columns = ["seeding", "family", "dataset", "models", *(f"{d}{end}" for d in DESCRIPTORS for end in ("", "_sd"))]
    rows = models[models["kind"] == "variant"] if not models.empty else models
    if rows.empty:
        return pd.DataFrame(columns=columns)
    rows = rows.assign(**{name: pd.to_numeric(rows[name]).astype("float64") for name in DESCRIPTORS})
    groups = rows.groupby(["seeding", "family", "dataset"], dropna=False, sort=True)
    table = groups.size().rename("models").to_frame()
    for name in DESCRIPTORS:
        table[name], table[f"{name}_sd"] = groups[name].mean(), groups[name].std(ddof=1)
    table = table.reset_index()
    by_family = table.groupby(["seeding", "family"], dropna=False, sort=True)
    macro = by_family[columns[4:]].mean().assign(models=by_family["models"].sum(), dataset=MACRO).reset_index()
    return pd.concat([table[columns], macro[columns]], ignore_index=True).sort_values(
        ["seeding", "family"], kind="stable", ignore_index=True
    )
