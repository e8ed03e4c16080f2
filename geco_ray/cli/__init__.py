"""The command line."""

from geco_ray.cli.app import main

__all__ = ["main"]
