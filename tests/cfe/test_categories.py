"""Columns of text in a table of one's own: one-of-k features, checked and measured as one column."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import geco_ray.cfe as cfe
from geco_ray.cfe.constraints.declared import Constraints
from geco_ray.cfe.data.categories import Group
from geco_ray.cfe.data.datasets import Dataset
from geco_ray.cfe.distance import mean_over_columns, mean_scaled_l1
from geco_ray.errors import UserError

CARD = """name: loans
target: paid
favourable: ["yes"]
categories: {job: [clerk, nurse, smith], town: ["Bonn", "Köln"]}
immutable: [town]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two columns of text and one of numbers, 400 rows."""
    stream, path = np.random.default_rng(0), tmp_path_factory.mktemp("data")
    lines = ["income,job,owner,town,paid"]
    for _ in range(400):
        job, town, income = stream.choice(["clerk", "nurse", "smith"]), stream.choice(["Bonn", "Köln"]), stream.normal()
        score = income + (job == "nurse") - 0.5 * (town == "Bonn") + 0.3 * stream.normal()
        lines.append(
            f"{income:.3f},{job},{'TRUE' if stream.random() < 0.5 else 'FALSE'},{town},{'yes' if score > 0 else 'no'}"
        )
    (path / "loans.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (path / "loans.yaml").write_text(CARD, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def data(folder: Path) -> Dataset:
    return cfe.load_dataset("loans", folder)


def test_each_category_is_a_feature_of_zero_and_one(data: Dataset) -> None:
    jobs = ("job=clerk", "job=nurse", "job=smith")
    assert data.features == ("income", *jobs, "owner", "town=Bonn", "town=Köln")
    assert data.groups == (Group("job", 1, 4), Group("town", 5, 7))
    units = data.in_units(data.train.x)
    assert np.allclose(units[:, 1:4].sum(axis=1), 1)
    assert set(np.round(units[:, 1:7].ravel(), 9)) == {0.0, 1.0}
    assert not [remark for remark in data.remarks if "=" in str(remark)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "1,baker,TRUE,Bonn,yes",
            r"loans.csv:\d+.*category of column 'job' that the card does not list .*'baker'.*'clerk'",
        ),
        ("1,,TRUE,Bonn,yes", "category of column 'job'.*A missing value is a category of its own if the card lists it"),
        ("rich,clerk,TRUE,Bonn,yes", "text in numeric column 'income'.*list them in the card under categories"),
    ],
)
def test_what_is_no_category_is_refused_with_its_line(folder: Path, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "loans.yaml").write_text(CARD, encoding="utf-8")
    (tmp_path / "loans.csv").write_text(
        (folder / "loans.csv").read_text(encoding="utf-8") + text + "\n", encoding="utf-8"
    )
    with pytest.raises(UserError, match=message):
        cfe.load_dataset("loans", tmp_path)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("categories: {job: [a]}", "two or more different"),
        ("categories: {job: [a, b]}\nranges: {job: [0, 1]}", "as a number"),
    ],
)
def test_categories_that_are_none_are_refused(tmp_path: Path, keys: str, message: str) -> None:
    (tmp_path / "loans.yaml").write_text(f"name: loans\ntarget: paid\nfavourable: [yes]\n{keys}\n")
    with pytest.raises(UserError, match=message):
        cfe.load_dataset("loans", tmp_path)


def test_a_missing_value_is_a_category_where_the_card_lists_it(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "loans.yaml").write_text(CARD.replace("smith]", '""]'), encoding="utf-8")
    rows = (folder / "loans.csv").read_text(encoding="utf-8").replace("smith", "")
    (tmp_path / "loans.csv").write_text(rows, encoding="utf-8")
    assert cfe.load_dataset("loans", tmp_path).features[3] == "job="


def test_the_distance_counts_one_for_a_changed_category_and_means_over_columns() -> None:
    groups, scale = (Group("job", 1, 4),), np.array([2.0, 9, 9, 9, 1])
    factual = np.array([0.0, 1, 0, 0, 0])
    points = np.array([[1.0, 1, 0, 0, 0], [0.0, 0, 1, 0, 0], [4.0, 0, 0, 1, 0.5], [0.0, 0.9, 0, 0, 0]])
    assert mean_over_columns(points, factual, scale, groups).tolist() == pytest.approx([0.5 / 3, 1 / 3, 3.5 / 3, 1 / 3])
    assert (mean_over_columns(points, factual, scale, ()) == mean_scaled_l1(points, factual, scale)).all()


def test_a_half_category_breaks_the_constraints_and_a_whole_one_keeps_them(data: Dataset) -> None:
    constraints = Constraints.of(data.card, data.features, data.mean, data.scale, data.groups)
    assert constraints is not None
    row = data.in_units(data.train.x[:1])[0]
    half, moved = row.copy(), row.copy()
    half[1:4], moved[5:7] = [0.5, 0.5, 0], 1 - row[5:7]
    points = (np.array([row, half, moved]) - data.mean) / data.scale
    broken = constraints.broken(data.train.x[0], points.astype(np.float32).astype(np.float64))
    assert broken["job is no category"].tolist() == [False, True, False]
    assert broken["town=Bonn is immutable"].tolist() == [False, False, True]
    assert set(broken) == {"job is no category", "town=Bonn is immutable", "town=Köln is immutable"}


def test_the_whole_line_runs_on_a_table_with_text(data: Dataset) -> None:
    base = cfe.train_base(cfe.BaseKey("loans", 2026, "independent"), cfe.Pool.of(data))
    task, factuals = cfe.GenerationTask.of(data, base, "paper"), cfe.select_factuals(base, data.test)
    shares = {}
    for name in ("kdtree", "wachter"):
        entry = cfe.METHODS.get(name)
        options = {"trade_off": 0.01, "learning_rate": 0.05, "max_steps": 200} if name == "wachter" else {}
        prepared = entry.target(task, entry.parse_options(options))
        made = cfe.generate(prepared, replace(task), factuals.x[:20], factuals.ids[:20], factuals.row_ids[:20])
        kept = [flag for flag in made["constraints_kept"].to_pylist() if flag is not None]
        shares[name] = sum(kept) / len(kept)
        assert not [text for text in made["broken"].to_pylist() if text and "town=Bonn is immutable" in text]
    assert shares["kdtree"] == 1
    assert shares["wachter"] < 1
