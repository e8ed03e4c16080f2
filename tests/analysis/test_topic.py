"""Topics are found by name, also a foreign one; the frame of the report names no benchmark."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import analysis
from analysis import topic as topic_module
from analysis.load import StageColumns, stage_frame
from analysis.report import print_tables, write_report
from analysis.topic import Numbers, Table, Topic, topics
from analysis.views import View
from geco_ray.errors import UserError

RUNS = StageColumns("train", ("dataset",), ("epoch",))


def toy(name: str = "toy", file: str = "toy.csv") -> Topic[pd.DataFrame]:
    """A topic that counts the rows of training histories."""

    def count(numbers: Numbers[pd.DataFrame]) -> pd.DataFrame:
        return numbers.frames.groupby("dataset").size().rename("rows").reset_index()

    def view(numbers: Numbers[pd.DataFrame]) -> list[View]:
        rows = tuple((str(row.dataset), str(row.rows)) for row in numbers.table(file).itertuples())
        return [View("toy", "Toy", ("data set", "rows"), rows, notes=("Rows are counted.",))] if rows else []

    return Topic(
        name=name,
        question="how long a training is",
        begins_with="training",
        stages=(RUNS,),
        names=(),
        load=lambda ledger, ids: stage_frame(ledger, RUNS, ids),
        tables={file: Table("rows by data set", count)},
        views=view,
    )


@pytest.fixture
def give(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Offers a topic as a third package would, beside those of this one."""

    def offer(found: object) -> None:
        module = types.ModuleType("their_reading")
        module.TOPIC = found  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "their_reading", module)
        readings = [*topic_module._readings(), "their_reading:TOPIC"]
        monkeypatch.setattr(topic_module, "_readings", lambda: readings)

    return offer


def test_a_foreign_topic_is_printed_and_reported_after_the_others(
    full_ledger: Any, give: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    give(toy())
    assert [topic.name for topic in topics()][-1] == "toy"
    names = {path.name for path in write_report(full_ledger, None, tmp_path, "three")}
    assert {"toy.csv", "table_6.csv", "mass_accuracy.csv"} <= names
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "survives a changed model, and how long a training is." in page
    assert ">toy.csv</a>: rows by data set" in page
    print_tables(full_ledger)
    assert capsys.readouterr().out.rstrip().endswith("Rows are counted.")


def test_two_topics_do_not_share_a_file(full_ledger: Any, give: Any, tmp_path: Path) -> None:
    give(toy(file="table_6.csv"))
    with pytest.raises(ValueError, match=r"two benchmarks have a table 'table_6.csv', one of them is 'toy'"):
        write_report(full_ledger, None, tmp_path, "two")


@pytest.mark.parametrize(
    ("found", "said"), [(7, "is no topic, found: int"), (None, "is no topic"), ("", "is no topic")]
)
def test_what_is_no_topic_is_refused_by_its_name(give: Any, found: object, said: str) -> None:
    give(found)
    with pytest.raises(UserError, match="their_reading:TOPIC") as refused:
        topics()
    assert said.split(",")[0] in str(refused.value)


def test_a_topic_that_cannot_be_imported_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_module, "_readings", lambda: ["no_such_package.topic:TOPIC"])
    with pytest.raises(UserError, match=r"no_such_package\.topic:TOPIC"):
        topics()


def test_the_frame_names_no_benchmark_and_no_stage() -> None:
    stages = {stage.name for topic in topics() for stage in topic.stages} - {"train", "models", "score"}  # plain words
    columns = {name for topic in topics() for stage in topic.stages for name in (*stage.axes, *stage.columns)}
    words = {"geco", "cfe", "attribution", "counterfactual", *stages, *(name for name in columns if "_" in name)}
    for path in Path(analysis.__file__).parent.glob("*.py"):
        text = re.sub(r"geco_ray", "", path.read_text(encoding="utf-8"))
        assert not {word for word in words if re.search(rf"\b{word}\b", text)}, path.name
