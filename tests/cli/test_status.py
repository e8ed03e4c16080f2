"""`geco-ray status`: the pace of a run from its records, faults told once, a folder that is not there."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from geco_ray.cli import main
from geco_ray.cli.output import PlainConsole
from geco_ray.cli.state.status import pace, show_failed
from geco_ray.ledger import Ledger
from geco_ray.plan.config import load_grid
from geco_ray.plan.expand import expand
from geco_ray.plan.remaining import Plan, make_plan

GRID = [
    "only=cfe",
    "cfe.methods=[kdtree]",
    "cfe.variants=2",
    "cfe.base_seeds=[2026]",
    "cfe.families=[bounded_parameter]",
]
PAGE = Path(__file__).parents[2] / "docs" / "json.md"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder in which the small grid is done."""
    root = tmp_path_factory.mktemp("finished")
    with pytest.raises(SystemExit):
        main(["run", "demo", *GRID, "--root", str(root), "--executor", "inline", "--quiet"])
    return root


def planned(root: Path, *more: str) -> Plan:
    grid, text = load_grid("demo", [*GRID, *more])
    return make_plan(expand(grid, text), Ledger(root))


def last_finish(root: Path) -> float:
    times = [json.loads(path.read_text())["info"]["finished"] for path in root.glob("cells/*/*.json")]
    return max(datetime.fromisoformat(text).astimezone(UTC).timestamp() for text in times)


def test_the_pace_is_that_of_the_last_minutes(finished: Path) -> None:
    plan = planned(finished, "cfe.base_seeds=[2026, 2027]")
    going = pace(plan, now=last_finish(finished) + 1)
    assert going.finished == 5
    assert going.per_minute == pytest.approx(5)
    assert going.seconds_left is not None
    assert going.seconds_left > 0
    assert re.fullmatch(r"5\.0 cells a minute, about \S+ \S+ left", going.words())


def test_without_a_finished_cell_nothing_is_promised(finished: Path) -> None:
    going = pace(planned(finished), now=last_finish(finished) + 3600)
    assert (going.finished, going.seconds_left) == (0, None)
    assert going.words() == "no cell has finished within 10 min"


def test_a_fault_of_many_cells_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    def entry(error: str, line: int) -> dict[str, Any]:
        return {"error": error, "traceback": f'  File "mine.py", line {line}, in explain\n'}

    failed = {f"explain {number}": entry("ValueError: no", 3) for number in range(127)}
    show_failed(failed | {"explain last": entry("ValueError: no", 9)}, "geco-ray failures demo", PlainConsole())
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "failed explain 0: ValueError: no (and 126 more of the same)",
        "failed explain last: ValueError: no",
        "`geco-ray failures demo` shows each fault with its traceback",
    ]


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["status", "demo", "--root", str(tmp_path / "nowhere")])
    assert ended.value.code == 2
    assert "nowhere" in capsys.readouterr().err


def test_watching_ends_with_the_run(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["status", "demo", *GRID, "--root", str(finished), "--watch"])
    assert ended.value.code == 0
    assert "0 of 5 cells left" in capsys.readouterr().out


def test_every_key_is_described(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["status", "demo", *GRID, "--root", str(finished), "--json"])
    told = json.loads(capsys.readouterr().out)
    page = PAGE.read_text(encoding="utf-8").partition("## `geco-ray status")[2]
    assert not {key for key in told if f"`{key}`" not in page}
