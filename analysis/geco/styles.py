"""Order and look of GECOBench's data sets, training paradigms and attribution methods (the paper's, figure 2)."""

from __future__ import annotations

from pathlib import Path

from analysis.styles import Names, Titles, ranked, registry_titles

PARADIGM_REGISTRY = "geco_ray.geco.paradigms.base:PARADIGMS"
ATTRIBUTION_REGISTRY = "geco_ray.geco.attribution.base:ATTRIBUTIONS"


def _task_title(name: str, data_dir: Path | None) -> str | None:
    from geco_ray.geco.data.cards import task_title

    return task_title(name)


DATASETS = Names(
    "dataset",
    ranked(
        (
            "binary_gender_all",
            "binary_gender_subj",
            "non_binary_gender_all",
            "non_binary_gender_subj",
            "demo_binary_all",
            "demo_binary_subj",
            "demo_non_binary_all",
            "demo_non_binary_subj",
        )
    ),
    _task_title,
)
PARADIGMS = Names(
    "paradigm",
    ranked(
        {
            "BERT-ZS": ("#595959", "P", True),
            "BERT-C": ("#0072B2", "o", False),
            "BERT-CEf": ("#E69F00", "s", False),
            "BERT-CE": ("#009E73", "^", False),
            "BERT-CEfAf": ("#CC79A7", "D", False),
            "OLA-CEA": ("#D55E00", "v", False),
        }
    ),
    registry_titles(PARADIGM_REGISTRY),
)
METHODS = Names(
    "method",
    ranked(
        (
            "uniform_random",
            "saliency",
            "kernel_shap",
            "guided_backprop",
            "deeplift",
            "input_x_gradient",
            "lime",
            "gradient_shap",
            "integrated_gradients",
            "pattern_variant",
        )
    ),
    registry_titles(ATTRIBUTION_REGISTRY),
)
NAMES = (DATASETS, PARADIGMS, METHODS)
TITLES = Titles(NAMES)
