"""A grid's report: tables and figures of its finished cells, in the terminal and as files."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from rich.console import Console
from rich.text import Text

from analysis import render, terminal
from analysis.cfe import model_tables, overlap, ranking
from analysis.cfe import tables as cfe_tables
from analysis.cfe import views as cfe_views
from analysis.geco import significance
from analysis.geco import tables as geco_tables
from analysis.geco import views as geco_views
from analysis.load import AXES, Frames, LedgerLike, load, records
from analysis.publish import publish
from analysis.views import View
from geco_ray.arithmetic import kernel_warning

if TYPE_CHECKING:
    from analysis.figures import Picture

CONTENTS = {
    "mass_accuracy.csv": "mass accuracy by dataset, model and method over seeds, with intervals, counts and chance",
    "mass_accuracy_by_seed.csv": "the same for each seed",
    "mass_accuracy_paper_rows.csv": "mass accuracy over sentences that all models got right, as the paper counts",
    "ranking_measures.csv": "ROC-AUC, average precision, PR-AUC, precision at specificity and top-k precision likewise",
    "signed_rank_tests.csv": "Wilcoxon's test of mass accuracy against chance and against the zero-shot model",
    "model_accuracy.csv": "accuracy of the classifiers over seeds",
    "table_6.csv": "coverage, base validity, robustness and distance of each counterfactual method over base models",
    "table_6_by_seed.csv": "the same for each base model, with all counts",
    "families.csv": "robustness by data set, method and change family over base models",
    "families_by_seed.csv": "the same for each base model, with all counts",
    "family_ranks.csv": "rank of each method within each change family, and how far the ranks agree",
    "family_overlap.csv": "which share of the counterfactuals broken by one of two change families is broken by both",
    "base_models.csv": "accuracy of the base models and how many rows they reject",
    "change_families.csv": "how far the changed models of each family are from their base models",
    "tables.md": "the tables of this page in Markdown",
    "sentences.html": "single sentences with their words coloured by attribution",
}


class Tables:
    """The numbers of a report, each table computed when it is first asked for."""

    def __init__(self, frames: Frames) -> None:
        self.frames = frames

    @cached_property
    def mass(self) -> pd.DataFrame:
        return geco_tables.metric_table(self.frames)

    @cached_property
    def mass_by_seed(self) -> pd.DataFrame:
        return geco_tables.metric_by_seed(self.frames.score, self.frames.truth_share)

    @cached_property
    def accuracy(self) -> pd.DataFrame:
        return geco_tables.accuracy_table(self.frames)

    @cached_property
    def table_6(self) -> pd.DataFrame:
        return cfe_tables.table_6(self.frames)

    @cached_property
    def families(self) -> pd.DataFrame:
        return cfe_tables.family_table(self.frames)

    def files(self) -> dict[str, pd.DataFrame]:
        """CSV file name (a key of :data:`CONTENTS`) to table; tables without rows have no file."""
        named = {
            "mass_accuracy.csv": self.mass,
            "mass_accuracy_by_seed.csv": self.mass_by_seed,
            "mass_accuracy_paper_rows.csv": geco_tables.metric_table(self.frames, rule="all_models_sentence"),
            "ranking_measures.csv": geco_tables.ranking_table(self.frames),
            "signed_rank_tests.csv": significance.signed_rank_table(self.frames),
            "model_accuracy.csv": self.accuracy,
            "table_6.csv": self.table_6,
            "table_6_by_seed.csv": cfe_tables.table_by_seed(self.frames),
            "families.csv": self.families,
            "families_by_seed.csv": cfe_tables.pairs_by_family(self.frames.validity),
            "family_ranks.csv": ranking.rank_table(self.families),
            "family_overlap.csv": overlap.family_overlap(self.frames.validity),
            "base_models.csv": model_tables.base_models(self.frames.models),
            "change_families.csv": model_tables.descriptor_table(self.frames.models),
        }
        return {name: table for name, table in named.items() if not table.empty}

    def views(self) -> list[View]:
        """The tables as people read them, GECOBench first."""
        return [
            *geco_views.mass_views(self.mass, self.accuracy),
            *cfe_views.table_6_views(self.table_6),
            *cfe_views.family_views(self.families),
        ]

    def pictures(self) -> list[Picture]:
        """All figures that there are numbers for."""
        from analysis.cfe import figures as cfe_figures
        from analysis.geco import figures as geco_figures

        return [
            *geco_figures.mass_figures(self.mass, self.mass_by_seed),
            *cfe_figures.trade_off_figures(self.table_6),
            *cfe_figures.family_figures(self.families),
        ]


def print_tables(
    ledger: LedgerLike,
    ids: Collection[str] | None = None,
    console: Console | None = None,
    tables: Tables | None = None,
) -> None:
    """Print both benchmarks' tables of the finished cells among ``ids`` (all when None); ``tables`` if made already."""
    console = console or Console()
    found = (tables or Tables(load(ledger, ids))).views()
    for views, notes in render.sections(found):
        terminal.print_views(views, console)
        for note in notes:
            console.print(Text(note, style="dim"))
        console.print()
    if not found:
        console.print("No result to show yet: no score or counterfactual cell of this grid is finished.")


def write_report(
    ledger: LedgerLike, ids: Collection[str] | None, folder: str | Path, name: str, tables: Tables | None = None
) -> list[Path]:
    """Write the report of the finished cells among ``ids`` (all when None) into ``folder``; ``tables`` if made already.

    Files: ``index.html`` (self-contained), ``sentences.html``, ``tables.md``, a CSV per table, each figure as PNG and
    SVG. The same cells give the same bytes, and a file whose content would not change is not touched.

    Returns:
        The paths of all files of the report, sorted.

    Raises:
        StorageError: the folder cannot be written.
    """
    from analysis import page
    from analysis.sentences import examples

    tables = tables or Tables(load(ledger, ids))
    frames = tables.frames
    views, pictures = tables.views(), tables.pictures()
    files = {file: render.to_csv(table) for file, table in tables.files().items()}
    files["tables.md"] = render.markdown_page(f"Results of grid {name}", views).encode()
    for picture in pictures:
        files[f"{picture.name}.png"], files[f"{picture.name}.svg"] = picture.png, picture.svg
    shown = examples(ledger, ids, frames.score)
    if shown:
        files["sentences.html"] = page.sentences_page(name, shown)
    downloads = [(file, CONTENTS.get(file, "figure")) for file in sorted(files)]
    counts = [(stage, len(records(ledger, stage, ids))) for stage in AXES]
    counts = [(stage, count) for stage, count in counts if count]
    warning = kernel_warning(record.info for stage in AXES for record in records(ledger, stage, ids))
    files["index.html"] = page.index_page(
        name, counts, pictures, views, shown[0] if shown else None, downloads, warning=warning
    )
    return publish(Path(folder), files)
