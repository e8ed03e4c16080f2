"""What a ledger says: seed-level statistics, tables, figures and the report.

This package reads finished cells (Parquet) and never computes a model: it imports neither torch nor Ray.
"""
