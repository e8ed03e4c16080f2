"""Writing the index of a stage: by the one driver that holds the run folder, after a wave and when it is asked for.

New segments are written first, then those that they replace are removed. Killed in between, a run leaves rows twice, or
some of them; both are as good as the listing says they are, and the next time makes one of two.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import chain, islice

from geco_ray.ledger.index import Listing
from geco_ray.ledger.interface import Storage
from geco_ray.ledger.record import DamagedCell, Record, fault_of
from geco_ray.ledger.segments import ABSENT, ROWS, SIZES, Row, Segment, folder_of, write_segment

WORTH_INDEXING = 2_000  # records without a row, from which a segment is written: reading as many takes a second
_SMALL_SEGMENTS = 8  # of less than half a full one; more than so many are merged
_SETTLED_NS = 5_000_000_000  # a younger record may be written again and show the same time of change


def write_index(storage: Storage, stage: str, found: Listing, path_of: Callable[[str], str]) -> int:
    """Bring the index of a stage up to date with a listing, if enough cells have no row.

    Args:
        found: what lies in the stage's folder beside its present index. path_of: the path of a record by its id.

    Returns:
        How many segments were written.
    """
    youngest = time.time_ns() - _SETTLED_NS
    fresh = [name for name, stamp in found.stamps.items() if _settled(stamp, youngest)]
    replaced = {segment.name for segment in _to_replace(found, {name.removesuffix(".json") for name in fresh})}
    written: set[str] = set()
    if len(fresh) >= WORTH_INDEXING:
        rows = chain(_kept_rows(found, replaced), _new_rows(storage, stage, found, fresh, path_of))
        while portion := list(islice(rows, ROWS)):
            written.add(write_segment(storage, stage, portion))
    else:
        replaced = set()
    for name in (replaced | set(found.broken)) - written:
        storage.remove(f"{folder_of(stage)}/{name}")
    return len(written)


def _settled(stamp: int | str | None, youngest: int) -> bool:
    if stamp is None:
        return False
    return not str(stamp).isdigit() or int(stamp) < youngest  # an ETag is of the content


def _to_replace(found: Listing, fresh: set[str]) -> Iterator[Segment]:
    """Segments that tell of another state of cells that get a new row, and small ones if they are many."""
    small = [segment for segment in found.segments if len(segment.ids) < ROWS // 2]
    for segment in found.segments:
        if (segment in small and len(small) > _SMALL_SEGMENTS) or not fresh.isdisjoint(segment.ids):
            yield segment


def _kept_rows(found: Listing, replaced: set[str]) -> Iterator[Row]:
    """The trusted rows of segments that are about to go."""
    start = 0
    for segment in found.segments:
        if segment.name in replaced:
            for number, cell_id in enumerate(segment.ids):
                if found.trusted.get(cell_id) == start + number:
                    try:
                        yield segment.row(number)
                    except (OSError, ValueError):  # cut just now: its cells are read and indexed again
                        break
        start += len(segment.ids)


def _new_rows(
    storage: Storage, stage: str, found: Listing, names: list[str], path_of: Callable[[str], str]
) -> Iterator[Row]:
    """A row for each whole cell among the records of ``names``."""
    ids = [name.removesuffix(".json") for name in sorted(names)]
    for cell_id, data in zip(ids, storage.read_many([path_of(cell_id) for cell_id in ids]), strict=True):
        name = f"{cell_id}.json"
        if isinstance(data, OSError) or len(data) != found.names[name]:
            continue  # it went or changed since the folder was listed
        try:
            record = Record.from_json(data, name)
        except DamagedCell:
            continue
        if fault_of(record, stage, cell_id, found.names) is None and set(record.files) <= set(SIZES):
            parquet, safetensors = (int(record.files.get(s, {"bytes": ABSENT})["bytes"]) for s in SIZES)
            yield Row(cell_id, len(data), str(found.stamps[name]), parquet, safetensors, data)
