"""Families of changed models, one file each (see :mod:`geco_ray.cfe.changes.base`)."""
