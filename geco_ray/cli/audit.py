"""What ``geco-ray data audit`` shows, of tasks and of tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from geco_ray.errors import unknown_name
from geco_ray.table import PrintedTable


def audit_by_kind(names: Sequence[str], data_dir: Path | None) -> tuple[dict[str, Any], list[PrintedTable]]:
    """Count in tasks and in tables: plain values for JSON, and the printed tables; what a kind lacks is left out.

    Raises:
        UserError: an unknown name, a missing file, or a table that a run would refuse.
    """
    from geco_ray.cfe.data.audit import audit_table, table_counts, table_remarks
    from geco_ray.cfe.data.datasets import dataset_names
    from geco_ray.geco.audit.audit import audit_tasks
    from geco_ray.geco.audit.tables import counts_table, defects_table
    from geco_ray.geco.data.dataset import task_names
    from geco_ray.geco.data.sources import user_tasks

    tables = sorted(set(dataset_names(data_dir)) - set(user_tasks(data_dir)))
    known = [*task_names(data_dir), *tables]
    for name in names:
        if name not in known:
            raise unknown_name("task or table", name, known)
    tasks = [name for name in names if name not in tables]
    values: dict[str, Any] = {}
    shown: list[PrintedTable] = []
    if tasks:
        found = audit_tasks(tasks, data_dir)
        values |= {key: getattr(found, key).to_pylist() for key in ("counts", "summary", "defects")}
        shown += [counts_table(found), defects_table(found)]
    if len(tasks) < len(names):
        audits = [audit_table(name, data_dir) for name in names if name in tables]
        values["tables"] = [audit.to_dict() for audit in audits]
        shown += [table_counts(audits), table_remarks(audits)]
    return values, shown
