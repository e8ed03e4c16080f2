"""docs/grids.md tells every key of a grid, its example is a grid, and `geco-ray ls` tells every option."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from geco_ray.cli import main
from geco_ray.cli.components import components
from geco_ray.plan.benchmark import benchmarks
from geco_ray.plan.config import grid_class, load_grid
from geco_ray.plan.expand import expand

PAGE = (Path(__file__).parents[2] / "docs" / "grids.md").read_text(encoding="utf-8")


def test_the_page_names_every_key_and_no_other() -> None:
    told = re.findall(r"^\| `([a-z_.]+)` \|", PAGE, re.M)
    axes = [f"{benchmark.name}.{key}" for benchmark in benchmarks() for key in benchmark.axes.model_fields]
    assert sorted(told) == sorted([*grid_class().model_fields, *axes])


def test_the_example_of_the_page_is_a_grid(tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text(re.findall(r"^```yaml\n(.*?)^```", PAGE, re.M | re.S)[0])
    grid, text = load_grid(str(tmp_path / "small.yaml"))
    assert grid.axes("geco").seeds == (0, 1)  # type: ignore[union-attr]
    stages = [cell.stage for cell in expand(grid, text)]
    assert {stage: stages.count(stage) for stage in stages} == {
        "train": 2, "explain": 4, "score": 4, "models": 2 + 20, "counterfactuals": 4, "validity": 8,
    }  # fmt: skip


def test_the_overrides_of_the_page_are_taken() -> None:
    import shlex

    lines = [shlex.split(line, comments=True)[2:] for line in PAGE.splitlines() if line.startswith("geco-ray run ")]
    assert len(lines) == 3
    for name, *overrides in lines:
        load_grid(name, overrides)


def test_ls_tells_titles_options_types_and_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["ls", "methods", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert list(told) == ["geco methods", "cfe methods"]
    by_name = {entry["name"]: entry for entries in told.values() for entry in entries}
    assert by_name["integrated_gradients"] == {
        "name": "integrated_gradients",
        "title": "Integrated Gradients",
        "options": [
            {"name": "baseline", "type": "pad | mask | unk | zero or null", "default": None},
            {"name": "scalar", "type": "logit | probability or null", "default": None},
            {"name": "explained_class", "type": "predicted | true or whole number >= 0 or null", "default": None},
            {"name": "precision", "type": "bfloat16 | tf32 or null", "default": None},
            {"name": "settings", "type": "library_defaults or null", "default": None},
            {"name": "n_steps", "type": "whole number >= 1", "default": 200},
            {"name": "tolerance", "type": "number > 0 or null", "default": None},
        ],
    }
    assert by_name["kdtree"]["options"] == []
    trade_off = by_name["wachter"]["options"][0]
    assert trade_off == {"name": "trade_off", "type": "number >= 0 or null", "default": None}
    proof = next(option for option in by_name["apas"]["options"] if option["name"] == "proof")
    assert proof["type"] == "none | budget | full"


@pytest.mark.parametrize("kind", ["methods", "paradigms", "families"])
def test_ls_for_people_fits_a_terminal_and_leaves_nothing_out(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["ls", kind])
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 80
    for entries in components(kind).values():
        for entry in entries:
            assert re.search(rf"^  {entry['name']} +{re.escape(entry['title'])}$", printed, re.M)
            for option in entry["options"]:
                assert re.search(rf"^      {option['name']} +{re.escape(option['type'])} ", printed, re.M)


def test_a_wrong_value_points_at_ls_and_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["plan", "demo", "geco.sentences=none"])
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert "geco-ray ls" in told
    assert "docs/grids.md" in told
