"""How well a word attribution finds the truth, and what it gains on a model that was never trained: metrics as data."""

from geco_ray.geco.metrics.measures import (
    METRICS,
    RANKING_MEASURES,
    Metric,
    average_precision,
    mass_accuracy,
    pr_auc,
    precision_specificity,
    roc_auc,
    top_k_precision,
)
from geco_ray.geco.metrics.relative import RELATIVE_METRICS, RelativeMetric

__all__ = [
    "METRICS",
    "RANKING_MEASURES",
    "RELATIVE_METRICS",
    "Metric",
    "RelativeMetric",
    "average_precision",
    "mass_accuracy",
    "pr_auc",
    "precision_specificity",
    "roc_auc",
    "top_k_precision",
]
