"""What the verbs of ``geco-ray data`` show: printed tables and cards for the terminal, the bias by class."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.table import Table
from rich.text import Text

from geco_ray.errors import UserError, unknown_name
from geco_ray.table import PrintedTable, cell, plain


def plain_table(table: PrintedTable) -> dict[str, object]:
    """A printed table as plain values, ready for JSON."""
    rows = [[plain(content) for content in row] for row in table.rows]
    return {"title": table.title, "header": list(table.header), "rows": rows, "notes": list(table.notes)}


def bias_table(table: pa.Table) -> PrintedTable:
    """:func:`geco_ray.geco.audit.bias.bias_of_tasks`: one row per task, scope and reading, a column a class."""
    records = table.to_pylist()
    labels = list(dict.fromkeys(record["label"] for record in records))
    shares: dict[tuple[str, str, str], dict[str, str]] = {}
    ideal: dict[str, str] = {}
    for record in records:
        key = record["task"], record["scope"], record["reading"]
        value = record["reason"] if record["bias"] is None else f"{record['bias']:.4f}"
        shares.setdefault(key, {})[record["label"]] = value
        ideal[record["task"]] = f"{record['ideal']:.4f}"
    rows = [(*key, *(own.get(label) for label in labels), ideal[key[0]]) for key, own in shares.items()]
    return PrintedTable(
        "Co-occurrence bias: the share of each class",
        ("task", "files", "reading", *labels, "even"),
        tuple(tuple(map(cell, row)) for row in rows),
        ("Readings are defined in docs/data.md; do not quote a share without its reading.",),
    )


def any_card(name: str, data_dir: Path | None) -> dict[str, Any]:
    """The card of a tabular data set, a GECO task or a demo task.

    Raises:
        UserError: no data set of that name has a card.
    """
    from geco_ray.cfe.data.datasets import dataset_card, dataset_names
    from geco_ray.geco.data.cards import task_card
    from geco_ray.geco.data.dataset import DEMO_TASKS
    from geco_ray.geco.data.sources import GECO_TASKS, user_tasks

    tasks = (*GECO_TASKS, *DEMO_TASKS)
    tabular = dataset_names(data_dir)
    if name in tasks:
        return task_card(name)
    if name in tabular:
        card = dataset_card(name, data_dir).model_dump(mode="json", exclude_defaults=True)
        return card | _remarks(name, data_dir)
    if name in user_tasks(data_dir):
        raise UserError(f"{name!r} is a folder of your own and has no card", remedy="`geco-ray data audit` counts it.")
    raise unknown_name("data card", name, [*tasks, *tabular])


def _remarks(name: str, data_dir: Path | None) -> dict[str, Any]:
    """What is worth a look in the table of a card, if its file is here."""
    from geco_ray.cfe.data.audit import audit_table
    from geco_ray.cfe.data.datasets import dataset_card, find_file
    from geco_ray.cfe.data.remarks import remark_lines

    if name == "breast_cancer":
        return {}
    try:
        find_file(dataset_card(name, data_dir), data_dir)
    except UserError:
        return {}
    try:
        lines = remark_lines(name, audit_table(name, data_dir).remarks)
    except UserError as error:
        lines = [f"the table is refused: {error}"]
    return {"worth a look": lines} if lines else {}


def card_table(card: Mapping[str, Any]) -> Table:
    """A card, one key a row."""
    shown = Table(show_edge=False, show_header=False)
    shown.add_column(no_wrap=True)
    shown.add_column(overflow="fold")
    for key, value in card.items():
        shown.add_row(key.replace("_", " "), Text(_words(value)))
    return shown


def _words(value: object) -> str:
    if isinstance(value, Mapping):
        return "\n".join(f"{key}: {_words(item)}" for key, item in value.items())
    if isinstance(value, list):
        longest = max((len(str(item)) for item in value), default=0)
        return (", " if longest < 30 else "\n").join(map(str, value))
    return str(value)
