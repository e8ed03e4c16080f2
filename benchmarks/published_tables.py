"""The sections of the published page: each is a table or sentences made of numbers, or says what is missing."""

from __future__ import annotations

import json
import platform
from importlib.metadata import version
from pathlib import Path

import pandas as pd
from verdicts import Value

from analysis.cfe.runtimes import runtime_table
from geco_ray.arithmetic import kernel_groups
from geco_ray.cfe.tuning import find_entry
from geco_ray.ledger import Ledger

HERE = Path(__file__).parent
RESULTS = HERE.parent / "docs" / "results"
REFERENCE = json.loads((HERE / "counterfactual_reference.json").read_text())["results"]
FAMILIES = {
    "architecture": 3.81, "bootstrap": 3.94, "bounded_parameter": 0.72, "data_addition": 1.72, "deletion": 1.40,
    "label_update": 4.51, "seed": 3.55, "training_config": 2.75,
}  # fmt: skip
"""Mean absolute change of the probability in percent, measured with the authors' code."""
PRINTED = {"bootstrap": "4.92", "bounded_parameter": "0.95", "architecture": "4.69"}
PRINTED_FAMILIES = ", ".join(f"{family} {value}" for family, value in PRINTED.items())
PACKAGES = ("geco-ray", "ray", "torch", "numpy", "scipy", "scikit-learn", "highspy")
CLAIM_13 = {"empirical_robustness": "93.1", "end_to_end_robustness": "67.8", "base_validity": "72.8"}


