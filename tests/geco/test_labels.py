"""Files of explanations and scores say what they are, to any reader of Parquet."""

from __future__ import annotations

import io
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.geco.frames import load
from geco_ray.experiments.geco.cells import ExplainCell, ScoreCell, TrainCell
from geco_ray.experiments.geco.labels import LABELS, labelled
from geco_ray.registry import Options


class Chosen(Options):
    """Options with something in them."""

    n_steps: int = 7


def _cell(seed: int | None) -> ExplainCell:
    model = TrainCell("demo", "f", "mini", "e", "bert_c", Options(), seed, "paper")
    return ExplainCell(model, "integrated_gradients", Chosen())


@pytest.mark.parametrize("seed", [3, None])
@pytest.mark.parametrize("rows", [2, 0])
def test_a_file_says_what_it_is_to_pandas_and_pyarrow(seed: int | None, rows: int) -> None:
    sink = io.BytesIO()
    pq.write_table(labelled(pa.table({"own": list(range(rows))}), _cell(seed), "abcd"), sink)
    table = pq.read_table(sink)
    assert tuple(table.column_names) == (*LABELS, "own")
    assert all(pa.types.is_dictionary(table.schema.field(name).type) for name in LABELS if name != "seed")
    assert table.schema.field("seed").type == pa.int64()
    frame = pd.read_parquet(sink)
    values = ("demo", "mini", "abcd", "bert_c", "paper", "integrated_gradients", '{"n_steps":7}')
    assert [tuple(row) for row in frame[[name for name in LABELS if name != "seed"]].to_numpy()] == [values] * rows


def test_a_note_of_the_table_stays() -> None:
    table = pa.table({"own": [1]}).replace_schema_metadata({"note": "plain gradient"})
    assert labelled(table, _cell(0), "abcd").schema.metadata[b"note"] == b"plain gradient"


def test_the_report_reads_labels_as_its_own_axes() -> None:
    """No column twice, and plain texts, not categories, by which pandas would group into empty groups."""

    class Ledger:
        def records(self, stage: str) -> list[Any]:
            cells = [ScoreCell(_cell(seed)) for seed in (0, None)] if stage == "score" else []
            return [type("Record", (), {"id": cell.id, "params": cell.params(), "cell": cell}) for cell in cells]

        def table(self, record: Any) -> pa.Table:
            return labelled(pa.table({"row": [0], "mass_accuracy": [0.5]}), record.cell.explained, "abcd")

    score = load(Ledger()).score
    assert score.columns.is_unique
    assert score["tokenizer"].tolist() == ["abcd"] * 2
    assert not any(isinstance(kind, pd.CategoricalDtype) for kind in score.dtypes)
    assert sorted(score["seed"].astype("object").fillna(-1)) == [-1, 0]
