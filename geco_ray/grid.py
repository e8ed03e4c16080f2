"""The front door: ``python -m geco_ray.grid NAME [KEY=VALUE ...]`` expands a grid, runs what is left and summarises."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> None:
    """Run a grid; the same as ``geco-ray run``. Ends the process with an honest exit code."""
    try:
        from geco_ray.cli import main as command
    except KeyboardInterrupt:
        sys.exit(130)
    command(["run", *(sys.argv[1:] if argv is None else argv)])


if __name__ == "__main__":
    main()
