"""The ledger: what is on disk, and the only truth about what is done.

A finished cell is up to three files, written in this order, each whole or not at all::

    cells/<stage>/<id>.safetensors   weights, where the stage has any
    cells/<stage>/<id>.parquet       the cell's rows; its bytes depend on the cell alone (no time, no host)
    cells/<stage>/<id>.json          the record: what the cell is, size and SHA-256 of the files, when and where it ran

The record is the commit: without it the cell is not done, and whatever a killed run left is overwritten by the next.
The record's first line holds the SHA-256 of all that follows it, so that a changed bit is seen there as well.
A failed attempt leaves ``failures/<stage>/<id>.json``, which success removes. A run folder that was made for a great
many cells has their files in ``cells/<stage>/<first two digits of the id>/``. ``index/`` only saves reading records;
it may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import io
import json
import shlex
import traceback
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from geco_ray.ledger.compaction import write_index
from geco_ray.ledger.index import IndexedRecords, Listing, compare_listing
from geco_ray.ledger.layout import Layout, cell_folder, fix_layout, recorded_layout
from geco_ray.ledger.provenance import provenance
from geco_ray.ledger.record import DamagedCell, Record, fault_of
from geco_ray.ledger.segments import folder_of, read_segments
from geco_ray.ledger.storage import Storage, open_storage

if TYPE_CHECKING:
    import pyarrow as pa

    from geco_ray.cells import Cell


class Ledger:
    """All finished cells under one root. Opening it creates nothing; reading never writes."""

    def __init__(self, root: str | Path) -> None:
        self.storage: Storage = open_storage(root)
        self.root = self.storage.root
        self._layout: Layout | None = None

    # --- what is done ---

    def done(self, stage: str) -> Mapping[str, Record]:
        """Id to record for the finished cells of a stage whose files are there with the recorded sizes."""
        records, _ = self.scan(stage)
        return records

    def scan(self, stage: str, *, indexed: bool = True) -> tuple[Mapping[str, Record], dict[str, str]]:
        """Finished cells, and the damaged ones (id to what is wrong), judged by record and file size alone.

        Args:
            indexed: believe the index of records whose files show no change, instead of reading each.
        """
        found = self._listing(stage, indexed)
        records: dict[str, Record] = {}
        damaged: dict[str, str] = {}
        for cell_id, record in self._read_records(stage, found):
            if isinstance(record, Record):
                records[cell_id] = record
            else:
                damaged[cell_id] = str(record)
        if not found.trusted:
            return records, damaged
        read = self.storage.read
        return IndexedRecords(found, records, lambda cell_id: read(self._path(stage, f"{cell_id}.json"))), damaged

    def _read_records(self, stage: str, found: Listing) -> Iterator[tuple[str, Record | DamagedCell]]:
        """Each record of a listing that has no row to trust, or what is wrong with it or its files."""
        names, sizes, relisted = sorted(found.stamps), found.names, False
        paths = [self._path(stage, name) for name in names]
        for name, path, data in zip(names, paths, self.storage.read_many(paths), strict=True):
            cell_id = name.removesuffix(".json")
            if isinstance(data, FileNotFoundError):
                continue  # set aside since the folder was listed
            where = f"{self.root}/{path}"
            try:
                if isinstance(data, OSError):
                    raise DamagedCell(f"{where}: cannot be read ({data}).")
                record = Record.from_json(data, where)
                if not relisted and fault_of(record, stage, cell_id, sizes):
                    # Its files may have come while the folder was being listed; its record was the last of them.
                    sizes, relisted = self._listing(stage, indexed=False).names, True
                if fault := fault_of(record, stage, cell_id, sizes):
                    raise DamagedCell(f"{where}: {fault}.")
                yield cell_id, record
            except DamagedCell as error:
                yield cell_id, error

    def write_index(self, stage: str, *, rebuild: bool = False) -> int:
        """Index the records of a stage that have no row yet, if they are many; how many segments were written.

        Only the one driver that holds the run folder may do so.

        Args:
            rebuild: read all records, whatever the present index says of them.
        """
        found = self._listing(stage, indexed=not rebuild)
        if rebuild:
            found.broken.extend(self.storage.names(folder_of(stage)))
        return write_index(self.storage, stage, found, lambda cell_id: self._path(stage, f"{cell_id}.json"))

    def _listing(self, stage: str, indexed: bool) -> Listing:
        entries = self.storage.entries(f"cells/{stage}", deep=self.layout() == "fanned")
        return compare_listing(entries, *(read_segments(self.storage, stage) if indexed else ([], [])))

    def layout(self) -> Layout:
        """Where cells' files lie in this folder (see :mod:`geco_ray.ledger.layout`)."""
        if self._layout is None:
            self._layout = recorded_layout(self.storage)
        return self._layout or "flat"

    def fix_layout(self, most: int) -> None:
        """Record the layout, if it is not: a new folder is fanned out if the largest stage has that many cells."""
        self._layout = fix_layout(self.storage, most)

    def _path(self, stage: str, name: str) -> str:
        return f"{cell_folder(self.layout(), stage, name)}/{name}"

    def records(self, stage: str) -> list[Record]:
        """The finished cells of a stage, in the order of their ids."""
        return list(self.done(stage).values())

    def failures(self, stage: str) -> dict[str, dict[str, Any]]:
        """Id to the last failed attempt (error, traceback, host, attempts) of the stage's cells that are not done."""
        folder = f"failures/{stage}"
        names = sorted(name for name in self.storage.names(folder) if name.endswith(".json"))
        found = {}
        for name, data in zip(names, self.storage.read_many([f"{folder}/{name}" for name in names]), strict=True):
            if not isinstance(data, FileNotFoundError):  # it went when the cell succeeded a moment ago
                found[name.removesuffix(".json")] = _failure(data)
        return found

    # --- reading ---

    def table(self, record: Record) -> pa.Table:
        """The rows of a finished cell.

        Raises:
            DamagedCell: the file is missing or differs from the record's SHA-256.
        """
        import pyarrow.parquet as pq

        return pq.ParquetFile(io.BytesIO(self._verified(record, "parquet"))).read(use_threads=False)

    def blob(self, record: Record) -> bytes:
        """The weights of a finished cell, as safetensors bytes. Raises DamagedCell as :meth:`table` does."""
        return self._verified(record, "safetensors")

    def verify(self, record: Record) -> str | None:
        """Read every file of a cell; None if all are whole, else what is wrong."""
        try:
            for suffix in record.files:
                self._verified(record, suffix)
        except DamagedCell as error:
            return error.fault
        return None

    def repair_command(self) -> str:
        """The command that sets damaged cells of this run folder aside."""
        return shlex.join(["geco-ray", "check", "--repair", "--root", self.root])

    def _verified(self, record: Record, suffix: str) -> bytes:
        path = self._path(record.stage, f"{record.id}.{suffix}")
        try:
            data = self.storage.read(path)
        except OSError as error:
            raise self._damaged(record, f"{self.root}/{path}: cannot be read ({error})") from error
        expected = record.files.get(suffix, {}).get("sha256")
        actual = hashlib.sha256(data).hexdigest()
        if actual != expected:
            raise self._damaged(record, f"{self.root}/{path}: damaged (found SHA-256 {actual}, expected {expected})")
        return data

    def _damaged(self, record: Record, what: str) -> DamagedCell:
        advice = f"`{self.repair_command()}` sets it aside; then run the same command again."
        damaged = DamagedCell(f"{what}. {advice}", fault=f"{what}.")
        damaged.cell = (record.stage, record.id)
        return damaged

    # --- writing ---

    def put(
        self, cell: Cell, table: pa.Table, *, blob: bytes | None = None, info: Mapping[str, Any] | None = None
    ) -> Record:
        """Commit a finished cell. A cell that is already there is left as it is.

        Raises:
            StorageError: the disk is full or the folder cannot be written; nothing half-written stays.
        """
        blobs = {"safetensors": blob, "parquet": _parquet_bytes(table)}
        contents = {suffix: data for suffix, data in blobs.items() if data is not None}
        record = Record(
            id=cell.id,
            stage=cell.stage,
            params=cell.params(),
            upstream=tuple(parent.id for parent in cell.upstream()),
            rows=table.num_rows,
            files={
                suffix: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
                for suffix, data in contents.items()
            },
            info=dict(info or {}) | provenance(),
        )
        commit = record.to_json()  # before anything is written: a value that JSON can't hold must not get half-way
        folder = cell_folder(self.layout(), cell.stage, cell.id)
        # A worker that outlived its driver and its successor may finish one cell at once; the files of the one and the
        # record of the other must not meet.
        with self.storage.exclusive(folder):
            existing = self.get(cell)
            if existing is not None:
                return existing
            for suffix, data in contents.items():
                self.storage.write(f"{folder}/{cell.id}.{suffix}", data)
            self.storage.write(f"{folder}/{cell.id}.json", commit)
        self.storage.remove(f"failures/{cell.stage}/{cell.id}.json")
        return record

    def get(self, cell: Cell) -> Record | None:
        """The record of ``cell``, or None if it is not done (its record is missing or damaged)."""
        path = self._path(cell.stage, f"{cell.id}.json")
        try:
            record = Record.from_json(self.storage.read(path), f"{self.root}/{path}")
        except (OSError, DamagedCell):
            return None
        return record if (record.id, record.stage) == (cell.id, cell.stage) else None

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
            attempts = int(_failure(self.storage.read(path)).get("attempts", 0))
        except (OSError, ValueError, TypeError):
            attempts = 0
        entry = {
            "id": cell.id,
            "stage": cell.stage,
            "params": cell.params(),
            "error": f"{type(error).__name__}: {error}",
            "traceback": "".join(traceback.format_exception(error)),
            "attempts": attempts + 1,
        } | provenance()
        self.storage.write(path, json.dumps(entry, sort_keys=True, indent=1).encode())

    def quarantine(self, stage: str, cell_ids: Iterable[str]) -> None:
        """Set the files of damaged cells aside under ``quarantine/``, so that they are computed again."""
        for cell_id in cell_ids:
            for suffix in ("json", "parquet", "safetensors"):  # the record first: without it the cell is not done
                name = f"{cell_id}.{suffix}"
                self.storage.move(self._path(stage, name), f"quarantine/{stage}/{name}")


def _failure(data: bytes | OSError) -> dict[str, Any]:
    """A failure's own record; its loss is no reason to stop."""
    try:
        value = json.loads(data) if isinstance(data, bytes) else None
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) and "error" in value else {"error": "the failure's record is unreadable"}


def _parquet_bytes(table: pa.Table) -> bytes:
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    # In one chunk, or the bytes would tell in how many batches the rows were computed.
    pq.write_table(table.combine_chunks(), sink, compression="zstd")
    return sink.getvalue()
