"""The tuning of Wachter and ROAR-LIME: the rule, its record, and whether a run's base model is the one tuned on."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from geco_ray.cfe import tuning
from geco_ray.cfe.base_model import BaseModel, train_base
from geco_ray.cfe.data.datasets import Dataset, load_dataset
from geco_ray.cfe.methods.base import METHODS, GenerationTask
from geco_ray.cfe.mlp import Mlp
from geco_ray.cfe.seeding import BaseKey
from geco_ray.cfe.training import Pool
from geco_ray.cfe.tuning import Candidate, TuningEntry, select, select_beyond_noise
from geco_ray.cfe.tuning.record import BY_PAPER, package_entries
from geco_ray.errors import UserError

TABLES = ("breast_cancer", "diabetes", "wine_quality", "heloc")


def tuned_again(name: str, protocol: str, seeding: str, data_dir: Path) -> list[TuningEntry]:
    dataset = load_dataset(name, data_dir)
    base = train_base(BaseKey(name, 2026, seeding), Pool.of(dataset))
    return [tuning.tune_base(method, protocol, dataset, base) for method in tuning.GRIDS]


def assert_the_record_says_so(made: TuningEntry) -> None:
    kept = package_entries()[made.key]
    for name in ("data", "row_ids", "probabilities", "by_rule", "candidates"):
        assert getattr(kept, name) == getattr(made, name), (made.key, name)


def test_selection_is_lexicographic_and_the_first_of_equals_wins() -> None:
    a = Candidate({"trade_off": 1.0}, 0.9, 0.1)
    b = Candidate({"trade_off": 2.0}, 1.0, 5.0)
    c = Candidate({"trade_off": 3.0}, 1.0, 2.0)
    d = Candidate({"trade_off": 4.0}, 1.0, 2.0)
    none = Candidate({"trade_off": 5.0}, 0.0, None)
    assert select([none, a, b, c, d]) is c
    assert select([none]) is none


def test_beyond_noise_one_row_decides_nothing() -> None:
    rng = np.random.default_rng(0)
    far, near = 2 + 0.01 * rng.standard_normal(100), 1 + 0.01 * rng.standard_normal(100)
    near[7] = np.nan  # one answer fewer, and half as far
    assert select_beyond_noise(np.stack([far, near])) == 1
    near[:20] = np.nan  # twenty are no noise
    assert select_beyond_noise(np.stack([far, near])) == 0


def test_beyond_noise_equal_distances_go_to_the_larger_share_and_then_to_the_first() -> None:
    rng = np.random.default_rng(0)
    level = 1 + rng.standard_normal((3, 100))
    level[0, 5] = np.nan
    level[1:] = level[1]
    assert select_beyond_noise(level) == 1
    assert select_beyond_noise(np.full((2, 4), np.nan)) == 0


def test_tune_scores_every_point(toy_task: GenerationTask, toy_factuals: np.ndarray) -> None:
    grid = [{"trade_off": 100.0, "learning_rate": 0.01}, {"trade_off": 0.1, "learning_rate": 0.05}]
    outcome = tuning.tune("wachter", toy_task, toy_factuals[:4], [{**point, "max_steps": 300} for point in grid])
    assert [candidate.valid_share for candidate in outcome.candidates] == [0.0, 1.0]
    assert outcome.candidates[0].distance is None
    assert outcome.selected["trade_off"] == 0.1
    assert outcome.factuals == 4


def test_tuning_fits_one_surrogate_a_row(
    toy_task: GenerationTask, toy_factuals: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    from geco_ray.cfe.methods.roar_lime import search

    fits: list[object] = []
    explain = search.explain
    monkeypatch.setattr(search, "explain", lambda *given: fits.append(given) or explain(*given))
    points = [{"trade_off": value, "samples": 500, "max_steps": 50} for value in (0.1, 0.5, 1.0)]
    both = tuning.tune("roar_lime", toy_task, toy_factuals[:4], points)
    assert len(fits) == 4
    alone = [tuning.tune("roar_lime", toy_task, toy_factuals[:4], [point]).candidates[0] for point in points]
    assert list(both.candidates) == alone


@pytest.mark.parametrize("name", ["breast_cancer", "diabetes"])
def test_the_rule_selects_today_what_the_record_says(name: str, data_dir: Path) -> None:
    for made in tuned_again(name, "paper", "paper", data_dir):
        assert_the_record_says_so(made)


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("seeding", ["paper", "independent"])
@pytest.mark.parametrize("protocol", ["paper", "corrected"])
def test_the_rule_selects_on_every_table_what_the_record_says(
    name: str, seeding: str, protocol: str, data_dir: Path
) -> None:
    for made in tuned_again(name, protocol, seeding, data_dir):
        assert_the_record_says_so(made)


def test_the_record_has_an_entry_for_each_table_method_protocol_and_seeding() -> None:
    wanted = {
        (method, protocol, seeding, name)
        for method in tuning.GRIDS
        for protocol in ("paper", "corrected")
        for seeding in ("paper", "independent")
        for name in TABLES
    }
    assert set(package_entries()) == wanted
    for entry in package_entries().values():
        assert entry.made_with["arithmetic"] == "pinned"
        assert len(entry.row_ids) == len(entry.probabilities) <= (25 if entry.protocol == "paper" else 200)
        assert max(entry.probabilities) < 0.5
        assert [candidate.options for candidate in entry.candidates] == list(tuning.GRIDS[entry.method])


def test_under_paper_the_record_is_what_its_own_scores_select() -> None:
    for entry in package_entries().values():
        if entry.protocol == "paper":
            assert select(entry.candidates).options == entry.by_rule


def test_only_wines_value_of_the_paper_is_not_the_rules() -> None:
    others = {key: entry.source for key, entry in package_entries().items() if entry.selected != entry.by_rule}
    assert others == {("roar_lime", "paper", "paper", "wine_quality"): BY_PAPER}
    assert tuning.tuned("wachter", "paper", "unknown") == {"trade_off": 1.0, "learning_rate": 0.01}


def test_a_data_set_without_a_record_gets_a_value_only_where_all_recorded_agree() -> None:
    wachter, roar = METHODS.get("wachter").parse_options, METHODS.get("roar_lime").parse_options
    agreed = {"trade_off": 1.0, "learning_rate": 0.01}
    assert tuning.resolve_tuned("wachter", wachter({}), "paper", "loans") == agreed
    assert tuning.resolve_tuned("wachter", wachter({"trade_off": 3}), "paper", "loans") == {**agreed, "trade_off": 3.0}
    assert tuning.resolve_tuned("roar_lime", roar({"trade_off": 0.5}), "paper", "loans") == {"trade_off": 0.5}
    assert tuning.resolve_tuned("roar_lime", roar({}), "paper", "diabetes") == {"trade_off": 0.005}


@pytest.mark.parametrize(
    ("method", "given", "protocol", "seeding", "missing"),
    [
        ("roar_lime", {}, "paper", "paper", "trade_off"),
        ("roar_lime", {}, "corrected", "paper", "trade_off"),
        ("wachter", {}, "corrected", "independent", "trade_off and learning_rate"),
        ("wachter", {"trade_off": 0.25}, "corrected", "independent", "learning_rate"),
    ],
)
def test_a_value_that_no_record_has_is_asked_for_with_two_remedies(
    method: str, given: dict[str, object], protocol: str, seeding: str, missing: str
) -> None:
    options = METHODS.get(method).parse_options(given)
    with pytest.raises(UserError, match=f"no tuned {missing} for the data set 'loans'") as caught:
        tuning.resolve_tuned(method, options, protocol, "loans", seeding)
    text = str(caught.value)
    assert f"`geco-ray tune loans --protocol {protocol} --seeding {seeding}`" in text
    remedy = text[text.index("cfe.methods=[{") + len("cfe.methods=[") : text.index("}]") + 1]
    choice = yaml.safe_load(remedy)
    assert choice.pop("name") == method
    assert given.items() <= choice.items()
    example = METHODS.get(method).parse_options(choice)
    assert tuning.resolve_tuned(method, example, protocol, "loans", seeding) == choice  # the remedy is one


def test_an_untuned_data_set_fails_when_the_method_is_prepared(toy_task: GenerationTask) -> None:
    entry = METHODS.get("roar_lime")
    with pytest.raises(UserError, match="'toy'"):
        entry.target(toy_task, entry.parse_options({}))
    assert entry.target(toy_task, entry.parse_options({"trade_off": 0.5})).set_up == {"trade_off": 0.5}


@pytest.fixture
def own_data(tmp_path: Path, data_dir: Path) -> Path:
    """A folder with Diabetes' table under another name and a card, and a record of its tuning beside it."""
    folder = tmp_path / "data"
    folder.mkdir()
    shutil.copyfile(data_dir / "tabular" / "diabetes.csv", folder / "clinic.csv")
    (folder / "clinic.yaml").write_text("name: clinic\ntarget: Outcome\nfavourable: ['0']\nadverse: ['1']\n")
    entry = package_entries()["roar_lime", "paper", "paper", "diabetes"]
    data = load_dataset("clinic", folder).fingerprint
    own = replace(entry, dataset="clinic", data=data, selected={"trade_off": 0.31}, by_rule={"trade_off": 0.31})
    tuning.write_entries(folder / "clinic.tuned.json", [own])
    return folder


