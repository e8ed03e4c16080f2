"""Figures of GECOBench."""
