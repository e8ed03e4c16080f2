"""What ``geco-ray data audit`` shows, of tasks and of tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from geco_ray.errors import unknown_name
from geco_ray.table import PrintedTable

if TYPE_CHECKING:
    from geco_ray.geco.audit.encoder_audit import EncoderAudit


def audit_by_kind(
    names: Sequence[str], data_dir: Path | None, encoders: Sequence[str] = ()
) -> tuple[dict[str, Any], list[PrintedTable]]:
    """Count in tasks and in tables: plain values for JSON, and the printed tables; what a kind lacks is left out.

    With ``encoders``, also what each of them sees of each task.

    Raises:
        UserError: an unknown name, a missing file or encoder, or a table that a run would refuse.
    """
    from geco_ray.cfe.data.audit import audit_table, table_counts, table_remarks
    from geco_ray.cfe.data.datasets import dataset_names
    from geco_ray.geco.audit.audit import audit_tasks
    from geco_ray.geco.audit.encoder_audit import encoder_table
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
    if tasks and encoders:
        seen = _seen(tasks, data_dir, encoders)
        values["encoders"] = [audit.record() for audit in seen]
        shown.append(encoder_table(seen))
    if len(tasks) < len(names):
        audits = [audit_table(name, data_dir) for name in names if name in tables]
        values["tables"] = [audit.to_dict() for audit in audits]
        shown += [table_counts(audits), table_remarks(audits)]
    return values, shown


def _seen(tasks: Sequence[str], data_dir: Path | None, encoders: Sequence[str]) -> list[EncoderAudit]:
    from geco_ray.geco.audit.encoder_audit import audit_encoder
    from geco_ray.geco.data.dataset import load_task
    from geco_ray.geco.encoders import load_tokenizer, resolve_encoder

    tokenizers = {name: load_tokenizer(resolve_encoder(name)) for name in encoders}
    loaded = [load_task(name, data_dir) for name in tasks]
    return [audit_encoder(task, tokenizer, name) for task in loaded for name, tokenizer in tokenizers.items()]
