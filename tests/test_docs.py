"""The pages: each is in the site, names what the code has, and links to what is there."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import geco_ray.cfe
import geco_ray.cfe.protocol
import geco_ray.geco
import geco_ray.geco.protocol

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md"))


def in_navigation(entries: list[Any]) -> Iterator[str]:
    for entry in entries:
        for value in entry.values():
            yield from [value] if isinstance(value, str) else in_navigation(value)


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    site = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))
    assert sorted(in_navigation(site["project"]["nav"])) == PAGES


@pytest.mark.parametrize(
    ("page", "protocol"),
    [("gecobench.md", geco_ray.geco.protocol.Protocol), ("counterfactuals.md", geco_ray.cfe.protocol.Protocol)],
)
def test_a_protocol_s_page_has_a_row_for_every_switch_and_no_other(page: str, protocol: type) -> None:
    rows = re.findall(r"^\| `(\w+)` \|", (DOCS / page).read_text(encoding="utf-8"), re.M)
    switches = [field.name for field in dataclasses.fields(protocol) if field.name != "name"]
    assert set(rows) - {row for row in rows if row.startswith(("binary_", "non_binary_"))} == set(switches)


@pytest.mark.parametrize("face", [geco_ray.geco, geco_ray.cfe], ids=lambda face: str(face.__name__))
def test_the_reference_has_every_function_of_a_face(face: Any) -> None:
    page = (DOCS / "reference.md").read_text(encoding="utf-8")
    functions = {f"{face._FACE[name]}.{name}" for name in face.__all__ if not name.isupper()}
    shown = set(re.findall(r"^::: (\S+)$", page, re.M))
    assert {name for name in shown if name.startswith(f"{face.__name__}.")} == functions


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", *(f"docs/{page}" for page in PAGES)])
def test_a_link_to_a_file_leads_to_one(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = {target.partition("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in target}
    folder = (ROOT / page).parent
    assert not {target for target in targets if target and not (folder / target).exists()}
