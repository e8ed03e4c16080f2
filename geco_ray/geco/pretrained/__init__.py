"""Classifiers on pretrained encoders: how they are loaded, a new head on top, and scoring without any training."""
