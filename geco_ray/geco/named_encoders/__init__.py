"""Encoders that a grid may call by a name: one file each, here or in a package of one's own."""
