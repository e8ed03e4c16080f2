"""Which ``analysis`` is meant: the package beside ``geco_ray``, whatever lies in the current folder."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import geco_ray
from geco_ray.errors import UserError


def claim_analysis() -> None:
    """Import our ``analysis`` by its place, before ``python -m`` finds an ``analysis.py`` or ``analysis/`` of a user's.

    Raises:
        UserError: another module of that name has been imported already.
    """
    folder = Path(geco_ray.__file__).resolve().parents[1] / "analysis"
    start = folder / "__init__.py"
    loaded = sys.modules.get("analysis")
    if loaded is not None:
        if [Path(place).resolve() for place in getattr(loaded, "__path__", ())] != [folder] and start.is_file():
            raise UserError(
                "another module named 'analysis' has been imported, so the tables and figures cannot be made",
                where=str(getattr(loaded, "__file__", None) or "unknown"),
                expected=str(start),
                remedy="Rename yours, or import geco_ray.cli before it",
            )
        return
    spec = importlib.util.spec_from_file_location("analysis", start, submodule_search_locations=[str(folder)])
    if start.is_file() and spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["analysis"] = module
        spec.loader.exec_module(module)
