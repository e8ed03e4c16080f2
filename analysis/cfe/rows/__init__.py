"""Single counterfactuals on the page."""
