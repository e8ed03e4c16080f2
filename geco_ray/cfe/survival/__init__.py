"""Survival of given counterfactuals under changes of any model with ``fit`` and ``predict_proba``."""
