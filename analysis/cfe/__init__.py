"""Robust counterfactuals read from a ledger: tables, views and figures."""
