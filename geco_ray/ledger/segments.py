"""Segments of the index: the records of many finished cells of one stage, as one Parquet file.

A segment is named after the SHA-256 of its bytes (``index/<stage>/<digest>.parquet``), so that one which was cut or
changed is seen and not believed. A row holds a record's bytes, and what a listing showed of the cell's files when the
record was read; ``index.py`` says when a row is trusted.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from geco_ray.ledger.interface import Storage

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

ROWS = 100_000  # of a segment at most: some tens of megabytes
_GROUP = 5_000  # rows that are decoded together when one record is looked up
SIZES = ("parquet", "safetensors")  # suffixes of a cell's files besides its record
ABSENT = -2  # no such file; what is there and is no file has the size -1


class Row(NamedTuple):
    """One record: id, bytes and stamp of its file, bytes of the cell's other files (-2: none), its content."""

    id: str
    size: int
    stamp: str
    parquet: int
    safetensors: int
    record: bytes


def folder_of(stage: str) -> str:
    """The folder of a stage's segments."""
    return f"index/{stage}"


def write_segment(storage: Storage, stage: str, rows: Sequence[Row]) -> str:
    """Write one segment; its file's name. The rows are put in the order of their ids."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    ordered = sorted(rows)
    types = (pa.string(), pa.int64(), pa.string(), pa.int64(), pa.int64(), pa.large_binary())
    columns = {
        name: pa.array([row[at] for row in ordered], type=kind)
        for at, (name, kind) in enumerate(zip(Row._fields, types, strict=True))
    }
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink, compression="zstd", use_dictionary=False, row_group_size=_GROUP)
    data = sink.getvalue()
    name = f"{hashlib.sha256(data).hexdigest()}.parquet"
    storage.write(f"{folder_of(stage)}/{name}", data)
    return name


class Segment:
    """A whole segment: the columns that a listing is compared with, and its records when they are asked for."""

    def __init__(self, storage: Storage, stage: str, name: str) -> None:
        """Read it.

        Raises:
            OSError: it is gone, or cannot be read. ValueError: it is not as it was written.
        """
        self.name = name
        self._storage, self._path = storage, f"{folder_of(stage)}/{name}"
        self.path = f"{storage.root}/{self._path}"
        table = self._open().read(columns=list(Row._fields[:-1]), use_threads=False)
        self.ids: list[str] = table.column("id").to_pylist()
        self.size: list[int] = table.column("size").to_pylist()
        self.stamp: list[str] = table.column("stamp").to_pylist()
        self.others: dict[str, list[int]] = {suffix: table.column(suffix).to_pylist() for suffix in SIZES}
        self._file: pq.ParquetFile | None = None
        self._group: tuple[int, pa.ChunkedArray] | None = None

    def record(self, row: int) -> bytes:
        """The content of one record. Raises as the constructor does, if the segment is gone or changed since then."""
        if self._file is None:
            self._file = self._open()
        number = row // _GROUP
        if self._group is None or self._group[0] != number:  # rows are asked for in order: one group is kept
            table = self._file.read_row_group(number, columns=["record"], use_threads=False)
            self._group = number, table.column("record")
        found: bytes = self._group[1][row % _GROUP].as_py()
        return found

    def row(self, number: int) -> Row:
        """All of one row, to be written again in another segment."""
        parquet, safetensors = (self.others[suffix][number] for suffix in SIZES)
        content = self.record(number)
        return Row(self.ids[number], self.size[number], self.stamp[number], parquet, safetensors, content)

    def _open(self) -> pq.ParquetFile:
        import pyarrow.parquet as pq

        data = self._storage.read(self._path)
        if f"{hashlib.sha256(data).hexdigest()}.parquet" != self.name:
            raise ValueError(f"{self._path}: not as it was written")
        return pq.ParquetFile(io.BytesIO(data))


def read_segments(storage: Storage, stage: str) -> tuple[list[Segment], list[str]]:
    """The whole segments of a stage, and the names of files that are none and may go."""
    for _ in range(3):  # a run that merges segments may take one away after we listed it
        segments, broken = [], []
        try:
            for name in sorted(storage.names(folder_of(stage))):
                try:
                    segments.append(Segment(storage, stage, name))
                except FileNotFoundError:
                    raise
                except (OSError, ValueError, KeyError):
                    broken.append(name)
        except FileNotFoundError:
            continue
        return segments, broken
    return [], []
