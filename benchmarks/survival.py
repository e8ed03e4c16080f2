"""How long one call of geco_ray.survival takes: 300 requests, 10 features, six families of 25 variants.

python benchmarks/survival.py
"""

from __future__ import annotations

import time

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import geco_ray

FAMILIES = ("seed", "bootstrap", "deletion", "data_addition", "label_update")
MODELS = {
    "logistic regression": (LogisticRegression(), (*FAMILIES, "bounded_parameter"), ()),
    "random forest, 100 trees": (
        RandomForestClassifier(100, random_state=0),
        (*FAMILIES, "training_config"),
        [{"max_depth": depth, "max_features": share} for depth in (2, 4, 6, 8, None) for share in (1, 2, 3, 5, 8)],
    ),
}


def main() -> None:
    stream = np.random.default_rng(0)
    x = stream.normal(size=(600, 10))
    y = (x[:, 0] + 0.5 * x[:, 1] + 0.5 * stream.normal(size=600) > 0).astype(int)
    for name, (estimator, families, settings) in MODELS.items():
        model = estimator.fit(x[:300], y[:300])
        candidates = stream.normal(size=(3000, 10))
        factuals = candidates[model.predict(candidates) == 0][:300]
        points = factuals.copy()
        points[:, 0] += 2.5
        started = time.perf_counter()
        result = geco_ray.survival(
            model, x[:300], y[:300], factuals, points, families=families, update=(x[300:], y[300:]), settings=settings
        )
        print(f"{name}: {time.perf_counter() - started:.1f} s, {result.table.num_rows:,} rows")


if __name__ == "__main__":
    main()
