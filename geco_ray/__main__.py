"""``python -m geco_ray`` is the command ``geco-ray``."""

from geco_ray.cli import main

main()
