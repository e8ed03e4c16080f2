"""The page in a browser without a screen, from disk: it sorts, filters, pages and fits a phone, without errors."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from analysis.report import write_report

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no chromium, chromium-browser or google-chrome on PATH")

# First in the page: what goes wrong, in any script or for the security policy, is kept.
LISTEN = """<script>window.faults = [];
addEventListener("error", (event) => faults.push(event.message));
addEventListener("securitypolicyviolation", (event) => faults.push(event.violatedDirective));
for (const level of ["error", "warn"]) console[level] = (...words) => faults.push(words.join(" "));</script>"""
PROBE = Path(__file__).with_name("page_probe.js")


@pytest.fixture(scope="module")
def page(kit: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with a filtered table, more sentences than fit on a page of them, and counterfactuals."""
    ledger = kit.FakeLedger()
    kit.fill_geco(ledger, ("demo_binary_all",), ("BERT-C", "OLA-CEA", "BERT-CE"), seeds=2, sentences=8)
    kit.fill_cfe(ledger, ("breast_cancer",), ("kdtree", "wachter"), ("seed", "deletion"), (2026, 2027), 3, 4)
    folder = tmp_path_factory.mktemp("page")
    write_report(ledger, None, folder, "g")
    text = (folder / "index.html").read_text("utf-8")
    text = text.replace("<style>", LISTEN + "<style>", 1).replace(
        "</body>", f"<script>{PROBE.read_text()}</script></body>"
    )
    (folder / "probed.html").write_text(text, "utf-8")
    return folder / "probed.html"


def used(page: Path, width: int | None, folder: Path) -> dict[str, Any]:
    """What a browser found, in a frame of that width, since a window has a smallest one; None for the page itself."""
    frame = folder / "frame.html" if width else page
    inside = html.escape(page.read_text("utf-8"))
    if width:
        frame.write_text(
            f'<body><iframe style="width:{width}px;height:900px;border:0" srcdoc="{inside}"></iframe>', "utf-8"
        )
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}",
               "--window-size=1300,1000", "--virtual-time-budget=4000", "--dump-dom"]  # fmt: skip
    assert BROWSER is not None
    done = subprocess.run([BROWSER, *options, frame.as_uri()], capture_output=True, text=True, timeout=60, check=False)
    (found,) = re.findall(r'<pre class="found">(.*?)</pre>', done.stdout, re.S) or [done.stderr[-500:]]
    return dict(json.loads(html.unescape(found)))


@pytest.fixture(scope="module")
def wide(page: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return used(page, None, tmp_path_factory.mktemp("wide"))


@pytest.fixture(scope="module")
def phone(page: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return used(page, 390, tmp_path_factory.mktemp("phone"))


def test_a_page_opens_from_disk_without_a_fault(wide: dict[str, Any], phone: dict[str, Any]) -> None:
    assert wide["faults"] == phone["faults"] == []


def test_a_header_sorts_down_up_and_back(wide: dict[str, Any]) -> None:
    first, down, up, back = wide["order"]
    assert down == sorted(first, reverse=True)
    assert up == sorted(first)
    assert back == first
    assert wide["sorted"] == ["descending", "ascending", "none"]


def test_a_filter_keeps_the_rows_that_have_its_text(wide: dict[str, Any]) -> None:
    assert wide["filtered"] == ["LIME"]


def test_sentences_come_in_pages_and_by_disagreement(wide: dict[str, Any]) -> None:
    assert wide["pages"] == ["1 to 5 of 8 source sentences", "6 to 8 of 8 source sentences", "no source sentences"]
    assert len(wide["spread"]) == 5
    assert wide["spread"] == sorted(wide["spread"], reverse=True)


def test_counterfactuals_are_sorted_chosen_and_opened(wide: dict[str, Any]) -> None:
    assert wide["far"] == sorted(wide["far"], reverse=True)
    assert len(wide["methods"]) == 1
    assert len(wide["values"]) == 2
    assert "unchanged" in wide["values"][1]


def test_on_a_phone_nothing_but_boxes_that_scroll_is_wider_than_the_screen(phone: dict[str, Any]) -> None:
    assert phone["width"] == 390
    assert phone["overflow"] <= 0
    assert phone["figure"] >= 900
    assert phone["words"] > 0.85 * (phone["width"] - 32)
    assert phone["scrolled"] > 0
    assert phone["first"] == 0
