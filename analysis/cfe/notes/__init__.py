"""What is said under the tables of counterfactuals besides numbers: tuning and constraints."""