def tabulate(header: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    return "\n".join(f"| {' | '.join(row)} |" for row in [header, ["---"] * len(header), *rows])


def measured(name: str) -> pd.DataFrame | None:
    """A table that another script has put into docs/results, or None."""
    path = RESULTS / f"counterfactuals_{name}.csv"
    return pd.read_csv(path) if path.is_file() else None


def percent(value: float) -> str:
    """A fraction in percent."""
    return "–" if pd.isna(value) else f"{100 * value:.1f}"


def main_table(table: pd.DataFrame) -> str:
    """Ours beside the reference of every data set and method."""
    rows = []
    for line in table.sort_values(["dataset", "empirical_robustness"]).itertuples():
        known = REFERENCE.get(line.dataset, {}).get(line.method)
        theirs = f"{known['robustness']:.1f} ± {known['robustness_sd']:.1f}" if known else "–"
        rows.append(
            [
                str(line.dataset),
                str(line.method),
                percent(line.coverage),
                percent(line.base_validity),
                f"{percent(line.empirical_robustness)} ± {percent(line.empirical_robustness_sd)}",
                theirs,
                f"{percent(line.end_to_end)} ± {percent(line.end_to_end_sd)}",
                f"{line.distance:.3f} ± {line.distance_sd:.3f}",
                f"{known['distance']:.3f}" if known else "–",
            ]
        )
    header = [
        "data set", "method", "coverage %", "base validity %", "empirical robustness %", "reference", "end-to-end %",
        "distance", "reference",
    ]  # fmt: skip
    return tabulate(header, rows)


def family_table(table: pd.DataFrame) -> str:
    """Empirical robustness by family, with the reference in brackets."""
    rows = []
    for (dataset, method), part in table.groupby(["dataset", "method"]):
        values = dict(zip(part["family"], part["empirical_robustness"], strict=True))
        known = REFERENCE.get(str(dataset), {}).get(str(method), {}).get("families", {})
        cells = [f"{percent(values[f])} ({known[f]:.1f})" if f in known else percent(values[f]) for f in FAMILIES]
        rows.append([str(dataset), str(method), *cells])
    return tabulate(["data set", "method", *FAMILIES], rows)


def table_4(descriptors: pd.DataFrame) -> str:
    """Hard disagreement and mean absolute change of the probability of every family, beside what is known."""
    rows = []
    for family, theirs in FAMILIES.items():
        own = descriptors[descriptors["family"] == family]
        seeds = own.groupby("base_seed")[["hard_disagreement", "probability_mae"]].mean()
        mean, sd = seeds.mean(), seeds.std()
        cells = [f"{mean[name]:.2f} ± {sd[name]:.2f}" for name in seeds.columns]
        rows.append([family, cells[0], PRINTED.get(family, "–"), cells[1], f"{theirs:.2f}"])
    return tabulate(["family", "hard disagreement %", "paper", "mean change of p, %", "authors' code"], rows)


def distances(by_seed: pd.DataFrame) -> str:
    """Mean distance of every data set, method and base model."""
    wide = by_seed.pivot(index=["dataset", "method"], columns="base_seed", values="distance")
    rows = [
        [*map(str, key), *(f"{value:.3f}" for value in row)] for key, row in zip(wide.index, wide.values, strict=True)
    ]
    return tabulate(["data set", "method", *map(str, wide.columns)], rows)


def tuning_section() -> str:
    """What the rule selects on base models that differ in rounding alone, and claim 13's numbers for each value."""
    models, curve = measured("tuning_models"), measured("tuning_curve")
    if models is None or curve is None:
        return "Not run (`benchmarks/tuning_sensitivity.py`)."
    entry = find_entry("roar_lime", "paper", "paper", "wine_quality")
    metrics = list(CLAIM_13)
    scores = curve.groupby("trade_off")[metrics].agg(["mean", "std"]) * 100
    counts, rows, held = models["paper"].value_counts().sort_index(), [], 0
    for value in sorted({*counts.index, *([entry.selected["trade_off"]] if entry else [])}):
        own = scores.loc[value]
        values = [Value(paper, own[name, "mean"], own[name, "std"]) for name, paper in CLAIM_13.items()]
        reproduced = all(one.holds for one in values)
        held += int(counts.get(value, 0)) * reproduced
        shown = [f"{one.ours:.1f} ± {one.sd:.1f}" for one in values]
        rows.append([f"{value:g}", str(counts.get(value, 0)), *shown, "reproduced" if reproduced else "not reproduced"])
    asked = int(models["corrected"].notna().sum())
    sound = ", ".join(f"{value:g} ({count})" for value, count in models["corrected"].value_counts().items())
    force = (
        f" The package's value for wine is {entry.selected['trade_off']:g} ({entry.source}); the rule selects "
        f"{entry.by_rule['trade_off']:g} on the pinned kernels' base model."
        if entry
        else ""
    )
    header = [
        "trade-off",
        "selected by the rule",
        *(f"{name} % (paper {paper})" for name, paper in CLAIM_13.items()),
        "claim 13",
    ]
    return f"""The base model of seed 2026 on wine, trained {len(models)} times on the same rows in other orders:
sums are rounded otherwise and nothing else differs (probabilities on the validation part by up to
{models["difference"].max():.2g}). The paper's rule selects {len(counts)} values on them; claim 13 would have been
reproduced {held} times of {len(models)}. The rule of `corrected`, with more rows and ties within noise, run on
{asked} of them, selects: {sound}.{force}

{tabulate(header, rows)}

[All trade-offs by base model](counterfactuals_tuning_curve.csv),
[the selections](counterfactuals_tuning_models.csv)."""


def certificate_section(table: pd.DataFrame) -> str:
    """Certified coverage, and the proofs as far as they have come."""
    own = table[table["method"] == "apas"]
    rows = [
        [str(r.dataset), f"{percent(r.certified_coverage)} ± {percent(r.certified_coverage_sd)}"]
        for r in own.itertuples()
    ]
    certified = tabulate(["data set", "requests with a certificate %"], rows)
    proofs = measured("proofs")
    if proofs is None:
        return f"{certified}\n\nProofs: not run (`benchmarks/publish_proofs.py`)."
    whole = proofs.set_index("dataset").loc["all"]
    state = f"{int(whole['left']):,} requests are left" if whole["left"] else "all requests were asked"
    lines = [
        [str(r.dataset), f"{r.asked:,} of {r.requests:,}", f"{r.proven:,}", f"{r.proven_percent:.1f}", str(r.improved),
         *("–" if pd.isna(g) else f"{g:.2f}" for g in (r.gap_median, r.gap_p90, r.gap_max)), f"{r.seconds / 3600:.2f}"]
        for r in proofs.itertuples()
    ]  # fmt: skip
    header = ["data set", "asked", "proven", "% of the asked", "closer point found", "gap of the rest %: median", "p90",
              "largest", "hours of one core"]  # fmt: skip
    told = (
        f"APΔS with `proof: budget`: of {int(whole['asked']):,} requests asked {whole['proven_percent']:.1f} % have a "
        f"distance that is proven to 0.01 %, in {whole['seconds'] / 3600:.1f} hours of one core; {state}."
    )
    return f"{certified}\n\n{told}\n\n{tabulate(header, lines)}"


def seconds_section(ledger: Ledger) -> str:
    """One at a time on a sample, and in the run's batches."""
    single = measured("single_requests")
    batches = runtime_table(ledger)
    in_batches = tabulate(
        ["method", "requests", "mean seconds in batches of 64", "mean set-up"],
        [[r.method, f"{r.requests:,}", f"{r.mean:.4g}", f"{r.set_up_mean:.4g}"] for r in batches.itertuples()],
    )
    if single is None:
        alone = "One at a time: not run (`benchmarks/single_requests.py`)."
    else:
        least = int(single["least_of_a_data_set"].min())
        rows = [[str(v) if isinstance(v, str | int) else f"{v:.4g}" for v in row[1:]] for row in
                single.drop(columns="least_of_a_data_set").itertuples()]  # fmt: skip
        alone = (
            f"One at a time: at least {least} requests of base model 2026 on each data set, CPU seconds of one thread, "
            "failures included, set-up excluded.\n\n"
            + tabulate(["method", "requests", "mean", "sd", "median", "p90", "max"], rows)
        )
    return f"{alone}\n\nIn this run, wall seconds; a batch's requests have no times of their own.\n\n{in_batches}"


def provenance(ledger: Ledger, command: str, commit: str) -> str:
    """Where the numbers come from."""
    records = [record for stage in ("models", "counterfactuals", "validity") for record in ledger.records(stage)]
    seconds = sum(float(record.info.get("seconds", 0)) for record in records)
    last = max(str(record.info.get("finished", "")) for record in records)
    kernels = "; ".join(f"{count:,} cells: {names}" for names, count in kernel_groups(r.info for r in records).items())
    lines = [
        f"- command: `{command}`",
        f"- code: commit `{commit}`; " + ", ".join(f"{name} {version(name)}" for name in PACKAGES),
        f"- machine: {platform.machine()}, Python {platform.python_version()}, CPUs only, one thread per worker",
        f"- kernels: {kernels}",
        f"- {len(records):,} cells, {seconds:,.0f} seconds of work; the last one finished {last}",
    ]
    return "\n".join(lines)
