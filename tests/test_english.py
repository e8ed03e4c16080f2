"""The pages and all texts of the code use plain English words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("geco_ray", "analysis", "docs", "examples", "benchmarks", "grids")
ENDINGS = (".py", ".md", ".yaml", ".html", ".js")
PLAIN = {
    r"anew": "again, or re-",
    r"mended": "repaired",
    r"(cannot|can't|could not|couldn't) be had": "is not available",
    r"(stands|stood) twice": "appears twice",
    r"what (a cell )?came to": "outcome",
    r"put_together": "assemble",
    r"found=f?\"looked for": "what was found",
}
"""What a native engineer would not write, and what is meant."""


def texts() -> list[Path]:
    """Every file with text for people, and the code, whose docstrings and messages are such."""
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in ENDINGS]
    return [*found, *ROOT.glob("*.md"), ROOT / "cluster.yaml"]


@pytest.mark.parametrize(("odd", "plain"), PLAIN.items(), ids=PLAIN)
def test_no_text_has_an_odd_word(odd: str, plain: str) -> None:
    places = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in texts()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if re.search(rf"\b{odd}\b", line, re.IGNORECASE)
    ]
    assert not places, f"write {plain!r} instead"


def test_the_search_reads_the_pages_and_the_code() -> None:
    names = {path.relative_to(ROOT).as_posix() for path in texts()}
    assert {"README.md", "CHANGELOG.md", "docs/index.md", "geco_ray/errors.py", "analysis/report.py"} <= names
