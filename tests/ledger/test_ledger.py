"""The ledger: a cell is done when its record is there, its bytes depend on it alone, and nothing overwrites it."""

from __future__ import annotations

import json
import multiprocessing
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from geco_ray.cells import Cell
from geco_ray.errors import StorageError, UserError
from geco_ray.experiments.cfe.cells import BaseCell, VariantCell
from geco_ray.ledger.interface import Entry
from geco_ray.ledger.ledger import DamagedCell, Ledger, Record

BASE = BaseCell("breast_cancer", "f" * 8, 2026, "paper")
TABLE = pa.table({"row": [0, 1, 2], "value": [0.5, None, 2.0], "words": [["a"], [], ["b", "c"]]})


@pytest.fixture(params=["folder", "bucket"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "run" if request.param == "folder" else "mock:///bucket/run")


@pytest.fixture
def local(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "run")


def files(ledger: Ledger) -> dict[str, bytes]:
    root = Path(ledger.root)
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def test_an_empty_ledger_is_empty_and_stays_unwritten(ledger: Ledger) -> None:
    assert ledger.records("train") == []
    assert ledger.done("train") == {}
    assert ledger.scan("train") == ({}, {})
    assert ledger.failures("train") == {}
    assert ledger.get(BASE) is None
    assert not Path(ledger.root).exists()


def test_a_cell_comes_back_as_it_was_put(ledger: Ledger) -> None:
    record = ledger.put(BASE, TABLE, blob=b"weights", info={"seconds": 1.5})
    assert ledger.get(BASE) == record
    assert ledger.records("models") == [record]
    assert ledger.done("models") == {BASE.id: record}
    assert ledger.table(record).equals(TABLE)
    assert ledger.blob(record) == b"weights"
    assert ledger.verify(record) is None
    assert (record.id, record.stage, record.rows, record.upstream) == (BASE.id, "models", 3, ())
    assert record.params == BASE.params()
    assert record.info["seconds"] == 1.5
    assert {"geco_ray", "python", "host", "finished"} < set(record.info)


def test_upstream_ids_and_other_stages_stay_apart(ledger: Ledger) -> None:
    variant = VariantCell(BASE, "seed", 3)
    record = ledger.put(variant, TABLE)
    assert record.upstream == (BASE.id,)
    assert ledger.records("train") == []
    assert list(record.files) == ["parquet"]
    with pytest.raises(DamagedCell):
        ledger.blob(record)


def test_records_come_in_the_order_of_their_ids(ledger: Ledger) -> None:
    for number in range(20):
        ledger.put(VariantCell(BASE, "seed", number), TABLE)
    ids = [record.id for record in ledger.records("models")]
    assert ids == sorted(ids)
    assert len(ids) == 20


@pytest.mark.parametrize("rows", [0, 1, 5000])
def test_tables_of_any_length(local: Ledger, rows: int) -> None:
    table = pa.table({"x": pa.array([float(n) for n in range(rows)]), "why": pa.nulls(rows, pa.string())})
    record = local.put(BASE, table)
    assert record.rows == rows
    assert local.table(record).equals(table)


# --- the same bytes, always ---


def test_the_files_are_byte_for_byte_the_same_whenever_and_however_they_are_made(tmp_path: Path) -> None:
    whole = pa.table({"name": ["a", "b", "a", "c"] * 50, "value": [0.1, 0.2, None, 0.4] * 50})
    pieces = pa.concat_tables([whole.slice(start, 7) for start in range(0, 200, 7)])
    assert pieces.column("value").num_chunks > 20
    made = []
    for number, table in enumerate([whole, pieces, whole.slice(0)]):
        ledger = Ledger(tmp_path / str(number))
        ledger.put(BASE, table, blob=b"w", info={"seconds": number})
        made.append({name: data for name, data in files(ledger).items() if not name.endswith(".json")})
    assert made[0] == made[1] == made[2]


def test_a_finished_cell_is_never_changed(local: Ledger) -> None:
    first = local.put(BASE, TABLE, blob=b"first")
    before = files(local)
    assert local.put(BASE, TABLE.slice(0, 1), blob=b"second", info={"seconds": 9}) == first
    assert files(local) == before


def test_reading_writes_nothing(local: Ledger) -> None:
    record = local.put(BASE, TABLE)
    stamps = {path: path.stat().st_mtime_ns for path in Path(local.root).rglob("*")}
    local.scan("models"), local.table(record), local.verify(record), local.failures("models"), local.get(BASE)
    assert {path: path.stat().st_mtime_ns for path in Path(local.root).rglob("*")} == stamps


def test_the_record_is_json_for_other_tools(local: Ledger) -> None:
    record = local.put(BASE, TABLE)
    value = json.loads((Path(local.root) / "cells" / "models" / f"{BASE.id}.json").read_text())
    assert value["params"]["dataset"] == "breast_cancer"
    assert value["files"] == record.files
    assert re.fullmatch("[0-9a-f]{64}", value["checksum"])


def test_parquet_is_readable_without_us(local: Ledger) -> None:
    import pyarrow.parquet as pq

    local.put(BASE, TABLE)
    assert pq.read_table(Path(local.root) / "cells" / "models" / f"{BASE.id}.parquet").equals(TABLE)


# --- the record is the commit ---


class Crash(BaseException):
    """What a killed process looks like from inside."""


@pytest.mark.parametrize("step", [0, 1, 2])
@pytest.mark.parametrize("fault", [Crash(), StorageError("disk full")], ids=["crash", "storage"])
def test_a_crash_before_the_record_leaves_the_cell_undone_and_the_next_put_whole(
    step: int, fault: BaseException, local: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = local.storage.write, []

    def write(path: str, data: bytes) -> None:
        if len(calls) == step:
            raise fault
        calls.append(path)
        real(path, data)

    with monkeypatch.context() as patch:
        patch.setattr(local.storage, "write", write)
        with pytest.raises(type(fault)):
            local.put(BASE, TABLE, blob=b"weights")
    assert [path.rpartition(".")[2] for path in calls] == ["safetensors", "parquet", "json"][:step]
    assert local.scan("models") == ({}, {})
    assert local.get(BASE) is None
    record = local.put(BASE, TABLE, blob=b"weights")
    assert local.done("models") == {BASE.id: record}
    assert local.verify(record) is None


def test_leftovers_of_another_computation_are_overwritten(local: Ledger) -> None:
    local.storage.write(f"cells/models/{BASE.id}.parquet", b"half of something")
    local.storage.write(f"cells/models/{BASE.id}.safetensors", b"old")
    record = local.put(BASE, TABLE, blob=b"new")
    assert local.verify(record) is None
    assert local.blob(record) == b"new"


def test_what_json_cannot_hold_fails_before_anything_is_written(local: Ledger) -> None:
    with pytest.raises(TypeError):
        local.put(BASE, TABLE, info={"device": object()})
    assert files(local) == {}


# --- failures ---


def test_a_failure_is_noted_counted_and_removed_by_success(ledger: Ledger) -> None:
    for attempt in (1, 2):
        try:
            raise ValueError("no gradient: \ud800 é")
        except ValueError as error:
            ledger.fail(BASE, error)
        (entry,) = ledger.failures("models").values()
        assert entry["attempts"] == attempt
    assert entry["error"].startswith("ValueError: no gradient")
    assert "raise ValueError" in entry["traceback"]
    assert entry["params"] == BASE.params()
    assert ledger.get(BASE) is None
    ledger.put(BASE, TABLE)
    assert ledger.failures("models") == {}


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b"{}", b"\xff", b"[" * 10**5, b'{"attempts": "x"}'])
def test_a_broken_note_of_a_failure_stops_nothing(local: Ledger, data: bytes) -> None:
    local.storage.write(f"failures/models/{BASE.id}.json", data)
    assert "unreadable" in local.failures("models")[BASE.id]["error"]
    local.fail(BASE, ValueError("again"))
    assert local.failures("models")[BASE.id]["error"] == "ValueError: again"


