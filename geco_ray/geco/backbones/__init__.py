"""Encoder families, one file each: how a model of the library is taken apart, and how its sentences are laid out."""
