"""Searches that several methods share: growing spheres, Adam on rows, random streams by request."""
