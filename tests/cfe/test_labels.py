"""A file of the benchmark says what it is, and the report reads the same from it."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.load import load
from geco_ray.cells import BaseCell, Cell, CounterfactualCell, ProofCell, ValidityCell, VariantCell
from geco_ray.cfe.base_model import BaseModel
from geco_ray.cfe.changes.base import Variant, variant_specs
from geco_ray.cfe.data.datasets import Part
from geco_ray.cfe.methods.wachter import WachterOptions
from geco_ray.cfe.mlp import Mlp
from geco_ray.cfe.model_table import base_table, model_table
from geco_ray.cfe.seeding import BaseKey
from geco_ray.experiments.cfe.labels import labelled
from geco_ray.ledger import Ledger

BASE = BaseCell("diabetes", "0" * 8, 2027, "independent")
VARIANT = VariantCell(BASE, "seed", 3)
OPTIONS = WachterOptions(trade_off=0.5, learning_rate=0.01)
MADE = CounterfactualCell(BASE, "wachter", OPTIONS, "corrected")
OPTIONS_JSON = '{"learning_rate":0.01,"margin":0.001,"max_steps":20000,"trade_off":0.5}'

OF_BASE = {"dataset": "diabetes", "base_seed": 2027, "seeding": "independent"}
OF_METHOD = OF_BASE | {"protocol": "corrected", "method": "wachter", "options": OPTIONS_JSON}
WANTED: list[tuple[Cell, dict[str, object]]] = [
    (BASE, OF_BASE),
    (VARIANT, OF_BASE | {"family": "seed"}),
    (MADE, OF_METHOD),
    (ProofCell(BASE, "wachter", OPTIONS, "corrected", 0, 2), OF_METHOD),
    (ValidityCell(MADE, "seed", (VARIANT,)), OF_METHOD | {"family": "seed"}),
]


@pytest.mark.parametrize(("cell", "labels"), WANTED)
@pytest.mark.parametrize("rows", [0, 2])
def test_a_file_says_what_it_is(cell: Cell, labels: dict[str, object], rows: int) -> None:
    sink = io.BytesIO()
    pq.write_table(labelled(pa.table({"own": list(range(rows))}), cell), sink)
    table = pq.read_table(sink)
    assert table.column_names == [*labels, "own"]
    assert table.to_pylist() == [labels | {"own": row} for row in range(rows)]
    for name, value in labels.items():
        assert pa.types.is_dictionary(table.schema.field(name).type) == isinstance(value, str)


def test_a_column_of_the_table_is_left_as_it_is() -> None:
    table = labelled(pa.table({"family": ["mine"], "own": [1]}), VARIANT)
    assert table.column_names == ["dataset", "base_seed", "seeding", "family", "own"]
    assert table["family"].to_pylist() == ["mine"]


def test_the_report_reads_labelled_files_as_plain_ones(tmp_path: Path) -> None:
    """Labels would be categories in pandas, and a table over categories has a row for each that does not occur."""
    test = Part(np.array([[-1.0], [1.0]]), np.array([0, 1]), np.arange(2))
    model = Mlp((np.ones((1, 1), dtype=np.float32),), (np.zeros(1, dtype=np.float32),))
    base = BaseModel(BaseKey("diabetes", 2027, "independent"), model)
    variant = Variant(variant_specs("seed", base.key, [3])[0], model, 0, 0)
    frames = []
    for number, change in enumerate((lambda table, cell: table, labelled)):
        ledger = Ledger(tmp_path / str(number))
        ledger.put(BASE, change(base_table(base, test), BASE))
        ledger.put(VARIANT, change(model_table(base, [variant], test), VARIANT))
        frames.append(load(ledger).models)
    plain, labels = frames
    assert labels[plain.columns].equals(plain)
    assert (labels.dtypes[plain.columns] == plain.dtypes).all()
    assert plain["family"].tolist().count("seed") == 1
