"""Figures of the counterfactual benchmark."""
