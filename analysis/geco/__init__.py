"""GECOBench read from a ledger: tables, views and figures."""
