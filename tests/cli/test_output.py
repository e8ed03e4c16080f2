"""Text of users is shown as it stands on any console and in any encoding, and never steers it."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import types
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.table import Table

from geco_ray.cli.analysis_package import claim_analysis
from geco_ray.cli.data_tables import rich_table
from geco_ray.cli.output import PlainConsole, prepare_streams
from geco_ray.errors import UserError
from geco_ray.table import PrintedTable, cell, visible

WORDS = st.text(st.characters(exclude_characters="\n\t"), min_size=1, max_size=20).filter(
    lambda text: not text.isspace()
)
REPOSITORY = Path(__file__).parents[2]


def shown(renderable: object) -> str:
    file = io.StringIO()
    PlainConsole(file=file, width=400).print(renderable, soft_wrap=isinstance(renderable, str))
    return file.getvalue()


@settings(max_examples=300, deadline=None)
@given(WORDS)
@example("[red]young[/red] [/red] :cat: \\[bold] https://x.org 12")
@example("a\x1b[31mb\x9b\u202ec")
def test_a_line_shows_every_character_of_a_text(text: str) -> None:
    assert shown(text) == visible(text) + "\n"


@settings(max_examples=200, deadline=None)
@given(st.text("abred[]/:*_\\$<>é東ש\x1b", min_size=1, max_size=20), st.sampled_from([False, True]))
def test_titles_headers_and_cells_are_no_markup(text: str, printed: bool) -> None:
    if printed:
        table = rich_table(PrintedTable(text, (text,), ((cell(text),),), (text,)))
    else:
        table = Table(title=text, caption=text)
        table.add_column(text)
        table.add_row(text)
    assert shown(table).count(visible(text)) >= 4


@settings(max_examples=200, deadline=None)
@given(st.text(min_size=1), st.sampled_from(["ascii", "cp1252", "latin-1", "utf-8", "cp437"]))
def test_no_encoding_ends_in_a_traceback_and_json_stays_json(text: str, encoding: str) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, errors="strict")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        prepare_streams()
        json.dump(text, stream, ensure_ascii=False)
        stream.flush()
    assert json.loads(raw.getvalue().decode(encoding)) == json.loads(json.dumps(text))


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "utf-16"])
@pytest.mark.parametrize("words", [["ls", "methods"], ["data", "audit", "demo_binary_all"], ["plan", "demo", "--json"]])
def test_commands_write_to_files_of_other_encodings(encoding: str, words: list[str], tmp_path: Path) -> None:
    env = os.environ | {"PYTHONIOENCODING": encoding, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run([sys.executable, "-m", "geco_ray", *words], cwd=tmp_path, env=env, capture_output=True)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    assert done.stdout


def test_a_root_that_looks_like_markup_is_a_folder(tmp_path: Path) -> None:
    env = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    words = ["-m", "geco_ray", "report", "demo", "--root", "br[/red]x"]
    done = subprocess.run([sys.executable, *words], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 2
    assert "br[/red]x" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("own", ["analysis.py", "analysis/__init__.py", "analysis/x.py"])
def test_an_analysis_of_the_user_does_not_stand_in_for_ours(tmp_path: Path, own: str) -> None:
    (tmp_path / own).parent.mkdir(exist_ok=True)
    (tmp_path / own).write_text("raise SystemExit('imported')\n")
    env = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    words = ["-m", "geco_ray", "data", "bias", "demo_binary_all", "--figure", "b.svg"]
    done = subprocess.run([sys.executable, *words], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "b.svg").is_file()


def test_a_foreign_analysis_that_is_loaded_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "analysis", types.ModuleType("analysis"))
    with pytest.raises(UserError, match=r"another module named 'analysis'.*Rename yours"):
        claim_analysis()
