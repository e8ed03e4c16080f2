"""What a counterfactual may not propose: another value of what cannot change, a younger age, a value that is none."""
