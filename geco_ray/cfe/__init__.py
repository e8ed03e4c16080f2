"""The robust-counterfactual benchmark as a plain library: no Ray, no ledger, no command line."""
