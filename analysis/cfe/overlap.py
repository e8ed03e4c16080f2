"""Do change families that disturb the model equally break the same counterfactuals? The overlap of what they break."""

from __future__ import annotations

from itertools import combinations

import pandas as pd

from analysis.cfe.tables import GROUP

COLUMNS = [*GROUP, "family", "other_family", "counterfactuals", "broken", "other_broken", "overlap", "chance_overlap"]


def family_overlap(validity: pd.DataFrame) -> pd.DataFrame:
    """Overlap of the counterfactuals that two change families break ("Robust to Which Model Change?", families of
    similar disagreement).

    A counterfactual is broken by a family when at least one of the family's variants no longer accepts it.

    Args:
        validity: the validity frame of :func:`analysis.cfe.frames.load`.

    Returns:
        One row per data set, method and pair of families, over all base models: ``counterfactuals`` base-valid ones
        tested under both; ``broken`` and ``other_broken`` counts; ``overlap``: Jaccard index, broken by both over
        broken by either, 0 to 1, null where neither breaks any; ``chance_overlap``: the index expected if the families
        broke as many independently of each other.
    """
    if validity.empty or "variants" not in validity.columns:
        return pd.DataFrame(columns=COLUMNS)
    tested = validity[validity["pairs"] > 0]
    rows = []
    for group, part in tested.groupby(list(GROUP), dropna=False, sort=True):
        broken = part.assign(broken=part["survived"] < part["pairs"]).pivot_table(
            index=["base_seed", "factual_id"], columns="family", values="broken", aggfunc="first"
        )
        for family, other in combinations(broken.columns, 2):
            both = broken[[family, other]].dropna().astype(bool)
            rows.append(dict(zip(GROUP, group, strict=True)) | _compare(both, str(family), str(other)))
    return pd.DataFrame(rows, columns=COLUMNS)


def _compare(both: pd.DataFrame, family: str, other: str) -> dict[str, object]:
    first, second = both[family], both[other]
    either, shared = int((first | second).sum()), int((first & second).sum())
    a, b = float(first.mean()), float(second.mean())
    return {
        "family": family,
        "other_family": other,
        "counterfactuals": len(both),
        "broken": int(first.sum()),
        "other_broken": int(second.sum()),
        "overlap": shared / either if either else None,
        "chance_overlap": a * b / (a + b - a * b) if either else None,
    }
