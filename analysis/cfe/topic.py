"""Robust counterfactuals as a topic of the report: which counterfactual survives a changed model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.cfe import comparisons, model_tables, overlap, ranking, tables, views
from analysis.cfe.frames import STAGES, CfeFrames, load
from analysis.cfe.notes.health import health_views
from analysis.cfe.notes.tuning import tuning_notes
from analysis.cfe.styles import NAMES
from analysis.topic import Numbers, Section, Table, Topic
from analysis.views import View

if TYPE_CHECKING:
    from analysis.figures import Picture

TABLE_6, FAMILIES, FAMILIES_BY_SEED = "table_6.csv", "families.csv", "families_by_seed.csv"
TABLE_6_BY_SEED, COMPARISONS = "table_6_by_seed.csv", "comparisons.csv"


def _views(numbers: Numbers[CfeFrames]) -> list[View]:
    notes = tuning_notes(numbers.records(), numbers.data_dir)
    return [
        *views.table_6_views(numbers.table(TABLE_6), numbers.titles, numbers.table(COMPARISONS), numbers.level, notes),
        *views.family_views(numbers.table(FAMILIES), numbers.titles, numbers.table(FAMILIES_BY_SEED), numbers.level),
    ]


def _figures(numbers: Numbers[CfeFrames]) -> list[Picture]:
    from analysis.cfe.figures.decomposition import decomposition_figures
    from analysis.cfe.figures.families import family_figures
    from analysis.cfe.figures.trade_off import trade_off_figures

    return [
        *trade_off_figures(numbers.table(TABLE_6), numbers.titles),
        *decomposition_figures(numbers.table(TABLE_6), numbers.table(TABLE_6_BY_SEED), numbers.titles),
        *family_figures(numbers.table(FAMILIES), numbers.titles),
    ]


def _sections(numbers: Numbers[CfeFrames], grid: str) -> list[Section]:
    from analysis.cfe.rows.counterfactuals import counterfactual_rows

    rows = counterfactual_rows(numbers)
    return [rows] if rows else []


TOPIC = Topic[CfeFrames](
    name="cfe",
    question="which counterfactual survives a changed model",
    begins_with="counterfactual",
    stages=STAGES,
    names=NAMES,
    load=load,
    tables={
        TABLE_6: Table(
            "coverage, base validity, robustness and distance of each counterfactual method over base models "
            "(the paper's Table 6)",
            lambda numbers: tables.table_6(numbers.frames),
        ),
        TABLE_6_BY_SEED: Table(
            "the same for each base model, with all counts", lambda numbers: tables.table_by_seed(numbers.frames)
        ),
        COMPARISONS: Table(
            "every pair of counterfactual methods: differences over base models and over requests, p",
            lambda numbers: comparisons.comparison_table(numbers.frames, numbers.level),
        ),
        FAMILIES: Table(
            "robustness by data set, method and change family over base models",
            lambda numbers: tables.family_table(numbers.frames),
        ),
        FAMILIES_BY_SEED: Table(
            "the same for each base model, with all counts",
            lambda numbers: tables.pairs_by_family(numbers.frames.validity),
        ),
        "family_ranks.csv": Table(
            "rank of each method within each change family, and how far the ranks agree",
            lambda numbers: ranking.rank_table(numbers.table(FAMILIES)),
        ),
        "family_overlap.csv": Table(
            "which share of the counterfactuals broken by one of two change families is broken by both",
            lambda numbers: overlap.family_overlap(numbers.frames.validity),
        ),
        "base_models.csv": Table(
            "accuracy of the base models and how many rows they reject",
            lambda numbers: model_tables.base_models(numbers.frames.models),
        ),
        "change_families.csv": Table(
            "how far the changed models of each family are from their base models",
            lambda numbers: model_tables.descriptor_table(numbers.frames.models),
        ),
    },
    views=_views,
    figures=_figures,
    sections=_sections,
    health=lambda numbers: health_views(numbers.frames.counterfactuals, numbers.titles),
)
