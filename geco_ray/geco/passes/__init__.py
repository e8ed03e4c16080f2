"""Passes through a classifier that several attribution methods share: gradients, paths, changed sentences."""