def test_a_failure_that_goes_while_one_looks_is_no_failure(local: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    local.fail(BASE, ValueError("x"))
    monkeypatch.setattr(local.storage, "read", lambda path: Path("/nonexistent/at/all").read_bytes())
    assert local.failures("models") == {}
    assert local.scan("models") == ({}, {})


# --- other versions and places ---


def test_a_run_folder_of_another_version_is_refused_by_name(local: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    record = local.put(BASE, TABLE)
    path = f"cells/models/{BASE.id}.json"
    newer = Record(**(record.__dict__ | {"schema": 99, "info": {"geco_ray": "9.9"}}))
    local.storage.write(path, newer.to_json())
    before = files(local)
    for attempt in (lambda: local.scan("models"), lambda: local.get(BASE)):
        with pytest.raises(UserError, match=r"schema 99 of geco_ray 9.9.*another --root"):
            attempt()
    assert files(local) == before


def test_an_unreadable_disk_is_an_error_and_not_an_empty_ledger(local: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    local.put(BASE, TABLE)

    def fail(*_: Any, **__: Any) -> bytes:
        raise StorageError("the disk does not answer")

    monkeypatch.setattr(local.storage, "read", fail)
    with pytest.raises(StorageError):
        local.scan("models")
    with pytest.raises(StorageError):
        local.get(BASE)


@pytest.mark.parametrize("name", ["a b", "ünï—code", "new\nline"])
def test_odd_roots_hold_a_whole_life(name: str, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / name)
    record = ledger.put(BASE, TABLE, blob=b"w")
    ledger.fail(VariantCell(BASE, "seed", 0), ValueError("x"))
    assert Ledger(tmp_path / name).done("models") == {BASE.id: record}
    ledger.quarantine("models", [BASE.id])
    assert ledger.done("models") == {}


def test_another_working_folder_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    ledger = Ledger("runs")
    monkeypatch.chdir(tmp_path / "other")
    ledger.put(BASE, TABLE)
    assert (tmp_path / "runs" / "cells" / "models" / f"{BASE.id}.json").is_file()


# --- two at once ---


def test_a_cell_committed_while_the_folder_is_listed_is_not_taken_for_damaged(
    local: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = local.put(BASE, TABLE)
    real, calls = local.storage.entries, []

    def entries(folder: str, *, deep: bool = False) -> Iterator[Entry]:
        calls.append(folder)
        for entry in real(folder, deep=deep):
            if len(calls) > 1 or not entry.name.endswith(".parquet"):
                yield entry  # the folder was read up to here when the table came, and on when the record did

    monkeypatch.setattr(local.storage, "entries", entries)
    assert local.scan("models") == ({BASE.id: record}, {})


def _race(root: str, mark: float, start: Any, cells: list[Cell]) -> None:
    ledger = Ledger(root)
    start.wait()
    for cell in cells:
        ledger.put(cell, pa.table({"x": [mark] * 100}), blob=str(mark).encode(), info={"mark": mark})


def test_processes_that_finish_one_cell_at_once_leave_one_whole_cell(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    cells: list[Cell] = [VariantCell(BASE, "seed", number) for number in range(30)]
    start = context.Barrier(4)
    workers = [context.Process(target=_race, args=(str(tmp_path), float(n), start, cells)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    ledger = Ledger(tmp_path)
    records, damaged = ledger.scan("models")
    assert len(records) == 30
    assert damaged == {}
    for record in records.values():  # the table, the weights and the record are of one and the same process
        mark = record.info["mark"]
        assert ledger.table(record).column("x").to_pylist() == [mark] * 100
        assert ledger.blob(record) == str(mark).encode()
    assert not [path for path in tmp_path.rglob("*") if path.name.startswith(".")]


def test_importing_the_ledger_imports_neither_torch_nor_ray(assert_imports_nothing: Callable[..., str]) -> None:
    assert_imports_nothing("import geco_ray.ledger, geco_ray.plan.remaining", ["torch", "ray"])
