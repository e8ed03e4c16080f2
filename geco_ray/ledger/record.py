"""The record of a finished cell: what the cell is, and size and checksum of its files and of itself."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from geco_ray.errors import GecoRayError, UserError

SCHEMA = 1


class DamagedCell(GecoRayError):
    """A file of a finished cell is missing or differs from its checksum.

    Attributes:
        cell: its stage and id, if known. fault: what is wrong, without what to do about it.
    """

    cell: tuple[str, str] | None = None

    def __init__(self, message: str, *, fault: str | None = None) -> None:
        super().__init__(message)
        self.fault = fault or message


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
        body = json.dumps(self.__dict__ | {"upstream": list(self.upstream)}, sort_keys=True, indent=1).encode()[1:]
        return _checksum_line(body) + body

    @staticmethod
    def from_json(data: bytes, where: str) -> Record:
        """Read a record back.

        Raises:
            DamagedCell: not a record, or not as it was written.
            UserError: a record of another version of geco_ray.
        """
        head, body = data[:_CHECKSUM_LENGTH], data[_CHECKSUM_LENGTH:]
        if head != _checksum_line(body):
            raise DamagedCell(f"{where}: not a record of a cell, or changed since it was written.")
        value = json.loads(data)
        if value.get("schema") != SCHEMA:
            raise UserError(
                "the run folder was written by another version of geco_ray",
                where=where,
                found=f"schema {value.get('schema')} of geco_ray {value.get('info', {}).get('geco_ray')}",
                expected=f"schema {SCHEMA}",
                remedy="Use that version, or another --root",
            )
        del value["checksum"]
        return Record(**(value | {"upstream": tuple(value["upstream"])}))


def _checksum_line(body: bytes) -> bytes:
    return b'{"checksum": "%s",' % hashlib.sha256(body).hexdigest().encode()


_CHECKSUM_LENGTH = len(_checksum_line(b""))


def fault_of(record: Record, stage: str, cell_id: str, sizes: Mapping[str, int]) -> str | None:
    """What is wrong with a record that is not of the cell it is named after, or whose files are not as recorded."""
    if (record.id, record.stage) != (cell_id, stage):
        return f"holds the record of {record.stage} {record.id}"
    for suffix, entry in record.files.items():
        size = sizes.get(f"{cell_id}.{suffix}")
        if size != entry["bytes"]:
            found = "is missing" if size is None else "is not a plain file" if size < 0 else f"has {size} bytes"
            return f"its {suffix} file {found}, and {entry['bytes']} bytes are recorded"
    return None
