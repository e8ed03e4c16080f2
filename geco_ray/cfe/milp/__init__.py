"""Closest points of ReLU networks by mixed-integer programming: a walk over regions, bounds, and proofs."""
