"""Robust counterfactuals as a grid."""