def test_a_tables_own_record_goes_before_the_packages_and_is_read_as_written(own_data: Path) -> None:
    options = METHODS.get("roar_lime").parse_options({})
    assert tuning.resolve_tuned("roar_lime", options, "paper", "clinic", "paper", own_data) == {"trade_off": 0.31}
    (entry,) = tuning.read_entries(own_data / "clinic.tuned.json").values()
    assert entry.candidates == package_entries()["roar_lime", "paper", "paper", "diabetes"].candidates


def test_a_record_of_other_data_is_refused_with_the_command_that_renews_it(own_data: Path) -> None:
    with (own_data / "clinic.csv").open("a") as table:
        table.write("1,85,66,29,0,26.6,0.351,31,0\n")
    with pytest.raises(UserError, match="belongs to other data") as caught:
        tuning.tuned("roar_lime", "paper", "clinic", "paper", own_data)
    assert f"geco-ray tune clinic --protocol paper --seeding paper --data-dir {own_data}" in str(caught.value)


@pytest.mark.parametrize("content", ["", "[]", '{"schema": 1}', '{"schema": 2, "entries": [{"method": "x"}]}'])
def test_what_is_no_record_is_refused(content: str, own_data: Path) -> None:
    (own_data / "clinic.tuned.json").write_text(content)
    with pytest.raises(UserError, match="no record of tuning") as caught:
        tuning.tuned("roar_lime", "paper", "clinic", "paper", own_data)
    assert "clinic.tuned.json" in str(caught.value)


