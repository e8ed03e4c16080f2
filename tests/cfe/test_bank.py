"""The bank: its catalog, its files, its answers; and the data of Tables 2 to 4."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch

from geco_ray.cfe.bank import Bank, build_bank, load_bank, save_bank
from geco_ray.cfe.base_model import train_base, train_bases
from geco_ray.cfe.data.datasets import Dataset, load_dataset
from geco_ray.cfe.mlp import Mlp
from geco_ray.cfe.model_stack import StackedModels
from geco_ray.cfe.model_table import base_table, model_schema, model_table
from geco_ray.cfe.seeding import BASE_SEEDS, BaseKey
from geco_ray.cfe.tables import table_2, table_3, table_4
from geco_ray.cfe.training import Pool
from geco_ray.errors import UserError

FAMILIES = ["bootstrap", "architecture", "bounded_parameter"]


@pytest.fixture(scope="module")
def data() -> Dataset:
    torch.set_num_threads(1)
    return load_dataset("breast_cancer")


@pytest.fixture(scope="module")
def bank(data: Dataset) -> Bank:
    base = train_base(BaseKey("breast_cancer", 2026), Pool.of(data))
    return build_bank(base, data, FAMILIES)


def test_one_row_per_variant_with_its_descriptors(bank: Bank, data: Dataset) -> None:
    rows = bank.catalog.to_pandas()
    assert rows["family"].tolist() == [name for name in FAMILIES for _ in range(25)]
    assert rows["base_model_id"].unique().tolist() == ["breast_cancer:mlp_32_32:seed_2026"]
    assert rows["linf_distance"].isna().tolist() == [name == "architecture" for name in rows["family"]]
    tenth = bank.variants[10].model
    differs = tenth.favourable(data.test.x) != bank.base.model.favourable(data.test.x)
    assert rows["hard_disagreement"][10] == differs.mean()
    assert sorted(rows["severity"].value_counts().tolist()) == [25, 25, 25]
    means = 100 * rows.groupby("family")["hard_disagreement"].mean()
    assert means["bounded_parameter"] < means["architecture"]


def test_stacked_answers_are_each_models_own(bank: Bank, data: Dataset) -> None:
    stacked = bank.on("cpu")
    found = stacked.probability(data.test.x)
    assert found.shape == (171, 75)
    for index, variant in enumerate(bank.variants):
        np.testing.assert_allclose(found[:, index], variant.model.probability(data.test.x), atol=1e-6)
    np.testing.assert_array_equal(stacked.favourable(data.test.x), found >= 0.5)


def test_answers_do_not_depend_on_the_company(bank: Bank, data: Dataset) -> None:
    stacked = bank.on("cpu")
    x = np.concatenate([data.train.x, data.test.x])
    together = stacked.probability(x)
    for row in (0, 1, 255, 256, 300, len(x) - 1):
        np.testing.assert_array_equal(stacked.probability(x[row : row + 1])[0], together[row])
    assert stacked.probability(x[:0]).shape == (0, 75)


def test_stacked_models_refuse_other_inputs(bank: Bank) -> None:
    with pytest.raises(ValueError, match="30 features"):
        bank.on("cpu").probability(np.zeros((2, 29)))
    with pytest.raises(ValueError, match="one number of inputs"):
        StackedModels([Mlp.initial(3, seed=1), Mlp.initial(4, seed=1)])


def test_a_bank_comes_back_from_disk(bank: Bank, data: Dataset, tmp_path: Path) -> None:
    save_bank(bank, tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert {"catalog.parquet", "base.safetensors", "mlp_32_32.safetensors", "mlp_8.safetensors"} <= names
    assert not [name for name in names if name.startswith(".")]
    again = load_bank(tmp_path, data.features)
    assert again.catalog.equals(bank.catalog)
    assert again.base.key == bank.base.key
    assert again.base.model.digest() == bank.base.model.digest()
    for ours, theirs in zip(again.variants, bank.variants, strict=True):
        assert ours.spec == theirs.spec
        assert ours.model.digest() == theirs.model.digest()
    first = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    save_bank(again, tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == first


def test_another_feature_order_is_refused_by_name(bank: Bank, data: Dataset, tmp_path: Path) -> None:
    save_bank(bank, tmp_path)
    swapped = [data.features[1], data.features[0], *data.features[2:]]
    with pytest.raises(UserError, match=r"column 1 .*mean texture"):
        load_bank(tmp_path, swapped)


@pytest.mark.parametrize("damage", ["flip", "cut", "gone", "no catalog", "cut catalog", "foreign catalog", "version"])
def test_a_damaged_bank_is_refused(bank: Bank, tmp_path: Path, damage: str) -> None:
    save_bank(bank, tmp_path)
    stack, catalog = tmp_path / "mlp_32_32.safetensors", tmp_path / "catalog.parquet"
    content = bytearray(stack.read_bytes())
    if damage == "flip":
        content[len(content) // 2] ^= 1
        stack.write_bytes(content)
    elif damage == "cut":
        stack.write_bytes(content[:-100])
    elif damage == "gone":
        stack.unlink()
    elif damage == "no catalog":
        catalog.unlink()
    elif damage == "cut catalog":
        catalog.write_bytes(catalog.read_bytes()[:-10])
    elif damage == "foreign catalog":
        pq.write_table(bank.catalog.replace_schema_metadata({}), catalog)
    else:
        table = pq.read_table(catalog)
        about = json.loads(table.schema.metadata[b"geco_ray.bank"]) | {"version": 99}
        pq.write_table(table.replace_schema_metadata({"geco_ray.bank": json.dumps(about)}), catalog)
    with pytest.raises(UserError, match=r"bank|damaged"):
        load_bank(tmp_path)


def test_rows_of_models_carry_the_weights(bank: Bank, data: Dataset) -> None:
    table = model_table(bank.base, bank.variants[:2], data.test)
    assert table.schema == model_schema()
    assert Mlp.from_bytes(table["weights"][1].as_py()).digest() == table["sha256"][1].as_py()
    row = base_table(bank.base, data.test).to_pylist()[0]
    assert (row["change_id"], row["hard_disagreement"], row["l2_distance"]) == (None, 0, 0)
    assert (row["adverse_test_rows"], row["epochs"], row["best_epoch"], row["seed"]) == (64, 146, 116, 2026)
    assert row["balanced_accuracy"] == pytest.approx(0.9875, abs=5e-5)


def test_table_2_counts_variants_and_draws() -> None:
    table = table_2()
    assert table.groupby("family")["variants"].sum().unique().tolist() == [25]
    assert table["family"].drop_duplicates().tolist()[0] == "seed"
    assert table.groupby("family")["distinct_draws"].first()["bounded_parameter"] == 45
    assert (table["construction"] != "").all()
    assert table_2("independent").groupby("family")["distinct_draws"].first()["seed"] == 125


def test_table_3_by_hand(data: Dataset) -> None:
    bases = pd.DataFrame(
        {"dataset": ["breast_cancer"] * 2, "adverse_test_rows": [64, 60], "balanced_accuracy": [0.98, 0.96]}
    )
    row = table_3([data], bases).iloc[0]
    assert (row["rows"], row["features"], row["train"], row["update"], row["validation"], row["test"]) == (
        569,
        30,
        284,
        57,
        57,
        171,
    )
    assert (row["adverse_total"], row["adverse_min"], row["adverse_max"]) == (124, 60, 64)
    assert row["balanced_accuracy_mean"] == pytest.approx(0.97)


def test_table_4_by_hand() -> None:
    rows = pd.DataFrame(
        {
            "dataset": ["a", "a", "b", "b"],
            "family": ["bootstrap"] * 4,
            "draw": ["1", "1", "2", "3"],
            "hard_disagreement": [0.1, 0.3, 0.0, 0.2],
            "probability_mae": [0.01, 0.01, 0.03, 0.03],
        }
    )
    table = table_4(rows).set_index("dataset")
    assert table.loc["a", "hard_disagreement_mean"] == pytest.approx(0.2)
    assert table.loc["a", "hard_disagreement_std"] == pytest.approx(np.sqrt(0.02))
    assert table.loc["macro", "hard_disagreement_mean"] == pytest.approx(0.15)
    assert table.loc["macro", "probability_mae_std"] == 0
    assert table.loc["macro", "n"] == 4
    assert table.loc[["a", "b"], "distinct_draws"].tolist() == [1, 2]
    assert pd.isna(table.loc["macro", "distinct_draws"])


@pytest.mark.slow
def test_the_papers_disagreements(data_dir: Path) -> None:
    """Table 4, macro means: bootstrap 4.92, parameter perturbation 0.95, architecture 4.69 per cent."""
    torch.set_num_threads(1)
    rows = []
    for name in ("breast_cancer", "diabetes", "wine_quality", "heloc"):
        data = load_dataset(name, data_dir)
        for base in train_bases([BaseKey(name, seed) for seed in BASE_SEEDS], Pool.of(data)):
            rows.append(build_bank(base, data, FAMILIES).catalog.to_pandas().assign(dataset=name))
    table = table_4(pd.concat(rows))
    macro = 100 * table[table["dataset"] == "macro"].set_index("family")["hard_disagreement_mean"]
    assert macro["bootstrap"] == pytest.approx(4.92, abs=0.3)
    assert macro["bounded_parameter"] == pytest.approx(0.95, abs=0.3)
    assert macro["architecture"] == pytest.approx(4.69, abs=0.3)
    assert table["distinct_draws"].dropna().tolist() == [29] * 4 + [25] * 4 + [45] * 4
    print(macro)
