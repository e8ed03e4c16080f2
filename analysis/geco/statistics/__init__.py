"""Tests and comparisons of GECOBench's numbers."""
