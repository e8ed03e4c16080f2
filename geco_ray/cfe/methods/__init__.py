"""Counterfactual methods: one file and one registration each, found by :data:`geco_ray.cfe.methods.base.METHODS`."""
