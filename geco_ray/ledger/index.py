"""The index of a stage: which cells of a listing are known without reading their records.

A row of a segment is trusted only while the listing shows the record and the cell's files as they were when the row was
written: the record by bytes and stamp (time of the last change, or the ETag), the others by bytes, as the ledger judges
them without an index. Whatever differs is read. So an index may be old, cut, doubled or lost, and costs time alone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, chain

from geco_ray.ledger.interface import Entry
from geco_ray.ledger.record import DamagedCell, Record
from geco_ray.ledger.segments import ABSENT, SIZES, Segment

_FLAGS = {"json": 1, **dict(zip(SIZES, (2, 4), strict=True))}


@dataclass
class Listing:
    """A stage's files beside its index.

    Attributes:
        segments, broken: as :func:`geco_ray.ledger.segments.read_segments` gives them.
        trusted: id to row, counted over all segments.
        names: sizes of the files of all other cells. stamps: name to stamp of their records.
    """

    segments: list[Segment]
    broken: list[str]
    trusted: dict[str, int] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    stamps: dict[str, int | str | None] = field(default_factory=dict)


class _Columns:
    """The rows of all segments, one after another."""

    def __init__(self, segments: list[Segment]) -> None:
        self.size = list(chain.from_iterable(segment.size for segment in segments))
        self.stamp = list(chain.from_iterable(segment.stamp for segment in segments))
        self.others = {s: list(chain.from_iterable(segment.others[s] for segment in segments)) for s in SIZES}

    def facts(self, row: int) -> tuple[int | str, ...]:
        return (self.size[row], self.stamp[row], *(sizes[row] for sizes in self.others.values()))

    def rows_by_id(self, segments: list[Segment]) -> dict[str, int]:
        """Id to row; an id of which segments say different things is left out."""
        rows: dict[str, int] = {}
        disputed: set[str] = set()
        start = 0
        for segment in segments:
            numbers = range(start, start + len(segment.ids))
            if rows.keys().isdisjoint(segment.ids):
                rows.update(zip(segment.ids, numbers, strict=True))
            else:
                for cell_id, row in zip(segment.ids, numbers, strict=True):
                    if self.facts(rows.setdefault(cell_id, row)) != self.facts(row):
                        disputed.add(cell_id)
            start += len(segment.ids)
        return {cell_id: row for cell_id, row in rows.items() if cell_id not in disputed} if disputed else rows


def compare_listing(entries: Iterable[Entry], segments: list[Segment], broken: list[str]) -> Listing:
    """Hold what lies in a stage's folder against the rows of its segments."""
    found, columns = Listing(segments, broken), _Columns(segments)
    rows = columns.rows_by_id(segments)
    seen = bytearray(len(columns.size))
    for name, size, stamp in entries:  # two million of them for a million cells: this loop is what it costs
        cell_id, _, suffix = name.partition(".")
        row = rows.get(cell_id)
        if row is not None:
            if suffix == "json":
                if columns.size[row] == size and columns.stamp[row] == str(stamp):
                    seen[row] |= 1
                    continue
            elif suffix in columns.others and columns.others[suffix][row] == size:
                seen[row] |= _FLAGS[suffix]
                continue
        found.names[name] = size
        if suffix == "json":
            found.stamps[name] = stamp
    parquet, safetensors = (columns.others[suffix] for suffix in SIZES)
    for cell_id, row in rows.items():
        expected = 1 | (2 if parquet[row] != ABSENT else 0) | (4 if safetensors[row] != ABSENT else 0)
        if seen[row] == expected:
            found.trusted[cell_id] = row
        elif seen[row]:
            _give_back(found, cell_id, seen[row], row, columns)
    return found


def _give_back(found: Listing, cell_id: str, seen: int, row: int, columns: _Columns) -> None:
    """The files that were as the row says, of a cell that is not as a whole: they belong to the listing too."""
    if seen & _FLAGS["json"]:
        found.names[f"{cell_id}.json"] = columns.size[row]
        found.stamps[f"{cell_id}.json"] = columns.stamp[row]
    for suffix in SIZES:
        if seen & _FLAGS[suffix]:
            found.names[f"{cell_id}.{suffix}"] = columns.others[suffix][row]


class IndexedRecords(Mapping[str, Record]):
    """Id to record, in the order of ids: of a million cells that nobody asks for, none is decoded."""

    def __init__(self, found: Listing, fresh: Mapping[str, Record], read: Callable[[str], bytes]) -> None:
        """Of a listing's trusted rows and of records that were read.

        Args:
            read: the bytes of a record by its id, if its segment is gone since then. Raises OSError.
        """
        self._rows, self._fresh, self._read = found.trusted, fresh, read
        self._segments = found.segments
        self._starts = list(accumulate((len(segment.ids) for segment in found.segments), initial=0))

    def __getitem__(self, cell_id: str) -> Record:
        if cell_id in self._fresh:
            return self._fresh[cell_id]
        row = self._rows[cell_id]
        number = bisect_right(self._starts, row) - 1
        segment = self._segments[number]
        try:
            data = segment.record(row - self._starts[number])
        except (OSError, ValueError):
            data = self._again(cell_id)
        return Record.from_json(data, f"{segment.path}, {cell_id}")

    def _again(self, cell_id: str) -> bytes:
        try:
            return self._read(cell_id)
        except OSError as error:
            raise DamagedCell(f"the record of {cell_id} went while the folder was read ({error})") from error

    def __contains__(self, cell_id: object) -> bool:
        return cell_id in self._rows or cell_id in self._fresh

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._rows) + len(self._fresh)

    @cached_property
    def _ids(self) -> list[str]:
        return sorted(chain(self._rows, self._fresh))
