"""GECOBench as a plain library: no Ray, no ledger, no command line."""
