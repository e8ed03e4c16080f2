"""The bank: its catalog and its answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from analysis.cfe.model_tables import MACRO, descriptor_table
from geco_ray.cfe.bank import Bank, build_bank
from geco_ray.cfe.base_model import train_base, train_bases
from geco_ray.cfe.data.datasets import Dataset, load_dataset
from geco_ray.cfe.mlp import Mlp
from geco_ray.cfe.model_stack import StackedModels
from geco_ray.cfe.model_table import base_table, model_table
from geco_ray.cfe.seeding import BASE_SEEDS, BaseKey
from geco_ray.cfe.training import Pool

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
    stacked = bank.stack()
    found = stacked.probability(data.test.x)
    assert found.shape == (171, 75)
    for index, variant in enumerate(bank.variants):
        np.testing.assert_allclose(found[:, index], variant.model.probability(data.test.x), atol=1e-6)
    np.testing.assert_array_equal(stacked.favourable(data.test.x), found >= 0.5)


def test_answers_do_not_depend_on_the_company(bank: Bank, data: Dataset) -> None:
    stacked = bank.stack()
    x = np.concatenate([data.train.x, data.test.x])
    together = stacked.probability(x)
    for row in (0, 1, 255, 256, 300, len(x) - 1):
        np.testing.assert_array_equal(stacked.probability(x[row : row + 1])[0], together[row])
    assert stacked.probability(x[:0]).shape == (0, 75)


def test_stacked_models_refuse_other_inputs(bank: Bank) -> None:
    with pytest.raises(ValueError, match="30 features"):
        bank.stack().probability(np.zeros((2, 29)))
    with pytest.raises(ValueError, match="one number of inputs"):
        StackedModels([Mlp.initial(3, seed=1), Mlp.initial(4, seed=1)])


NAMED = ["change_id", "family", "level", "seed", "draw", "epochs", "best_epoch"]
MEASURED = ["hard_disagreement", "probability_mae", "base_balanced_accuracy", "balanced_accuracy",
            "balanced_accuracy_drop", "linf_distance", "l2_distance", "weights"]  # fmt: skip


def test_the_columns_of_models_keep_their_order(bank: Bank, data: Dataset) -> None:
    """Tables of the grid have these columns, and their bytes are a promise."""
    assert base_table(bank.base, data.test).column_names == [*NAMED, "adverse_test_rows", *MEASURED]
    assert model_table(bank.base, bank.variants[:1], data.test).column_names == [*NAMED, *MEASURED]


def test_rows_of_models_carry_the_weights(bank: Bank, data: Dataset) -> None:
    rows = model_table(bank.base, bank.variants[24:26], data.test).to_pylist()
    assert [row["family"] for row in rows] == ["bootstrap", "architecture"]
    assert Mlp.from_bytes(rows[1]["weights"]).digest() == bank.variants[25].model.digest()
    assert rows[0]["change_id"] == bank.variants[24].spec.change_id
    assert (rows[0]["l2_distance"] is None, rows[1]["l2_distance"]) == (False, None)


def test_the_row_of_a_base_model(bank: Bank, data: Dataset) -> None:
    row = base_table(bank.base, data.test).to_pylist()[0]
    assert (row["change_id"], row["hard_disagreement"], row["l2_distance"]) == (None, 0, 0)
    assert (row["adverse_test_rows"], row["epochs"], row["best_epoch"], row["seed"]) == (64, 146, 116, 2026)
    assert row["balanced_accuracy"] == pytest.approx(0.9875, abs=5e-5)


@pytest.mark.slow
def test_the_papers_disagreements(data_dir: Path) -> None:
    """Table 4, macro means: bootstrap 4.92, parameter perturbation 0.95, architecture 4.69 per cent."""
    torch.set_num_threads(1)
    rows = []
    for name in ("breast_cancer", "diabetes", "wine_quality", "heloc"):
        data = load_dataset(name, data_dir)
        for base in train_bases([BaseKey(name, seed) for seed in BASE_SEEDS], Pool.of(data)):
            catalog = build_bank(base, data, FAMILIES).catalog.to_pandas()
            rows.append(catalog.assign(dataset=name, kind="variant", seeding="paper"))
    table = descriptor_table(pd.concat(rows))
    macro = 100 * table[table["dataset"] == MACRO].set_index("family")["hard_disagreement"]
    assert macro["bootstrap"] == pytest.approx(4.92, abs=0.3)
    assert macro["bounded_parameter"] == pytest.approx(0.95, abs=0.3)
    assert macro["architecture"] == pytest.approx(4.69, abs=0.3)
    print(macro)