@pytest.fixture(scope="module")
def diabetes(data_dir: Path) -> tuple[Dataset, BaseModel]:
    """Diabetes and its first base model."""
    dataset = load_dataset("diabetes", data_dir)
    return dataset, train_base(BaseKey("diabetes", 2026), Pool.of(dataset))


def shifted(base: BaseModel, by: float) -> BaseModel:
    """The base model with another last intercept."""
    biases = (*base.model.biases[:-1], base.model.biases[-1] + np.float32(by))
    return replace(base, model=Mlp(base.model.weights, biases))


def warning(found: dict[str, object]) -> str | None:
    where = {"method": "roar_lime", "dataset": "diabetes", "protocol": "paper", "seeding": "paper"}
    return tuning.tuning_warning([(where, {"tuning": json.loads(json.dumps(found))}), (where, {})])


def test_the_model_that_was_tuned_on_raises_no_doubt(diabetes: tuple[Dataset, BaseModel]) -> None:
    entry = package_entries()["roar_lime", "paper", "paper", "diabetes"]
    found = tuning.compare_tuning(entry, *diabetes)
    assert found["difference"] == 0
    assert found["again"] is None
    assert warning(found) is None


def test_another_base_model_is_said_with_the_command_that_tunes_again(diabetes: tuple[Dataset, BaseModel]) -> None:
    entry, (dataset, base) = package_entries()["roar_lime", "paper", "paper", "diabetes"], diabetes
    found = tuning.compare_tuning(entry, dataset, shifted(base, 0.01))
    assert found["difference"] > 1e-3
    text = warning(found) or ""
    assert "differs from the tuned one by up to" in text
    assert "`geco-ray tune diabetes --protocol paper --seeding paper` tunes again" in text


def test_a_small_difference_is_said_only_if_the_rule_then_selects_otherwise(
    diabetes: tuple[Dataset, BaseModel],
) -> None:
    entry, (dataset, base) = package_entries()["roar_lime", "paper", "paper", "diabetes"], diabetes
    found = tuning.compare_tuning(entry, dataset, shifted(base, 1e-6))
    assert 0 < found["difference"] < 1e-3
    assert found["again"] == entry.by_rule
    assert warning(found) is None
    assert "would select trade_off 0.7 and not trade_off 0.005" in (
        warning(found | {"again": {"trade_off": 0.7}}) or ""
    )
