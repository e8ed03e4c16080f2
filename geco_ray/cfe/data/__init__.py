"""Tabular data sets: their cards, reading and checking a CSV, the split, the four of the paper and any of one's own."""
