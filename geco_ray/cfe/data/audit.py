"""What is in tables and what in them may mean something else, counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from geco_ray.cfe.data.datasets import dataset_card, open_table
from geco_ray.cfe.data.remarks import Remark
from geco_ray.table import PrintedTable, cell


@dataclass(frozen=True)
class TableAudit:
    """Counts of one table after its card's cleaning, and the remarks on its values before it."""

    name: str
    rows: int
    left_out: int
    favourable: int
    features: int
    remarks: tuple[Remark, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


def audit_table(name: str, data_dir: Path | None = None) -> TableAudit:
    """Read a table as a run does, and count.

    Raises:
        UserError: no such data set, or a fault for which a run would refuse it (column and line are named).
    """
    table, _ = open_table(dataset_card(name, data_dir), data_dir)
    return TableAudit(name, len(table.y), table.left_out, int(table.y.sum()), len(table.features), table.remarks)


def table_counts(audits: Sequence[TableAudit]) -> PrintedTable:
    """One row a table: how many rows and features."""
    header = ("table", "rows", "left out by the card", "favourable rows", "features")
    rows = [(found.name, found.rows, found.left_out, found.favourable, found.features) for found in audits]
    return PrintedTable("What is in the tables", header, tuple(tuple(map(cell, row)) for row in rows))


def table_remarks(audits: Sequence[TableAudit]) -> PrintedTable:
    """One row for each value of a column that may mean something else."""
    header = ("table", "column", "value", "may be meant as", "rows of the file", "rows used")
    rows = [
        (found.name, remark.column, remark.value, remark.reading, remark.rows, remark.used)
        for found in audits
        for remark in found.remarks
    ]
    return PrintedTable(
        "What may be meant otherwise",
        header,
        tuple(tuple(map(cell, row)) for row in rows),
        ("Nothing is filled in. `missing` in a card refuses the rows that have such a value.",),
    )
