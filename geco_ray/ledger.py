"""The ledger: what is on disk, and the only truth about what is done.

A finished cell is up to three files, written in this order, each whole or not at all::

    cells/<stage>/<id>.safetensors   weights, where the stage has any
    cells/<stage>/<id>.parquet       the cell's rows; its bytes depend on the cell alone (no time, no host)
    cells/<stage>/<id>.json          the record: what the cell is, size and SHA-256 of the files, when and where it ran

The record is the commit: without it the cell is not done, and whatever a killed run left is overwritten by the next.
A failed attempt leaves ``failures/<stage>/<id>.json``, which success removes.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import socket
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from geco_ray import __version__
from geco_ray.errors import GecoRayError, UserError
from geco_ray.storage import Storage, open_storage

if TYPE_CHECKING:
    import pyarrow as pa

    from geco_ray.cells import Cell

SCHEMA = 1


class DamagedCell(GecoRayError):
    """A file of a finished cell is missing or differs from its checksum."""


@dataclass(frozen=True)
class Record:
    """The JSON record of one finished cell.

    Attributes:
        id: the cell's id. stage: its stage. params: its resolved values, upstream cells' included.
        upstream: ids of the cells it was computed from. rows: rows of its table.
        files: suffix (``parquet``, ``safetensors``) to size in bytes and SHA-256.
        info: what does not identify the cell: seconds, host, versions, time of day.
    """

    id: str
    stage: str
    params: dict[str, Any]
    upstream: tuple[str, ...]
    rows: int
    files: dict[str, dict[str, Any]]
    info: dict[str, Any] = field(default_factory=dict)
    schema: int = SCHEMA

    def to_json(self) -> bytes:
        return json.dumps(self.__dict__ | {"upstream": list(self.upstream)}, sort_keys=True, indent=1).encode()

    @staticmethod
    def from_json(data: bytes, where: str) -> Record:
        try:
            value = json.loads(data)
            record = Record(**(value | {"upstream": tuple(value["upstream"])}))
        except (ValueError, TypeError, KeyError) as error:
            raise DamagedCell(f"{where}: not a record of a cell ({error}).") from error
        if record.schema != SCHEMA:
            raise UserError(
                "the run folder was written by another version of geco_ray",
                where=where,
                found=f"schema {record.schema}",
                expected=f"schema {SCHEMA}",
                remedy="Use that version, or another --root",
            )
        return record


class Ledger:
    """All finished cells under one root. Opening it creates nothing; reading never writes."""

    def __init__(self, root: str | Path) -> None:
        self.storage: Storage = open_storage(root)
        self.root = self.storage.root

    # --- what is done ---

    def done(self, stage: str) -> dict[str, Record]:
        """Id to record for the finished cells of a stage whose files are there with the recorded sizes."""
        records, _ = self.scan(stage)
        return records

    def scan(self, stage: str) -> tuple[dict[str, Record], dict[str, str]]:
        """Finished cells, and the damaged ones (id to what is wrong), judged by record and file size alone."""
        folder = f"cells/{stage}"
        sizes = self.storage.names(folder)
        records: dict[str, Record] = {}
        damaged: dict[str, str] = {}
        for name in sorted(sizes):
            cell_id, _, suffix = name.rpartition(".")
            if suffix != "json":
                continue
            try:
                record = Record.from_json(self.storage.read(f"{folder}/{name}"), f"{self.root}/{folder}/{name}")
            except (DamagedCell, OSError) as error:
                damaged[cell_id] = str(error)
                continue
            wrong = [
                f"{cell_id}.{suffix}: {sizes.get(f'{cell_id}.{suffix}', 'no')} bytes, {entry['bytes']} recorded"
                for suffix, entry in record.files.items()
                if sizes.get(f"{cell_id}.{suffix}") != entry["bytes"]
            ]
            if wrong or record.id != cell_id:
                damaged[cell_id] = wrong[0] if wrong else f"{name}: holds the record of {record.id}"
            else:
                records[cell_id] = record
        return records, damaged

    def records(self, stage: str) -> list[Record]:
        """The finished cells of a stage, in the order of their ids."""
        return list(self.done(stage).values())

    def failures(self, stage: str) -> dict[str, dict[str, Any]]:
        """Id to the last failed attempt (error, traceback, host, attempts) of the stage's cells that are not done."""
        folder = f"failures/{stage}"
        names = self.storage.names(folder)
        found = {}
        for name in sorted(names):
            try:
                found[name.removesuffix(".json")] = json.loads(self.storage.read(f"{folder}/{name}"))
            except ValueError:
                found[name.removesuffix(".json")] = {"error": "the failure's own record is unreadable"}
        return found

    # --- reading ---

    def table(self, record: Record) -> pa.Table:
        """The rows of a finished cell.

        Raises:
            DamagedCell: the file is missing or differs from the record's SHA-256.
        """
        import pyarrow.parquet as pq

        return pq.read_table(io.BytesIO(self._verified(record, "parquet")))

    def blob(self, record: Record) -> bytes:
        """The weights of a finished cell, as safetensors bytes. Raises DamagedCell as :meth:`table` does."""
        return self._verified(record, "safetensors")

    def verify(self, record: Record) -> str | None:
        """Read every file of a cell; None if all are whole, else what is wrong."""
        try:
            for suffix in record.files:
                self._verified(record, suffix)
        except DamagedCell as error:
            return str(error)
        return None

    def _verified(self, record: Record, suffix: str) -> bytes:
        path = f"cells/{record.stage}/{record.id}.{suffix}"
        try:
            data = self.storage.read(path)
        except OSError as error:
            raise DamagedCell(f"{self.root}/{path}: cannot be read ({error}). Run the same command again.") from error
        expected = record.files.get(suffix, {}).get("sha256")
        actual = hashlib.sha256(data).hexdigest()
        if actual != expected:
            raise DamagedCell(
                f"{self.root}/{path}: damaged (found SHA-256 {actual}, expected {expected}). "
                "`geco-ray check --repair` sets it aside; then run the same command again."
            )
        return data

    # --- writing ---

    def put(
        self, cell: Cell, table: pa.Table, *, blob: bytes | None = None, info: Mapping[str, Any] | None = None
    ) -> Record:
        """Commit a finished cell. A cell that is already there is left as it is.

        Raises:
            StorageError: the disk is full or the folder cannot be written; nothing half-written stays.
        """
        base = f"cells/{cell.stage}/{cell.id}"
        existing = self.get(cell)
        if existing is not None:
            return existing
        files: dict[str, dict[str, Any]] = {}
        for suffix, data in (("safetensors", blob), ("parquet", _parquet_bytes(table))):
            if data is not None:
                self.storage.write(f"{base}.{suffix}", data)
                files[suffix] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        record = Record(
            id=cell.id,
            stage=cell.stage,
            params=cell.params(),
            upstream=tuple(parent.id for parent in cell.upstream()),
            rows=table.num_rows,
            files=files,
            info=dict(info or {}) | _provenance(),
        )
        self.storage.write(f"{base}.json", record.to_json())
        self.storage.remove(f"failures/{cell.stage}/{cell.id}.json")
        return record

    def get(self, cell: Cell) -> Record | None:
        """The record of ``cell``, or None if it is not done."""
        path = f"cells/{cell.stage}/{cell.id}.json"
        try:
            return Record.from_json(self.storage.read(path), f"{self.root}/{path}")
        except (OSError, DamagedCell):
            return None

    def require(self, cell: Cell) -> Record:
        """The record of a cell that another one is computed from.

        Raises:
            DamagedCell: it is not done, or its record is unreadable.
        """
        record = self.get(cell)
        if record is None:
            raise DamagedCell(f"{cell.title} ({cell.id}) is not in {self.root}. Run the same command again.")
        return record

    def fail(self, cell: Cell, error: BaseException) -> None:
        """Note a failed attempt; it is removed when the cell succeeds."""
        path = f"failures/{cell.stage}/{cell.id}.json"
        try:
            attempts = int(json.loads(self.storage.read(path))["attempts"])
        except (OSError, ValueError, KeyError):
            attempts = 0
        entry = {
            "id": cell.id,
            "stage": cell.stage,
            "params": cell.params(),
            "error": f"{type(error).__name__}: {error}",
            "traceback": "".join(traceback.format_exception(error)),
            "attempts": attempts + 1,
        } | _provenance()
        self.storage.write(path, json.dumps(entry, sort_keys=True, indent=1).encode())

    def quarantine(self, stage: str, cell_ids: Iterable[str]) -> None:
        """Set the files of damaged cells aside under ``quarantine/``, so that they are computed again."""
        present = self.storage.names(f"cells/{stage}")
        for cell_id in cell_ids:
            for suffix in ("json", "parquet", "safetensors"):  # the record first: without it the cell is not done
                name = f"{cell_id}.{suffix}"
                if name in present:
                    self.storage.move(f"cells/{stage}/{name}", f"quarantine/{stage}/{name}")


def _parquet_bytes(table: pa.Table) -> bytes:
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def _provenance() -> dict[str, Any]:
    return {
        "geco_ray": __version__,
        "python": platform.python_version(),
        "host": socket.gethostname(),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }
