"""Turn a finished run of GECOBench with OLA-CEA into a page under docs/results, held against the published numbers.

    python -m geco_ray.grid benchmarks/gecobench_ola.yaml --data-dir DATA --root RUN --executor inline --device cpu
    python benchmarks/publish_gecobench.py RUN --command "the line above" --commit "$(git rev-parse HEAD)"

Every number and every verdict is computed from the run's cells. Reference medians are those of the authors' functions,
run on the released binary data with three repetitions of 200, 80 and 80 sampled rows.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
from verdicts import NOT_REPRODUCED, REPRODUCED

from analysis.geco.topic import TOPIC
from analysis.topic import Numbers
from geco_ray.geco.attribution.base import ATTRIBUTIONS
from geco_ray.ledger import Ledger

TARGET = Path(__file__).parents[1] / "docs" / "results"
TASKS = {
    "binary_gender_all": "binary, all",
    "binary_gender_subj": "binary, subject",
    "non_binary_gender_all": "non-binary, all",
    "non_binary_gender_subj": "non-binary, subject",
}
ACCURACY = {"binary_gender_all": (99.5, 1.0), "binary_gender_subj": (92.9, 2.5)}
"""Test accuracy in percent that the authors' notebook gives, and how far another run of their code lies at most."""
UNIFORM = dict(zip(TASKS, (0.158, 0.085, 0.229, 0.140), strict=True))
"""Mean mass accuracy of uniform random numbers over all test rows, by the authors' functions."""
MEDIANS = {
    "uniform_random": ((0.15, 0.18), (0.07, 0.08)),
    "kernel_shap": ((0.21, 0.23), (0.40, 0.51)),
    "lime": ((0.57, 0.63), (0.75, 0.78)),
    "saliency": ((0.57, 1.00), (0.48, 0.50)),
    "guided_backprop": ((0.48, 0.98), (0.27, 0.51)),
    "deeplift": ((0.81, 0.98), (0.40, 0.51)),
    "gradient_shap": ((0.80, 0.97), (0.80, 0.83)),
    "integrated_gradients": ((0.76, 0.93), (0.80, 0.83)),
    "input_x_gradient": ((0.95, 1.00), (0.97, 0.98)),
    "pattern_variant": ((1.00, 1.00), (0.76, 0.81)),
}
"""Median mass accuracy on rows classified right, binary all and binary subject: the range over repetitions of the
authors' functions, with that of a second implementation where there is one."""
SAMPLED, SAMPLES, HALF_A_DIGIT = 80, 2000, 0.005


