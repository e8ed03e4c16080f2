"""The index saves reading records and never decides: whatever differs from what it saw is read again."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from geco_ray.cells import Cell
from geco_ray.errors import UserError
from geco_ray.experiments.cfe.cells import BaseCell, VariantCell
from geco_ray.ledger import Ledger, Record, compaction, segments
from geco_ray.ledger.index import IndexedRecords
from geco_ray.plan.remaining import make_plan

BASE = BaseCell("breast_cancer", "f" * 8, 2026, "paper")
CELLS: list[Cell] = [VariantCell(BASE, "seed", number) for number in range(12)]
OTHERS: list[Cell] = [VariantCell(BASE, "other", number) for number in range(5)]
TABLE = pa.table({"row": [0, 1]})


@pytest.fixture(autouse=True)
def _small_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few records are worth a segment, which holds few of them, and need not be old."""
    monkeypatch.setattr(compaction, "WORTH_INDEXING", 2)
    monkeypatch.setattr(compaction, "ROWS", 5)
    monkeypatch.setattr(compaction, "_SMALL_SEGMENTS", 2)
    monkeypatch.setattr(compaction, "_SETTLED_NS", -1_000_000_000)
    monkeypatch.setattr(segments, "_GROUP", 2)


def put_all(ledger: Ledger, cells: list[Cell]) -> None:
    for number, cell in enumerate(cells):
        ledger.put(cell, TABLE, blob=b"weights" if number % 3 == 0 else None)


