"""Data of Tables 2, 3 and 4 of "Robust to Which Model Change?", from specs, data sets and rows of models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from geco_ray.cfe.changes.base import FAMILIES, distinct_draws, family_names, variant_specs
from geco_ray.cfe.seeding import BASE_SEEDS, BaseKey

if TYPE_CHECKING:
    import pandas as pd

    from geco_ray.cfe.data.datasets import Dataset


def table_2(seeding: str = "paper", base_seeds: Sequence[int] = BASE_SEEDS) -> pd.DataFrame:
    """One row per family and level: title, construction, variants per base model; per family the distinct draws.

    ``distinct_draws`` counts the random draws or settings behind the family's variants of all ``base_seeds``.
    """
    import pandas as pd

    rows = []
    for name in family_names():
        entry = FAMILIES.get(name)
        levels = [spec.level for spec in variant_specs(name, BaseKey("any", base_seeds[0], seeding))]
        about = (entry.target.__doc__ or "").strip().splitlines()
        for level in dict.fromkeys(levels):
            rows.append(
                {
                    "family": name,
                    "title": entry.title,
                    "construction": about[0] if about else "",
                    "level": level,
                    "variants": levels.count(level),
                    "seeding": seeding,
                    "distinct_draws": distinct_draws(name, "any", seeding, base_seeds),
                }
            )
    return pd.DataFrame(rows)


def table_3(datasets: Sequence[Dataset], bases: pd.DataFrame) -> pd.DataFrame:
    """One row per data set: sizes, adverse test predictions (total, range) and balanced accuracy (min, mean, max).

    Args:
        datasets: the loaded data sets.
        bases: rows of base models with columns ``dataset``, ``adverse_test_rows`` and ``balanced_accuracy``.
    """
    import pandas as pd

    rows = []
    for data in datasets:
        own = bases[bases["dataset"] == data.name]
        parts = {"train": data.train, "update": data.update, "validation": data.val, "test": data.test}
        adverse, accuracy = own["adverse_test_rows"], own["balanced_accuracy"]
        rows.append(
            {
                "dataset": data.name,
                "title": data.card.title or data.name,
                "rows": sum(len(part) for part in parts.values()),
                "features": len(data.features),
                **{name: len(part) for name, part in parts.items()},
                "base_models": len(own),
                "adverse_total": int(adverse.sum()),
                "adverse_min": adverse.min(),
                "adverse_max": adverse.max(),
                "balanced_accuracy_min": accuracy.min(),
                "balanced_accuracy_mean": accuracy.mean(),
                "balanced_accuracy_max": accuracy.max(),
            }
        )
    return pd.DataFrame(rows)


def table_4(variants: pd.DataFrame) -> pd.DataFrame:
    """Hard disagreement and mean probability difference: mean and sd (ddof 1) over a data set's variants, then macro.

    Args:
        variants: rows of changed models with columns ``dataset``, ``family``, ``draw``, ``hard_disagreement`` and
            ``probability_mae``.

    Returns:
        One row per family and data set and, with ``dataset`` = ``macro``, the mean over data sets of these means and
        sds. ``n`` counts variants, ``distinct_draws`` the draws behind them (null for ``macro``). A single variant has
        a null sd.
    """
    import pandas as pd

    measures = ["hard_disagreement", "probability_mae"]
    grouped = variants.groupby(["family", "dataset"], sort=False)
    parts = {f"{name}_{kind}": grouped[name].agg(kind) for name in measures for kind in ("mean", "std")}
    table = pd.DataFrame({**parts, "n": grouped.size(), "distinct_draws": grouped["draw"].nunique()}).reset_index()
    macro = table.groupby("family", sort=False)[list(parts)].mean().reset_index()
    macro.insert(1, "dataset", "macro")
    macro["n"] = table.groupby("family", sort=False)["n"].sum().to_numpy()
    both = pd.concat([table, macro], ignore_index=True)
    both["distinct_draws"] = both["distinct_draws"].astype("Int64")
    order = {name: place for place, name in enumerate(family_names())}
    return both.sort_values("family", key=lambda names: names.map(order), kind="stable").reset_index(drop=True)
