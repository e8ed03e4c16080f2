"""Digests of a run folder: the same for the same content, another for another, and told cell by cell."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from geco_ray.cli.app import app
from geco_ray.errors import UserError
from geco_ray.experiments.cfe.cells import BaseCell
from geco_ray.ledger import Ledger
from geco_ray.ledger.digests import compare_digests, write_digests


def folder(root: Path, values: dict[int, float]) -> Ledger:
    """A run folder with one base model's cell for each seed, whose table holds the value."""
    ledger = Ledger(root)
    for seed, value in values.items():
        table = pa.table({"x": [value, 1.0], "weights": [b"a", None]})
        ledger.put(BaseCell("breast_cancer", "data", seed, "paper"), table, blob=b"weights")
    return ledger


@pytest.fixture
def digests(tmp_path: Path) -> Path:
    """The digests of a folder with seeds 1 to 3."""
    file = tmp_path / "digests.json"
    assert write_digests(folder(tmp_path / "theirs", {1: 0.1, 2: 0.2, 3: 0.3}), ["models"], file) == 3
    return file


def test_equal_differing_missing_and_extra_cells_are_told_apart(tmp_path: Path, digests: Path) -> None:
    told = compare_digests(folder(tmp_path / "ours", {1: 0.1, 2: 0.2000000001, 4: 0.4}), ["models"], digests)
    assert told.counts() == {kind: {"models": 1} for kind in ("equal", "differing", "missing", "extra")}
    assert not told.agrees


def test_a_part_of_the_cells_agrees(tmp_path: Path, digests: Path) -> None:
    told = compare_digests(folder(tmp_path / "ours", {1: 0.1}), ["models"], digests)
    assert told.agrees
    assert told.notes == []


def test_another_release_of_a_package_is_noted(tmp_path: Path, digests: Path) -> None:
    content = json.loads(digests.read_text())
    content["packages"]["numpy"] = "1.0"
    digests.write_text(json.dumps(content))
    told = compare_digests(folder(tmp_path / "ours", {1: 0.1}), ["models"], digests)
    assert "the file's is 1.0" in told.notes[0]


def test_what_is_no_file_of_digests_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    file.write_text("{}")
    for path in (file, tmp_path / "none.json"):
        with pytest.raises(UserError, match="digests"):
            compare_digests(folder(tmp_path / "ours", {}), ["models"], path)


def check(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["check", *words])
    return done.exit_code, re.sub(r"\s+", " ", done.output)


def test_the_command_writes_and_compares(tmp_path: Path) -> None:
    theirs, ours, file = tmp_path / "theirs", tmp_path / "ours", str(tmp_path / "d.json")
    folder(theirs, {1: 0.1, 2: 0.2}), folder(ours, {1: 0.1, 2: 0.3})
    assert check("--root", str(theirs), "--digests", file)[0] == 0
    assert check("--root", str(theirs), "--against", file)[0] == 0
    code, told = check("--root", str(ours), "--against", file)
    assert code == 1
    assert "1 cells the same as in" in told
    assert "1 cells differ: 1 models" in told
    code, told = check("--root", str(ours), "--against", file, "--json")
    assert (code, json.loads(told)["against"]["differing"]) == (1, {"models": 1})


def test_the_command_tells_of_kernels_that_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wide = {"kernels": {"blas": "SkylakeX"}, "arithmetic": "native"}
    folder(tmp_path, {1: 0.1})
    monkeypatch.setattr("geco_ray.ledger.provenance.arithmetic_facts", lambda: wide)
    folder(tmp_path, {2: 0.1})
    code, told = check("--root", str(tmp_path))
    assert code == 0
    assert "Mixed kernels" in told


def test_the_values_of_dictionary_columns_count(tmp_path: Path) -> None:
    def labelled(root: Path, label: str) -> Ledger:
        ledger = Ledger(root)
        column = pa.array([label, label]).dictionary_encode()
        ledger.put(BaseCell("breast_cancer", "data", 1, "paper"), pa.table({"dataset": column, "x": [1.0, 2.0]}))
        return ledger

    file = tmp_path / "digests.json"
    write_digests(labelled(tmp_path / "a", "one"), ["models"], file)
    assert compare_digests(labelled(tmp_path / "same", "one"), ["models"], file).agrees
    assert not compare_digests(labelled(tmp_path / "other", "two"), ["models"], file).agrees
