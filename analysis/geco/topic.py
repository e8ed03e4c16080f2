"""GECOBench as a topic of the report: which explanation points at the words that decide."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from analysis.geco import quartiles, tables, views
from analysis.geco.attributions.completeness import completeness_table
from analysis.geco.attributions.denominators import denominator_table
from analysis.geco.attributions.health import health_views
from analysis.geco.attributions.relative import relative_table
from analysis.geco.findings import references
from analysis.geco.frames import STAGES, GecoFrames, load
from analysis.geco.models import classes, forms, paradigms
from analysis.geco.models.predictions import predictions
from analysis.geco.record_notes import with_encoder_notes, with_method_notes
from analysis.geco.statistics import comparisons, signed_rank
from analysis.geco.styles import NAMES
from analysis.topic import Numbers, Section, Table, Topic
from analysis.views import View

if TYPE_CHECKING:
    from analysis.figures import Picture

MASS, MASS_BY_SEED, ACCURACY = "mass_accuracy.csv", "mass_accuracy_by_seed.csv", "model_accuracy.csv"
COMPLETENESS, COMPARISONS = "completeness.csv", "mass_accuracy_comparisons.csv"
PARADIGMS, FORMS_BY_SEED = "paradigms.csv", "probability_differences_by_seed.csv"
QUARTILES, TESTS = "mass_accuracy_quartiles.csv", "signed_rank_tests.csv"


def _views(numbers: Numbers[GecoFrames]) -> list[View]:
    pairs = numbers.table(COMPARISONS)
    found = views.mass_views(numbers.table(MASS), numbers.table(ACCURACY), numbers.titles, pairs, numbers.level)
    found = with_method_notes(found, numbers.ledger, numbers.ids, numbers.titles)
    return with_encoder_notes(found, numbers.ledger, numbers.ids)


def _comparisons(numbers: Numbers[GecoFrames]) -> pd.DataFrame:
    score = numbers.frames.score
    aside = references(numbers.titles.kind("method"), score["method"].unique())
    return comparisons.comparison_table(score, aside, numbers.level)


def _figures(numbers: Numbers[GecoFrames]) -> list[Picture]:
    from analysis.geco.figures.accuracy import accuracy_figures
    from analysis.geco.figures.boxes import box_figures
    from analysis.geco.figures.mass import mass_figures
    from analysis.geco.figures.relative import relative_figures

    mass, by_seed, titles = numbers.table(MASS), numbers.table(MASS_BY_SEED), numbers.titles
    return [
        *mass_figures(mass, by_seed, titles),
        *box_figures(numbers.table(QUARTILES), by_seed, mass, titles),
        *relative_figures(numbers.table(TESTS), titles),
        *accuracy_figures(numbers.table(ACCURACY), titles),
    ]


def _sections(numbers: Numbers[GecoFrames], grid: str) -> list[Section]:
    from analysis.geco.rows.sentences import sentence_rows
    from analysis.geco.sentences import examples
    from analysis.geco.words_page import sentences_section

    shown = examples(numbers.ledger, numbers.ids, numbers.frames.score, titles=numbers.titles)
    models = paradigms.paradigm_views(numbers.table(PARADIGMS), numbers.titles)
    found = [paradigms.models_section(models)] if models else []
    found += [sentences_section(grid, shown)] if shown else []
    rows = sentence_rows(numbers)
    return [*found, rows] if rows else found


TOPIC = Topic[GecoFrames](
    name="geco",
    question="which explanation points at the words that decide",
    begins_with="score",
    stages=STAGES,
    names=NAMES,
    load=load,
    tables={
        MASS: Table(
            "mass accuracy by dataset, model and method over seeds, with intervals, counts and chance",
            lambda numbers: tables.metric_table(numbers.frames),
        ),
        MASS_BY_SEED: Table(
            "the same for each seed",
            lambda numbers: tables.metric_by_seed(numbers.frames.score, numbers.frames.truth_share),
        ),
        COMPARISONS: Table(
            "every pair of attribution methods on each model: differences over seeds and over source sentences, p",
            lambda numbers: _comparisons(numbers),
        ),
        QUARTILES: Table(
            "quartiles of mass accuracy over sentences, seeds pooled as the paper's boxes pool them",
            lambda numbers: quartiles.quartile_table(numbers.frames.score),
        ),
        "mass_accuracy_paper_rows.csv": Table(
            "mass accuracy over sentences that all models got right, as the paper counts",
            lambda numbers: tables.metric_table(numbers.frames, rule="all_models_sentence"),
        ),
        "ranking_measures.csv": Table(
            "ROC-AUC, average precision, PR-AUC, precision at specificity and top-k precision likewise",
            lambda numbers: tables.ranking_table(numbers.frames),
        ),
        "relative_mass_accuracy.csv": Table(
            "mass accuracy relative to that of a model that was never trained, by method over seeds",
            lambda numbers: relative_table(numbers.frames),
        ),
        COMPLETENESS: Table(
            "how far attributions are from adding up to what they explain, and their share outside the words",
            lambda numbers: completeness_table(numbers.frames),
        ),
        "correct_rows.csv": Table(
            "rows and sentences that each rule of correct classification counts",
            lambda numbers: denominator_table(numbers.frames),
        ),
        TESTS: Table(
            "Wilcoxon's test of mass accuracy against chance and against the zero-shot model",
            lambda numbers: signed_rank.signed_rank_table(numbers.frames),
        ),
        ACCURACY: Table(
            "accuracy of the classifiers over seeds", lambda numbers: tables.accuracy_table(numbers.frames)
        ),
        "model_accuracy_by_seed.csv": Table(
            "the same for each seed", lambda numbers: tables.accuracy_by_seed(numbers.frames)
        ),
        PARADIGMS: Table(
            "what each paradigm trains and draws, its numbers of parameters, its accuracies over seeds",
            lambda numbers: paradigms.paradigm_table(numbers.ledger, numbers.ids, numbers.table(ACCURACY)),
        ),
        "class_measures.csv": Table(
            "recall, specificity, precision, F1 and ROC-AUC of each classifier for each class, over seeds",
            lambda numbers: classes.class_measures(predictions(numbers.ledger, numbers.ids)),
        ),
        "confusion.csv": Table(
            "which class the test rows of each class were taken for, as shares, over seeds",
            lambda numbers: classes.confusion(predictions(numbers.ledger, numbers.ids)),
        ),
        FORMS_BY_SEED: Table(
            "probability of the own class in one form of a sentence less that in another, by seed, with p",
            lambda numbers: forms.probability_differences(predictions(numbers.ledger, numbers.ids)),
        ),
        "probability_differences.csv": Table(
            "the same over seeds",
            lambda numbers: forms.over_models(numbers.table(FORMS_BY_SEED), (*forms.GROUP, "first", "second")),
        ),
        "attribution_differences_by_seed.csv": Table(
            "attribution of words in one form of a sentence less that in another, by method and seed, with p",
            lambda numbers: forms.attribution_differences(forms.pair_frame(numbers.ledger, numbers.ids)),
        ),
    },
    views=_views,
    figures=_figures,
    sections=_sections,
    health=lambda numbers: health_views(numbers.frames.score, numbers.table(COMPLETENESS), numbers.titles),
)
