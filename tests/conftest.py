"""Fixtures that tests of every part share."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Collection
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real data: ``$GECO_RAY_DATA``, or ``shared/data`` beside the repository; skips without it."""
    named = os.environ.get("GECO_RAY_DATA")
    folder = Path(named) if named else Path(__file__).parents[2] / "shared" / "data"
    if not all((folder / part).is_dir() for part in ("geco", "tabular")):
        pytest.skip("real data (geco/ and tabular/) is neither at $GECO_RAY_DATA nor at ../shared/data")
    return folder


@pytest.fixture(scope="session")
def assert_imports_nothing() -> Callable[..., str]:
    """Run code in a fresh Python, fail when it has imported a package of ``heavy``, and return what it printed.

    ``args`` are the child's words on the command line, ``env`` is added to its environment.
    """

    def check(
        code: str, heavy: Collection[str], *args: str, cwd: Path | None = None, env: dict[str, str] | None = None
    ) -> str:
        last = f"import json, sys\nprint('\\n' + json.dumps([name for name in {sorted(heavy)} if name in sys.modules]))"
        done = subprocess.run(
            [sys.executable, "-c", f"{code}\n{last}", *args],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            cwd=cwd,
            env=os.environ | (env or {}),
        )
        assert done.returncode == 0, done.stderr
        *printed, imported = done.stdout.splitlines()
        assert json.loads(imported) == [], f"imported: {imported}"
        return "\n".join(printed).strip()

    return check
