"""What a run folder's cells hold, as one file of digests that any other run folder can be held against.

A cell's digest is the SHA-256 of its rows, in Arrow's format, and of its weights if it has any. It is not that of the
Parquet file, whose bytes another release of pyarrow may write otherwise. Times and hosts are in no digest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from geco_ray.arithmetic import kernel_groups
from geco_ray.errors import UserError
from geco_ray.ledger.ledger import Ledger
from geco_ray.ledger.provenance import versions
from geco_ray.ledger.record import Record

SCHEMA = 1


def cell_digest(ledger: Ledger, record: Record) -> str:
    """SHA-256 of what the cell holds. Raises DamagedCell as :meth:`Ledger.table` does."""
    table = ledger.table(record).combine_chunks().replace_schema_metadata(None)
    # A serialized batch leaves the values of dictionary columns out, and they say what the rows belong to.
    for number, column in enumerate(table.schema):
        if isinstance(column.type, pa.DictionaryType):
            plain = table.column(number).cast(column.type.value_type).combine_chunks()
            table = table.set_column(number, column.name, plain)
    digest = hashlib.sha256(str(table.schema).encode())
    for batch in table.to_batches():
        digest.update(memoryview(batch.serialize()))
    if "safetensors" in record.files:
        digest.update(ledger.blob(record))
    return digest.hexdigest()


def folder_digests(ledger: Ledger, stages: Iterable[str]) -> dict[str, dict[str, str]]:
    """Stage to id to digest of the finished cells."""
    return {
        stage: found
        for stage in stages
        if (found := {record.id: cell_digest(ledger, record) for record in ledger.records(stage)})
    }


def write_digests(ledger: Ledger, stages: Iterable[str], path: Path) -> int:
    """Write the digests of a run folder with the versions and kernels behind them; how many cells.

    Raises:
        UserError: the file cannot be written.
    """
    stages = tuple(stages)
    cells = folder_digests(ledger, stages)
    infos = [record.info for stage in stages for record in ledger.records(stage)]
    content = {"schema": SCHEMA, "packages": versions(), "kernels": kernel_groups(infos), "cells": cells}
    try:
        path.write_text(json.dumps(content, indent=0, sort_keys=True) + "\n", encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"the digests cannot be written ({error.strerror})", where=str(path), remedy="Name another file"
        ) from None
    return sum(map(len, cells.values()))


@dataclass
class Comparison:
    """A run folder beside a file of digests: stage to ids. ``extra``: cells that the file does not have.

    ``notes``: versions and kernels that are not the file's, in words.
    """

    equal: dict[str, list[str]] = field(default_factory=dict)
    differing: dict[str, list[str]] = field(default_factory=dict)
    missing: dict[str, list[str]] = field(default_factory=dict)
    extra: dict[str, list[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def agrees(self) -> bool:
        """Whether cells are in common, and none of them differs."""
        return any(self.equal.values()) and not any(self.differing.values())

    def counts(self) -> dict[str, dict[str, int]]:
        """Kind of outcome to stage to number of cells."""
        named = {"equal": self.equal, "differing": self.differing, "missing": self.missing, "extra": self.extra}
        return {kind: {stage: len(ids) for stage, ids in found.items() if ids} for kind, found in named.items()}


def compare_digests(ledger: Ledger, stages: Iterable[str], path: Path) -> Comparison:
    """Hold a run folder against a file of :func:`write_digests`.

    Raises:
        UserError: there is no such file, or it is none of ours.
    """
    stages = tuple(stages)
    theirs, ours, compared = _read(path), folder_digests(ledger, stages), Comparison()
    for stage in dict.fromkeys([*theirs["cells"], *ours]):
        wanted, have = theirs["cells"].get(stage, {}), ours.get(stage, {})
        both = sorted(set(wanted) & set(have))
        compared.equal[stage] = [cell for cell in both if wanted[cell] == have[cell]]
        compared.differing[stage] = [cell for cell in both if wanted[cell] != have[cell]]
        compared.missing[stage] = sorted(set(wanted) - set(have))
        compared.extra[stage] = sorted(set(have) - set(wanted))
    infos = (record.info for stage in stages for record in ledger.records(stage))
    compared.notes = list(_differences(theirs, infos))
    return compared


def _differences(theirs: dict[str, Any], infos: Iterable[Any]) -> Iterator[str]:
    here, groups = versions(), kernel_groups(infos)
    for name, version in sorted(theirs["packages"].items()):
        if here.get(name) != version:
            yield f"{name} {here.get(name, 'not installed')} is installed here, the file's is {version}"
    if set(groups) != set(theirs["kernels"]):
        yield f"kernels here: {'; '.join(groups) or 'none'}. The file's: {'; '.join(theirs['kernels']) or 'none'}"


def _read(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        if value["schema"] != SCHEMA or not all(
            isinstance(value[key], dict) for key in ("packages", "kernels", "cells")
        ):
            raise ValueError("another schema")
    except OSError as error:
        raise UserError(
            f"the digests cannot be read ({error.strerror})", where=str(path),
            remedy="Give a file that `geco-ray check --digests FILE` wrote",
        ) from None  # fmt: skip
    except (ValueError, KeyError, TypeError):
        raise UserError(
            "this is no file of digests", where=str(path),
            remedy="Give a file that `geco-ray check --digests FILE` wrote",
        ) from None  # fmt: skip
    found: dict[str, Any] = value
    return found
