"""What the verbs of ``geco-ray data`` show: printed tables and cards for the terminal, the bias by class."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.table import Table
from rich.text import Text

from geco_ray.errors import UserError, unknown_name
from geco_ray.table import Cell, PrintedTable, cell, visible


def rich_table(table: PrintedTable) -> Table:
    """A printed table for the terminal, marked words in bold."""
    shown = Table(title=table.title, title_justify="left", caption="\n".join(table.notes) or None, show_edge=False)
    for name in table.header:
        shown.add_column(name, overflow="fold")
    for row in table.rows:
        shown.add_row(*map(_text, row))
    return shown


def show_table(console: Console, table: PrintedTable) -> None:
    """Print a table; where words or numbers would be cut in two to make it fit, one block per row instead."""
    shown = rich_table(table)
    if _keeps_words(shown, table, console.width):
        console.print(shown)
        return
    console.print(table.title)
    for row in table.rows:
        block = Table(title=_text(row[0]), title_justify="left", title_style="", show_edge=False, show_header=False)
        block.add_column(overflow="fold")
        block.add_column(overflow="fold")
        for name, content in zip(table.header[1:], row[1:], strict=True):
            block.add_row(name, _text(content))
        console.print()
        console.print(block)
    for note in table.notes:
        console.print(note)


def _keeps_words(shown: Table, table: PrintedTable, width: int) -> bool:
    """Whether every word of the header and the cells stands whole in the table at this width."""
    page = Console(width=width, file=io.StringIO(), markup=False, emoji=False)
    with page.capture() as captured:
        page.print(shown)
    printed = set(re.split(r"[\s│┃]+", captured.get()))
    texts = [*table.header, *(_text(content).plain for row in table.rows for content in row)]
    return all(word in printed for text in texts for word in text.split())


def plain_table(table: PrintedTable) -> dict[str, object]:
    """A printed table as plain values, ready for JSON."""
    rows = [["".join(span.text for span in content) for content in row] for row in table.rows]
    return {"title": table.title, "header": list(table.header), "rows": rows, "notes": list(table.notes)}


def _text(content: Cell) -> Text:
    return Text.assemble(*((visible(span.text), "bold" if span.marked else "") for span in content))


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
