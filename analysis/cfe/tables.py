"""Tables of the counterfactual benchmark: what a method achieves on its own model and after the model has changed.

With Q requests, G answers, V answers that the base model accepts, and every variant of the base model asked about
each of the V (P pairs, of which K accept): coverage = G/Q, base validity = V/G, empirical robustness = K/P,
end-to-end robustness = K/(Q x variants), distance = mean over the V of the scaled L1 distance. A ratio whose
denominator is 0 is null.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from analysis.aggregate import over_seeds, ratio, seed_values
from analysis.cfe.frames import CfeFrames
from analysis.cfe.styles import built_in
from analysis.cfe.untested import main_reasons
from analysis.intervals import bootstrap, resampling_seed
from geco_ray.cfe.metrics import METRICS

GROUP = ("dataset", "method", "protocol", "seeding", "settings")
RATES = ("coverage", "base_validity", "empirical_robustness", "end_to_end")
EXTRAS = ("valid_share", "conditional_survival", "certified_coverage", "empirical_robustness_no_bootstrap")
STATUSES = ("found", "base_invalid", "not_found", "budget", "error")
SHORT = {"end_to_end_robustness": "end_to_end"}  # metrics' columns here, where they are not the names
_SUMS = ("requests", "generated", "valid", "certified", *STATUSES)
_SURVIVAL = ("pairs", "survived", "eligible", "eligible_survived")
_PAIRS = (*_SURVIVAL, "request_pairs", "variants", "other_pairs", "other_survived")
_FAMILY_RATES = ("empirical_robustness", "end_to_end", "conditional_survival")


def bootstrap_seed(dataset: str) -> int:
    """The seed of a data set's resamples: the authors' for their own data sets, which they number by alphabet."""
    own = sorted(built_in())
    return 2026 + own.index(dataset) if dataset in own else resampling_seed(dataset)


def table_by_seed(frames: CfeFrames) -> pd.DataFrame:
    """One row per data set, method and base seed: the counts, and the metrics made of them (fractions).

    A base model that calls no test row adverse has a row too, with 0 requests and null metrics.
    """
    keys = [*GROUP, "base_seed"]
    generated = _generation_counts(frames.counterfactuals, frames.cells_without_requests)
    if generated.empty:
        return _with_metrics(generated.reindex(columns=[*keys, *_SUMS, "distance_sum", *_PAIRS]))
    families = pairs_by_family(frames.validity)
    if families.empty:
        return _with_metrics(generated.reindex(columns=[*generated.columns, *_PAIRS]))
    pairs = families.groupby(keys, dropna=False, sort=True)[list(_PAIRS)].sum().reset_index()
    return _with_metrics(generated.merge(pairs, on=keys, how="left"))


def table_6(frames: CfeFrames) -> pd.DataFrame:
    """One row per data set and method, as the paper's Table 6.

    Metrics: those of :data:`RATES`, ``distance`` and :data:`EXTRAS`, which the paper does not have;
    ``empirical_robustness_no_bootstrap`` leaves out the family on whose recipe BetaRCE's helper models are made.

    Each metric m: ``m`` (mean over base seeds), ``m_sd`` (ddof 1), ``m_n`` and ``m_pooled`` (all seeds' requests and
    pairs counted together, as the authors' files do). ``empirical_robustness_low``/``_high``: 95 % bootstrap interval
    over seeds. Counts are sums over seeds, except ``variants``, the changed models asked per base model: ``200``, or
    ``50-200`` when seeds differ because the grid is not finished. ``changed_models``: finished variants of all base
    models; ``distinct_draws``: how many random draws they rest on (:func:`distinct_draws`, summed over families).
    ``reason``: the most frequent one for a request without an answer.
    """
    per_seed = table_by_seed(frames)
    metrics = [*RATES, "distance", *EXTRAS]
    table = over_seeds(per_seed, GROUP, metrics)
    if table.empty:
        return table
    keys = list(GROUP)
    groups = per_seed.groupby(keys, dropna=False, sort=True)
    sums = groups[[*_SUMS, "distance_sum", *_PAIRS]].sum(min_count=1).reset_index()
    pooled = _with_metrics(sums)
    for metric in metrics:
        table[f"{metric}_pooled"] = pooled[metric]
    for count in _SUMS:
        table[count] = sums[count].astype("Int64")
    variants = per_seed["variants"].where(per_seed["requests"] > 0, -1)  # -1: nothing was to be asked
    table["variants"] = variants.groupby([per_seed[key] for key in keys], dropna=False).agg(_range_text).to_numpy()
    table["reason"] = main_reasons(frames.counterfactuals, table, GROUP)
    for metric in ("empirical_robustness", "distance"):
        values = seed_values(per_seed, keys, metric)
        bounds = [
            bootstrap(value, bootstrap_seed(str(dataset)))
            for value, dataset in zip(values, table["dataset"], strict=True)
        ]
        table[f"{metric}_low"] = pd.Series([b.low for b in bounds], dtype="float64")
        table[f"{metric}_high"] = pd.Series([b.high for b in bounds], dtype="float64")
    draws = distinct_draws(frames.models).groupby(["dataset", "seeding"], sort=True)[["models", "draws"]].sum()
    draws = draws.reset_index().rename(columns={"models": "changed_models", "draws": "distinct_draws"})
    return table.merge(draws, on=["dataset", "seeding"], how="left")


def pairs_by_family(validity: pd.DataFrame) -> pd.DataFrame:
    """Pair counts per method, base seed and change family, with ``empirical_robustness`` and ``conditional_survival``.

    ``request_pairs`` = requests x variants, the denominator of end-to-end robustness.
    """
    keys = [*GROUP, "base_seed", "family"]
    if validity.empty or "variants" not in validity.columns:
        return pd.DataFrame(columns=[*keys, "requests", *_PAIRS, *_FAMILY_RATES])
    groups = validity.groupby(keys, dropna=False, sort=True)
    out = groups[list(_SURVIVAL)].sum()
    out["requests"], out["variants"] = groups.size(), groups["variants"].max()
    out["request_pairs"] = out["requests"] * out["variants"]
    other = out.index.get_level_values("family") != "bootstrap"
    out["other_pairs"], out["other_survived"] = out["pairs"].where(other, 0), out["survived"].where(other, 0)
    out["empirical_robustness"] = ratio(out["survived"], out["pairs"])
    out["end_to_end"] = ratio(out["survived"], out["request_pairs"])
    out["conditional_survival"] = ratio(out["eligible_survived"], out["eligible"])
    return out.reset_index()


def family_table(frames: CfeFrames) -> pd.DataFrame:
    """One row per data set, method and change family: the data of the heat map (the paper's Figure 1).

    ``empirical_robustness`` (mean over base seeds) with ``_sd``, ``_n``, ``_min``, ``_max`` and ``_pooled``;
    ``end_to_end`` and ``conditional_survival`` likewise without the range; ``variants`` per base model; ``draws``: see
    :func:`distinct_draws`.
    """
    per_seed = pairs_by_family(frames.validity)
    keys = [*GROUP, "family"]
    table = over_seeds(per_seed, keys, _FAMILY_RATES)
    if table.empty:
        return table
    groups = per_seed.groupby(keys, dropna=False, sort=True)
    table["empirical_robustness_min"] = groups["empirical_robustness"].min().to_numpy()
    table["empirical_robustness_max"] = groups["empirical_robustness"].max().to_numpy()
    sums = groups[["pairs", "survived"]].sum().reset_index()
    table["empirical_robustness_pooled"] = ratio(sums["survived"], sums["pairs"])
    table["pairs"] = sums["pairs"]
    table["variants"] = groups["variants"].agg(_range_text).to_numpy()
    draws = distinct_draws(frames.models)
    return table.merge(draws, on=["dataset", "seeding", "family"], how="left")


def distinct_draws(models: pd.DataFrame) -> pd.DataFrame:
    """How many different random draws the variants of a family rest on, over all base seeds.

    Under ``seeding: paper`` base seeds are consecutive and a family adds the replicate's number to them, so base
    models share draws: 125 variants of "new seed" rest on 29 initialisations. Columns: dataset, seeding, family,
    ``models`` (finished variants), ``draws`` (distinct draws, or distinct settings where nothing is drawn).
    """
    columns = ["dataset", "seeding", "family", "models", "draws"]
    if models.empty or "family" not in models.columns:
        return pd.DataFrame(columns=columns)
    rows = models[models["family"].notna() & (models["kind"] != "base")]
    if rows.empty:
        return pd.DataFrame(columns=columns)
    groups = rows.groupby(["dataset", "seeding", "family"], dropna=False, sort=True)
    distinct = rows.drop_duplicates(["dataset", "seeding", "family", "draw"])
    counted = distinct.groupby(["dataset", "seeding", "family"], dropna=False, sort=True).size()
    return groups.size().rename("models").to_frame().assign(draws=counted).reset_index()[columns]


def _generation_counts(rows: pd.DataFrame, without_requests: pd.DataFrame) -> pd.DataFrame:
    keys = [*GROUP, "base_seed"]
    if rows.empty and without_requests.empty:
        return pd.DataFrame(columns=[*keys, *_SUMS, "distance_sum"])
    status = rows["status"].astype("str")
    unknown = sorted(set(status) - set(STATUSES))
    if unknown:
        raise ValueError(f"unknown status of a counterfactual: {', '.join(unknown)}")
    flags = rows[keys].copy()
    for name in STATUSES:
        flags[name] = (status == name).astype("int64")
    flags["requests"], flags["valid"] = 1, flags["found"]
    flags["generated"] = flags["found"] + flags["base_invalid"]
    flags["certified"] = _certified(rows)
    flags["distance_sum"] = pd.to_numeric(rows["distance"]).astype("float64").where(status == "found")
    sums = flags.groupby(keys, dropna=False, sort=True)[[*_SUMS, "distance_sum"]].sum(min_count=1).reset_index()
    if without_requests.empty:
        return sums
    none = without_requests[keys].drop_duplicates().assign(**dict.fromkeys(_SUMS, 0), distance_sum=np.nan)
    certifying = set(flags.loc[flags["certified"].notna(), "method"])
    none["certified"] = none["certified"].astype("Int64").where(none["method"].isin(certifying))
    both = pd.concat([sums, none]) if len(sums) else none
    return both.sort_values(keys, ignore_index=True)


def _certified(rows: pd.DataFrame) -> pd.Series:
    """1 where an answer carries its method's certificate, else 0; null for methods that never give one.

    A request without an answer has no flag of its own, so a base model for which a certifying method finds nothing
    shows 0 of its requests certified, and not a gap.
    """
    if "certified" not in rows.columns:
        return pd.Series(pd.NA, index=rows.index, dtype="Int64")
    certified = rows["certified"].astype("boolean")
    gives = certified.notna().groupby(rows["method"]).transform("any").astype("bool")
    return certified.fillna(False).where(gives).astype("Int64")


def _with_metrics(counts: pd.DataFrame) -> pd.DataFrame:
    out = counts.copy()
    for metric in METRICS.values():
        out[SHORT.get(metric.name, metric.name)] = ratio(out[metric.numerator], out[metric.denominator])
    return out


def _range_text(values: pd.Series) -> str:
    known: Sequence[int] = sorted({int(value) for value in values.fillna(0)} - {-1}) or [0]
    return str(known[0]) if len(known) == 1 else f"{known[0]}-{known[-1]}"