@pytest.fixture(params=["flat", "fanned", "bucket"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """A dozen finished cells with an index, in each layout, and in a bucket (a folder that pyarrow reaches)."""
    if request.param == "bucket":
        from pyarrow import fs

        bucket = type("Bucket", (), {"from_uri": lambda uri: (fs.LocalFileSystem(), str(tmp_path / "run"))})
        monkeypatch.setattr("pyarrow.fs.FileSystem", bucket)
    ledger = Ledger("gs://bucket/run" if request.param == "bucket" else tmp_path / "run")
    ledger.fix_layout(10**6 if request.param == "fanned" else 1)
    put_all(ledger, CELLS)
    assert ledger.write_index("models") == 3
    return ledger


@pytest.fixture
def place(ledger: Ledger, tmp_path: Path) -> Callable[[Cell, str], Path]:
    """Where a file of a cell lies on the disk."""
    return lambda cell, suffix: tmp_path / "run" / ledger._path("models", f"{cell.id}.{suffix}")


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return tmp_path / "run" / "index" / "models"


@pytest.fixture
def reads(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The records that were read from their own files."""
    real, found = ledger.storage.read_many, []

    def read_many(paths: list[str]) -> Iterator[bytes | OSError]:
        found.extend(Path(path).stem for path in paths if path.startswith("cells/"))
        return real(paths)

    monkeypatch.setattr(ledger.storage, "read_many", read_many)
    return found


def plain(ledger: Ledger) -> tuple[dict[str, Record], dict[str, str]]:
    """What the ledger says without its index."""
    records, damaged = ledger.scan("models", indexed=False)
    return dict(records), damaged


def agrees(ledger: Ledger) -> bool:
    records, damaged = ledger.scan("models")
    return (dict(records), damaged) == plain(ledger)


def test_an_index_answers_for_every_record_and_none_is_read(ledger: Ledger, reads: list[str]) -> None:
    records, damaged = ledger.scan("models")
    assert isinstance(records, IndexedRecords)
    assert reads == []
    assert damaged == {}
    assert list(records) == sorted(cell.id for cell in CELLS)
    assert dict(records) == {cell.id: ledger.get(cell) for cell in CELLS}


def test_a_plan_decodes_no_record_of_what_is_done(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    def decode(*_: object) -> Record:
        raise AssertionError("a record was decoded")

    monkeypatch.setattr(Record, "from_json", decode)
    assert make_plan(CELLS, ledger).left == 0


def test_new_cells_are_read_beside_the_index_until_they_are_many(ledger: Ledger, reads: list[str]) -> None:
    put_all(ledger, OTHERS[:1])
    assert agrees(ledger)
    assert ledger.write_index("models") == 0
    put_all(ledger, OTHERS)
    assert ledger.write_index("models") >= 1
    reads.clear()
    assert len(ledger.done("models")) == 17
    assert reads == []


def test_a_changed_record_is_read_again_and_found_damaged(
    ledger: Ledger, place: Callable[[Cell, str], Path], reads: list[str]
) -> None:
    path = place(CELLS[0], "json")
    data = path.read_bytes()
    path.write_bytes(data.replace(b"2026", b"2027"))  # as many bytes
    os.utime(path, ns=(1, 1))
    records, damaged = ledger.scan("models")
    assert reads == [CELLS[0].id]
    assert list(damaged) == [CELLS[0].id]
    assert len(records) == 11
    assert agrees(ledger)


@pytest.mark.parametrize("suffix", ["json", "parquet", "safetensors"])
@pytest.mark.parametrize("harm", ["gone", "cut", "a folder"])
def test_harm_to_any_file_of_a_cell_is_seen_through_the_index(
    suffix: str, harm: str, ledger: Ledger, place: Callable[[Cell, str], Path]
) -> None:
    path = place(CELLS[0], suffix)
    data = path.read_bytes()
    path.unlink()
    if harm == "cut":
        path.write_bytes(data[:-1])
    elif harm == "a folder":
        path.mkdir()
    records = ledger.done("models")
    assert CELLS[0].id not in records
    assert len(records) == 11
    assert agrees(ledger)


def test_a_folder_whose_cells_are_all_gone_is_empty(ledger: Ledger) -> None:
    ledger.quarantine("models", [cell.id for cell in CELLS])
    assert ledger.scan("models") == ({}, {})


def test_a_cell_that_was_computed_again_has_one_row_and_it_is_the_new_one(ledger: Ledger, index: Path) -> None:
    ledger.quarantine("models", [cell.id for cell in CELLS[:4]])
    time.sleep(0.01)
    for cell in CELLS[:4]:
        ledger.put(cell, TABLE, info={"try": "second"})
    assert agrees(ledger)
    ledger.write_index("models")
    whole, broken = segments.read_segments(ledger.storage, "models")
    ids = [cell_id for segment in whole for cell_id in segment.ids]
    assert sorted(ids) == sorted(cell.id for cell in CELLS)
    assert broken == []
    assert dict(ledger.done("models"))[CELLS[0].id].info["try"] == "second"


def test_a_segment_that_was_cut_is_not_believed_and_is_written_again(
    ledger: Ledger, index: Path, reads: list[str]
) -> None:
    cut = sorted(index.iterdir())[0]
    cut.write_bytes(cut.read_bytes()[:-3])
    assert agrees(ledger)
    assert len(reads) > 12  # all for the comparison, and those of the cut segment
    ledger.write_index("models")
    reads.clear()
    assert len(ledger.done("models")) == 12
    assert reads == []


@pytest.mark.parametrize("content", [b"", b"PAR1", b"x" * 100])
def test_what_is_no_segment_is_left_aside_and_removed(content: bytes, ledger: Ledger, index: Path) -> None:
    (index / f"{'0' * 64}.parquet").write_bytes(content)
    assert agrees(ledger)
    ledger.write_index("models")
    assert not (index / f"{'0' * 64}.parquet").exists()


def test_segments_that_disagree_about_a_cell_are_not_believed(ledger: Ledger, reads: list[str]) -> None:
    row = segments.Row(CELLS[0].id, 5, "1", 5, segments.ABSENT, b"wrong")
    segments.write_segment(ledger.storage, "models", [row])
    assert ledger.done("models")[CELLS[0].id] == ledger.get(CELLS[0])
    assert reads == [CELLS[0].id]


def test_an_index_is_the_same_however_often_it_is_written(ledger: Ledger, index: Path) -> None:
    before = {path.name: path.read_bytes() for path in index.iterdir()}
    ledger.write_index("models", rebuild=True)
    assert {path.name: path.read_bytes() for path in index.iterdir()} == before


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("step", range(8))
def test_a_kill_between_any_two_steps_of_an_index_costs_nothing_but_time(
    step: int, ledger: Ledger, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_all(ledger, OTHERS)
    left = [step]

    def counted(real: Callable[..., None]) -> Callable[..., None]:
        def call(path: str, *rest: bytes) -> None:
            if path.startswith("index/"):
                if not left[0]:
                    raise Killed
                left[0] -= 1
            real(path, *rest)

        return call

    with monkeypatch.context() as patch:
        patch.setattr(ledger.storage, "write", counted(ledger.storage.write))
        patch.setattr(ledger.storage, "remove", counted(ledger.storage.remove))
        try:
            ledger.write_index("models", rebuild=True)
        except Killed:
            assert step < 7
    assert agrees(ledger)
    ledger.write_index("models")
    assert agrees(ledger)
    ids = [cell_id for segment in segments.read_segments(ledger.storage, "models")[0] for cell_id in segment.ids]
    assert len(ledger.done("models")) == 17 <= len(ids)


def test_a_record_that_may_still_change_unseen_has_no_row(
    ledger: Ledger, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "_SETTLED_NS", 60_000_000_000)
    assert ledger.write_index("models", rebuild=True) == 0
    assert agrees(ledger)


def test_small_segments_are_merged(ledger: Ledger, index: Path) -> None:
    for number in range(6):
        put_all(ledger, [VariantCell(BASE, f"family {number}", k) for k in range(3)])
        ledger.write_index("models")
        assert agrees(ledger)
    assert len(list(index.iterdir())) <= 10
    assert len(ledger.done("models")) == 30


def test_a_reader_that_lost_its_segment_reads_the_record_itself(ledger: Ledger, index: Path) -> None:
    records = ledger.done("models")
    for path in index.iterdir():
        path.unlink()
    assert records[CELLS[0].id] == ledger.get(CELLS[0])


# --- layouts ---


def test_the_layout_of_a_folder_is_fixed_when_it_is_made(tmp_path: Path) -> None:
    Ledger(tmp_path / "small").fix_layout(10)
    Ledger(tmp_path / "small").fix_layout(10**6)
    Ledger(tmp_path / "large").fix_layout(10**6)
    Ledger(tmp_path / "large").fix_layout(10)
    assert Ledger(tmp_path / "small").layout() == "flat"
    assert Ledger(tmp_path / "large").layout() == "fanned"


def test_an_old_folder_stays_flat_and_all_its_cells_are_read(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    put_all(ledger, CELLS)
    later = Ledger(tmp_path)
    later.fix_layout(10**6)
    later.put(OTHERS[0], TABLE)
    assert len(Ledger(tmp_path).done("models")) == 13
    assert (tmp_path / "cells" / "models" / f"{OTHERS[0].id}.json").is_file()


def test_a_fanned_folder_that_lost_its_layout_is_known_by_its_folders(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.fix_layout(10**6)
    put_all(ledger, CELLS)
    (tmp_path / "layout.json").unlink()
    assert len(Ledger(tmp_path).done("models")) == 12
    assert (tmp_path / "cells" / "models" / CELLS[0].id[:2] / f"{CELLS[0].id}.json").is_file()


@pytest.mark.parametrize("content", ["", "[]", '{"layout": 1}', '{"layout": "round"}', "[" * 5000])
def test_a_layout_that_cannot_be_read_is_told_and_nothing_is_computed_again(content: str, tmp_path: Path) -> None:
    (tmp_path / "layout.json").write_text(content)
    with pytest.raises(UserError, match="layout") as caught:
        Ledger(tmp_path).done("models")
    assert caught.value.remedy