def tabulate(header: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    return "\n".join(f"| {' | '.join(row)} |" for row in [header, ["---"] * len(header), *rows])


def titles(methods: pd.Series) -> dict[str, str]:
    """Method to its title, in the order in which methods are shown."""
    entries = sorted(ATTRIBUTIONS.entries(), key=lambda entry: entry.profile.order)
    return {entry.name: entry.title for entry in entries if entry.name in set(methods)}


def accuracy_table(accuracy: pd.DataFrame) -> str:
    """Test accuracy over seeds by task and protocol, held against the authors'."""
    rows = []
    for (dataset, protocol), part in accuracy.groupby(["dataset", "protocol"], sort=False):
        mean, sd = 100 * part["test_accuracy"].mean(), 100 * part["test_accuracy"].std()
        theirs, verdict = "–", "–"
        if protocol == "paper" and dataset in ACCURACY:
            published, tolerance = ACCURACY[dataset]
            theirs = f"{published} (± {tolerance} between runs)"
            verdict = REPRODUCED if abs(mean - published) <= tolerance else NOT_REPRODUCED
        rows.append([TASKS[dataset], protocol, f"{mean:.1f} ± {sd:.1f}", theirs, verdict])
    return tabulate(["task", "protocol", "test accuracy %", "authors", "verdict"], rows)


def mass_table(by_seed: pd.DataFrame, protocol: str) -> str:
    """Mean mass accuracy on rows classified right: mean and standard deviation over seeds, by method and task."""
    part, rows = by_seed[by_seed["protocol"] == protocol], []
    for method, title in titles(part["method"]).items():
        own = part[part["method"] == method].groupby("dataset")["mean"]
        cells = [f"{own.mean()[task]:.3f} ± {own.std()[task]:.3f}" for task in TASKS]
        rows.append([title, *cells])
    return tabulate(["method", *TASKS.values()], rows)


def uniform_table(score: pd.DataFrame) -> str:
    """Mean mass accuracy of uniform random numbers over all rows, against the authors' functions."""
    own = score[(score["method"] == "uniform_random") & (score["protocol"] == "paper")]
    found = own.groupby("dataset")["mass_accuracy"].mean()
    rows = []
    for task, value in UNIFORM.items():
        verdict = REPRODUCED if abs(found[task] - value) <= 0.01 else NOT_REPRODUCED
        rows.append([TASKS[task], f"{found[task]:.3f}", f"{value:.3f}", verdict])
    return tabulate(["task", "here", "authors' functions", "within .01"], rows)


def sampled_range(score: pd.DataFrame, dataset: str, method: str) -> tuple[float, float]:
    """The central 95 % of medians of as many random rows of one repetition as the reference sampled."""
    own = score[(score["dataset"] == dataset) & (score["method"] == method) & (score["protocol"] == "paper")]
    stream, medians = np.random.default_rng(0), []
    for _, part in own[own["correct"].astype(bool)].groupby("seed"):
        values = part["mass_accuracy"].dropna().to_numpy(np.float64)
        medians += [np.median(stream.choice(values, SAMPLED, replace=False)) for _ in range(SAMPLES)]
    low, high = np.quantile(medians, [0.025, 0.975])
    return float(low), float(high)


def medians_table(by_seed: pd.DataFrame, score: pd.DataFrame) -> tuple[str, Counter[str]]:
    """The mean of five seed medians against the reference's range, and for each miss whether sampling explains it."""
    rows, verdicts = [], Counter[str]()
    paper = by_seed[by_seed["protocol"] == "paper"]
    for method, title in titles(paper["method"]).items():
        for task, (low, high) in zip(TASKS, MEDIANS[method], strict=False):
            own = paper[(paper["method"] == method) & (paper["dataset"] == task)].sort_values("seed")["median"]
            inside = low - HALF_A_DIGIT <= own.mean() <= high + HALF_A_DIGIT
            why = ""
            if not inside:
                least, most = sampled_range(score, task, method)
                overlap = least <= high + HALF_A_DIGIT and most >= low - HALF_A_DIGIT
                meaning = "meets" if overlap else "misses"
                why = (
                    f"medians of {SAMPLED} random rows of one repetition: {least:.2f} to {most:.2f}, which {meaning} it"
                )
            verdict = REPRODUCED if inside else NOT_REPRODUCED
            verdicts[verdict] += 1
            each = " ".join(f"{value:.2f}" for value in own)
            rows.append(
                [title, TASKS[task], each, f"{own.mean():.3f}", f"{low:.2f} to {high:.2f}", verdict, why or "–"]
            )
    header = ["method", "task", "medians by seed", "mean", "reference", "verdict", "cause that was tested"]
    return tabulate(header, rows), verdicts


def ceiling_table(by_seed: pd.DataFrame) -> str:
    """The best other method beside Pattern Variant, by task and protocol: means over seeds, and in how many it wins."""
    rows = []
    for (dataset, protocol), part in by_seed.groupby(["dataset", "protocol"], sort=False):
        wide = part.pivot(index="seed", columns="method", values="mean")
        pattern = wide.pop("pattern_variant")
        best = str(wide.mean().idxmax())
        wins = f"{int((wide[best] > pattern).sum())} of {len(wide)}"
        verdict = REPRODUCED if wide[best].mean() <= pattern.mean() else NOT_REPRODUCED
        cells = [TASKS[dataset], protocol, titles(part["method"])[best], f"{wide[best].mean():.3f}"]
        rows.append([*cells, f"{pattern.mean():.3f}", wins, verdict])
    header = [
        "task",
        "protocol",
        "best other method",
        "its mean",
        "Pattern Variant",
        "seeds in which it is ahead",
        "verdict",
    ]
    return tabulate(header, rows)


def page(root: str, command: str, commit: str) -> str:
    """The page as Markdown."""
    ledger = Ledger(root)
    numbers = Numbers(TOPIC, ledger)
    by_seed, score = numbers.table("mass_accuracy_by_seed.csv"), numbers.frames.score
    medians, verdicts = medians_table(by_seed, score)
    records = [record for stage in ("train", "explain", "score") for record in ledger.records(stage)]
    spent = sum(float(record.info.get("cpu_seconds", 0.0)) for record in records)
    packages = next(record for record in records if "packages" in record.info).info["packages"]
    versions = ", ".join(
        f"{name} {packages[name]}" for name in ("captum", "lime", "numpy", "torch") if name in packages
    )
    return f"""# GECOBench with the one-layer attention model

OLA-CEA on the four GECO tasks, five repetitions, ten attribution methods, all test sentences, both protocols. It is the
paper's reference without pretrained knowledge, and uses no more of an encoder than its tokenizer.

- command: `{command}`
- code: commit `{commit[:12]}`; {versions}
- {len(records):,} cells, {spent:,.0f} CPU seconds on one thread; CPUs only

## Accuracy of the models

{accuracy_table(numbers.table("model_accuracy_by_seed.csv"))}

## Mass accuracy, `paper`

Mean over rows classified right; mean ± standard deviation over five repetitions.

{mass_table(by_seed, "paper")}

## Mass accuracy, `corrected`

{mass_table(by_seed, "corrected")}

## Uniform random numbers

{uniform_table(score)}

## Medians against the authors' functions

Mean of the five repetitions' medians, rows classified right, `paper`. The reference is the range over three
repetitions of the authors' functions on 200, 80 and 80 sampled rows, joined with a second implementation's.
*{REPRODUCED}*: inside that range, to its printed digits ({verdicts[REPRODUCED]} of {verdicts.total()}).
For each of the others, the central 95 % of the medians that as few rows as the reference sampled can give here.

{medians}

## Does any method reach Pattern Variant?

The paper says that none does for this model.

{ceiling_table(by_seed)}

Every number by seed: [medians and means](gecobench_ola_mass_accuracy_by_seed.csv),
[accuracies](gecobench_ola_model_accuracy_by_seed.csv). Made by `benchmarks/publish_gecobench.py`.
"""


def main() -> None:
    """Write the page and its tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", help="the run folder")
    parser.add_argument("--command", required=True, help="the command that made it")
    parser.add_argument("--commit", required=True, help="the commit of the code that made it")
    given = parser.parse_args()
    numbers = Numbers(TOPIC, Ledger(given.root))
    for name in ("mass_accuracy_by_seed.csv", "model_accuracy_by_seed.csv"):
        table = numbers.table(name)
        plain = table.drop(columns=[column for column in ("settings", "model_settings") if column in table])
        plain.to_csv(TARGET / f"gecobench_ola_{name}", index=False, float_format="%.6g")
    (TARGET / "gecobench_ola.md").write_text(page(given.root, given.command, given.commit), encoding="utf-8")


if __name__ == "__main__":
    main()
