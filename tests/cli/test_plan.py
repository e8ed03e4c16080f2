"""`geco-ray plan`: what is missing, all of it at once; what it will take; nothing heavy imported."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from geco_ray.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "json.md"


@pytest.fixture(autouse=True)
def _nothing_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GECO_RAY_DATA", raising=False)
    monkeypatch.setenv("GECO_RAY_OFFLINE", "1")
    monkeypatch.setenv("GECO_RAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))


def plan(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["plan", *words])
    told = capsys.readouterr()
    return int(ended.value.code or 0), told.out, told.err


def test_everything_that_is_missing_is_told_at_once_with_its_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = plan(capsys, "full", "--root", str(tmp_path / "runs"))
    assert code == 0
    for command in (
        "download diabetes",
        "download heloc --accept-terms",
        "download non_binary_gender_subj",
        "hf download",
    ):
        assert command in err


def test_a_table_that_a_run_would_refuse_is_told_beside_one_that_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tabular").mkdir()
    (tmp_path / "tabular" / "diabetes.csv").write_text("Outcome\n1\n")
    words = ("cfe", "cfe.datasets=[diabetes, wine_quality]", "--data-dir", str(tmp_path), "--root", str(tmp_path / "r"))
    code, out, err = plan(capsys, *words, "--quiet")
    assert code == 2
    assert out == ""
    assert "diabetes.csv" in err
    assert "download wine_quality" in err


def test_quiet_is_silent_where_a_run_could_begin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("cfe", "cfe.datasets=[breast_cancer]", "--root", str(tmp_path), "--quiet")
    assert plan(capsys, *words) == (0, "", "")


def test_the_estimate_says_on_what_it_rests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = plan(capsys, "cfe", "cfe.datasets=[breast_cancer]", "--root", str(tmp_path))
    assert "of one core" in out
    assert "by those measured for the package: 1,410" in out.replace("\n", " ")


def keys(document: Any) -> set[str]:
    if isinstance(document, dict):
        return set(document) | {key for value in document.values() for key in keys(value)}
    return {key for value in document for key in keys(value)} if isinstance(document, list) else set()


def test_every_key_of_the_estimates_is_described(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = plan(capsys, "cfe", "cfe.datasets=[breast_cancer]", "--root", str(tmp_path), "--json")
    told = json.loads(out)
    assert code == 0
    assert told["estimates"][0]["cpu_core_hours"] > 0
    page = PAGE.read_text(encoding="utf-8")
    assert not {key for key in keys(told["estimates"]) | set(told) if f"`{key}`" not in page}


def test_neither_torch_nor_ray_is_imported(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom geco_ray.cli import main\n"
        f"try: main(['plan', 'full', '--quiet', '--root', {str(tmp_path)!r}])\nexcept SystemExit: pass\n"
        "print([name for name in ('torch', 'ray', 'transformers', 'sklearn') if name in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"
