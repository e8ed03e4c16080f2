"""Training of the benchmark's networks: one by one, and many as one stack with the same results."""

from geco_ray.cfe.training.job import (
    BETAS,
    EPSILON,
    EarlyStopping,
    Pool,
    Trained,
    TrainingJob,
    TrainingSettings,
    base_job,
    resampled,
)
from geco_ray.cfe.training.train import group_jobs, train_one, train_stacked

__all__ = [
    "BETAS",
    "EPSILON",
    "EarlyStopping",
    "Pool",
    "Trained",
    "TrainingJob",
    "TrainingSettings",
    "base_job",
    "group_jobs",
    "resampled",
    "train_one",
    "train_stacked",
]
