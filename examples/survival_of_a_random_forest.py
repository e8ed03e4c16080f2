"""Which counterfactuals of a random forest survive? Nearest accepted patients, tried on changed forests."""

import sys

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

import geco_ray

X, y = load_breast_cancer(return_X_y=True)
train, more, test = np.split(np.random.default_rng(0).permutation(len(X)), [300, 400])
model = RandomForestClassifier(20, random_state=0).fit(X[train], y[train])

factuals = X[test][model.predict(X[test]) == 0][:30]
accepted = X[train][model.predict(X[train]) == 1]
scaled = np.abs(factuals[:, None] - accepted[None]) / X[train].std(axis=0)
counterfactuals = accepted[scaled.sum(axis=2).argmin(axis=1)]

result = geco_ray.survival(
    model,
    X[train],
    y[train],
    factuals,
    counterfactuals,
    families=["seed", "bootstrap", "deletion", "data_addition", "label_update", "training_config"],
    update=(X[more], y[more]),
    settings=[{"max_depth": depth} for depth in (2, 3, 5, 8)],
)
print(result)
print(result.report(sys.argv[1] if len(sys.argv) > 1 else "survival.html"))
