"""Damage to any file of a finished cell is seen, set aside, computed again and never mixed into results."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from geco_ray.cells import Cell
from geco_ray.errors import StorageError
from geco_ray.experiments import base as work
from geco_ray.experiments.base import Result, WorkerContext
from geco_ray.experiments.cfe.cells import BaseCell, VariantCell
from geco_ray.experiments.worker import run_pack
from geco_ray.ledger import DamagedCell, Ledger
from geco_ray.plan.remaining import make_plan

BASE = BaseCell("breast_cancer", "f" * 8, 2026, "paper")
CELLS: list[Cell] = [BASE, VariantCell(BASE, "seed", 0), VariantCell(BASE, "seed", 1)]
VICTIM = CELLS[1]
SUFFIXES = ("json", "parquet", "safetensors")


def compute(cells: Sequence[Any], ledger: Ledger, context: WorkerContext) -> Iterator[tuple[Cell, Result]]:
    """A stage whose results are known from the cell."""
    for cell in cells:
        number = getattr(cell, "variant", -1)
        table = pa.table({"x": [float(number + n) for n in range(50)], "cell": [cell.id] * 50})
        yield cell, Result(table, f"weights of {cell.id}".encode() * 9, {"note": "computed"})


@pytest.fixture(autouse=True)
def fake_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "_load_work", lambda stage: None)
    monkeypatch.setattr(work, "_computations", {})
    work.computation("models", "base")(compute)
    work.computation("models", "variant")(compute)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder with three finished cells, to be copied."""
    root = tmp_path_factory.mktemp("finished") / "run"
    ledger = Ledger(root)
    for cell, result in compute(CELLS, ledger, WorkerContext(str(root), device="cpu")):
        ledger.put(cell, result.table, blob=result.blob, info=result.info)
    return root


@pytest.fixture
def root(finished: Path, tmp_path: Path) -> Path:
    shutil.copytree(finished, tmp_path / "run")
    return tmp_path / "run"


def contents(root: Path) -> dict[str, Any]:
    """Every file of the finished cells: bytes of tables and weights, records without when and where."""
    found: dict[str, Any] = {}
    for path in sorted((root / "cells").rglob("*")):
        if path.suffix == ".json":
            value = json.loads(path.read_bytes())
            found[path.name] = {key: item for key, item in value.items() if key not in ("info", "checksum")}
        elif path.is_file():
            found[path.name] = path.read_bytes()
    return found


def truncate(sixteenths: int) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size * sixteenths // 16])


def flip(share: float, bit: int) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[min(int(len(data) * share), len(data) - 1)] ^= 1 << bit
        path.write_bytes(data)

    return damage


def of_another_cell(path: Path) -> None:
    path.write_bytes((path.parent / f"{BASE.id}{path.suffix}").read_bytes())


def wrong_schema(path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"other": [1]}), path)


def folder_in_its_place(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "x").write_text("x")


DAMAGE: dict[str, Callable[[Path], None]] = {
    **{f"cut-to-{n}-16ths": truncate(n) for n in range(16)},
    **{f"bit-{bit}-at-{share}": flip(share, bit) for share in (0, 0.001, 0.1, 0.3, 0.5, 0.8, 1) for bit in (0, 5)},
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"\n"),
    "doubled": lambda path: path.write_bytes(path.read_bytes() * 2),
    "zeros": lambda path: path.write_bytes(b"\0" * path.stat().st_size),
    "foreign-text": lambda path: path.write_text("these are not the rows you are looking for"),
    "foreign-json": lambda path: path.write_text('{"id": "x", "files": null}'),
    "deep-json": lambda path: path.write_text("[" * 100_000),
    "crlf": lambda path: path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n") + b"\r\n"),
    "wrong-schema": wrong_schema,
    "another-cell": of_another_cell,
    "gone": lambda path: path.unlink(),
}
CASES = [(suffix, name) for suffix in SUFFIXES for name in DAMAGE]


def seen(ledger: Ledger) -> dict[str, str]:
    """Id to what is wrong, as `geco-ray check` finds it."""
    records, damaged = ledger.scan("models")
    problems = dict(damaged)
    for record in records.values():
        problem = ledger.verify(record)
        if problem is not None:
            problems[record.id] = problem
    return problems


@pytest.mark.parametrize(("suffix", "name"), CASES, ids=[f"{suffix}-{name}" for suffix, name in CASES])
def test_damage_is_seen_named_set_aside_and_computed_again(suffix: str, name: str, root: Path) -> None:
    before = contents(root)
    path = root / "cells" / "models" / f"{VICTIM.id}.{suffix}"
    DAMAGE[name](path)
    ledger = Ledger(root)
    problems = seen(ledger)
    if (suffix, name) == ("json", "gone"):  # without a record there is no finished cell, and so no damaged one
        assert problems == {}
        assert {cell.id for cell in make_plan(CELLS, ledger, 25).stages[0].left} == {VICTIM.id}
    else:
        assert set(problems) == {VICTIM.id}
        assert str(root) in problems[VICTIM.id]
        assert VICTIM.id in problems[VICTIM.id]
        wreck = path.read_bytes() if path.exists() else None
        ledger.quarantine("models", problems)
        aside = root / "quarantine" / "models" / path.name
        assert (aside.read_bytes() if aside.exists() else None) == wreck
    outcomes = run_pack(CELLS[1:], WorkerContext(str(root), device="cpu"))
    assert [(outcome.cell_id, outcome.error) for outcome in outcomes] == [(VICTIM.id, None)]
    assert seen(ledger) == {}
    assert contents(root) == before


def test_the_plan_tells_damaged_from_failed_from_missing(root: Path) -> None:
    (root / "cells" / "models" / f"{VICTIM.id}.parquet").write_bytes(b"")
    failed, missing = VariantCell(BASE, "seed", 7), VariantCell(BASE, "seed", 8)
    ledger = Ledger(root)
    ledger.fail(failed, ValueError("x"))
    plan = make_plan([*CELLS, failed, missing], ledger, 25)
    assert plan.stages[0].reasons == {VICTIM.id: "damaged", failed.id: "failed before", missing.id: "not started"}
    assert plan.damaged() == {"models": [VICTIM.id]}
    assert plan.stages[0].row()["why"] == "1 damaged, 1 failed before, 1 not started"


@pytest.mark.parametrize("suffix", ["parquet", "safetensors"])
def test_damaged_rows_are_never_read(suffix: str, root: Path) -> None:
    ledger = Ledger(root)
    record = ledger.done("models")[VICTIM.id]
    flip(0.5, 3)(root / "cells" / "models" / f"{VICTIM.id}.{suffix}")
    with pytest.raises(DamagedCell, match=rf"found SHA-256 .* expected .*check --repair --root {root}`") as damaged:
        ledger.table(record) if suffix == "parquet" else ledger.blob(record)
    assert damaged.value.cell == ("models", VICTIM.id)
    assert "check" not in str(ledger.verify(record))  # the advice is given once, by who lists the damaged cells
    (root / "cells" / "models" / f"{VICTIM.id}.{suffix}").unlink()  # since the folder was listed
    with pytest.raises(DamagedCell, match="cannot be read") as gone:
        ledger.table(record) if suffix == "parquet" else ledger.blob(record)
    assert gone.value.cell == ("models", VICTIM.id)


def _replace(make: Callable[[Path], None]) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        path.unlink()
        make(path)

    return damage


NO_FILES: dict[str, Callable[[Path], None]] = {
    "folder": folder_in_its_place,
    "looping-link": _replace(lambda path: path.symlink_to(path.name)),
    "dangling-link": _replace(lambda path: path.symlink_to("nowhere")),
    "pipe": _replace(lambda path: os.mkfifo(path)),
    "device": _replace(lambda path: path.symlink_to("/dev/zero")),
}


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("kind", NO_FILES)
def test_what_stands_in_the_place_of_a_file_is_that_cells_damage_and_is_set_aside(
    kind: str, suffix: str, root: Path
) -> None:
    before, path = contents(root), root / "cells" / "models" / f"{VICTIM.id}.{suffix}"
    NO_FILES[kind](path)
    ledger = Ledger(root)
    if (kind, suffix) != ("dangling-link", "json"):  # it reads as a record that is not there
        assert set(seen(ledger)) == {VICTIM.id}
        assert set(make_plan(CELLS, ledger, 25).damaged()["models"]) == {VICTIM.id}
    ledger.quarantine("models", [VICTIM.id])
    assert os.path.lexists(root / "quarantine" / "models" / path.name)
    run_pack([VICTIM], WorkerContext(str(root), device="cpu"))
    assert seen(ledger) == {}
    assert contents(root) == before


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_folder_that_no_record_tells_of_makes_room_for_the_cell(suffix: str, root: Path) -> None:
    before = contents(root)
    for path in (root / "cells" / "models").glob(f"{VICTIM.id}.*"):
        path.unlink()
    (root / "cells" / "models" / f"{VICTIM.id}.{suffix}").mkdir()
    (root / "failures" / "models" / f"{VICTIM.id}.json").mkdir(parents=True)
    run_pack([VICTIM], WorkerContext(str(root), device="cpu"))
    assert contents(root) == before
    assert (root / "quarantine" / "models" / f"{VICTIM.id}.{suffix}").is_dir()
    assert Ledger(root).failures("models") == {}


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_entry_that_the_disk_cannot_read_is_that_cells_damage(
    suffix: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open

    def broken(path: Any, *rest: Any, **more: Any) -> int:
        if str(path).endswith(f"models/{VICTIM.id}.{suffix}"):
            raise OSError(errno.EIO, "Input/output error", str(path))
        return real(path, *rest, **more)

    monkeypatch.setattr("os.open", broken)
    assert set(seen(Ledger(root))) == {VICTIM.id}
    assert len(Ledger(root).done("models")) == len(CELLS) - (suffix == "json")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_that_may_not_be_read_is_damaged(suffix: str, root: Path) -> None:
    (root / "cells" / "models" / f"{VICTIM.id}.{suffix}").chmod(0)
    assert set(seen(Ledger(root))) == {VICTIM.id}


def test_a_record_that_may_not_be_read_is_damaged(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger(root)
    real = ledger.storage.read

    def read(path: str) -> bytes:
        if path.endswith(f"{VICTIM.id}.json"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(ledger.storage, "read", read)
    assert set(seen(ledger)) == {VICTIM.id}


@pytest.mark.parametrize(
    "name", ["notes.txt", "README", ".DS_Store", "x.parquet", f"{VICTIM.id}.json.bak", "a.json~", ".x.json.h.1.2.tmp"]
)
def test_strange_files_beside_the_cells_hurt_nobody(name: str, root: Path) -> None:
    (root / "cells" / "models" / name).write_bytes(b"something else")
    assert seen(Ledger(root)) == {}
    assert len(Ledger(root).records("models")) == 3


def test_a_strange_record_is_told_and_set_aside_by_its_name(root: Path) -> None:
    (root / "cells" / "models" / "notes.json").write_text("{}")
    ledger = Ledger(root)
    assert set(seen(ledger)) == {"notes"}
    assert make_plan(CELLS, ledger, 25).left == 0
    ledger.quarantine("models", seen(ledger))
    assert (root / "quarantine" / "models" / "notes.json").is_file()


# --- disks that refuse ---


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB, where we may mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)]
    try:
        mounted = subprocess.run(mount, capture_output=True).returncode == 0
    except OSError:
        mounted = False
    if not mounted:
        pytest.skip("no right to mount a small file system")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_ends_the_run_and_keeps_what_is_finished(small_disk: Path) -> None:
    cells: list[Cell] = [VariantCell(BASE, "seed", number) for number in range(200)]
    root = str(small_disk / "run")
    with pytest.raises(StorageError, match=f"{root}.*No space left.*finished cells are kept"):
        run_pack(cells, WorkerContext(root, device="cpu"))
    ledger = Ledger(root)
    done = ledger.done("models")
    assert 3 < len(done) < 200
    assert seen(ledger) == {}
    assert not [path for path in small_disk.rglob("*") if path.name.startswith(".")]
    subprocess.run(["mount", "-o", "remount,size=16m", str(small_disk)], check=True)
    outcomes = run_pack(cells, WorkerContext(root, device="cpu"))
    assert len(outcomes) == 200 - len(done)
    assert seen(ledger) == {}
    assert len(ledger.done("models")) == 200


def test_a_read_only_disk_can_be_read_and_says_that_it_cannot_be_written(small_disk: Path) -> None:
    root = str(small_disk / "run")
    run_pack([BASE], WorkerContext(root, device="cpu"))
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    assert len(Ledger(root).done("models")) == 1
    with pytest.raises(StorageError, match=r"Read-only.*Make the folder writable"):
        run_pack([VICTIM], WorkerContext(root, device="cpu"))


# --- computations that misbehave ---


def use(function: Any) -> None:
    work.computation("models", "variant")(function)


VARIANTS: list[Cell] = [VariantCell(BASE, "seed", number) for number in range(6)]


def test_one_bad_cell_of_a_pack_fails_alone(tmp_path: Path) -> None:
    def bad(cells: Sequence[Any], ledger: Ledger, context: WorkerContext) -> Iterator[tuple[Cell, Result]]:
        for cell, result in compute(cells, ledger, context):
            if cell.variant == 2:  # type: ignore[attr-defined]
                raise ValueError("no variant two")
            yield cell, result

    use(bad)
    outcomes = run_pack(VARIANTS, WorkerContext(str(tmp_path), device="cpu"))
    assert {outcome.cell_id: outcome.error for outcome in outcomes} == {
        cell.id: "ValueError: no variant two" if cell is VARIANTS[2] else None for cell in VARIANTS
    }
    assert len(outcomes) == 6
    ledger = Ledger(tmp_path)
    assert set(ledger.failures("models")) == {VARIANTS[2].id}
    assert len(ledger.done("models")) == 5
    use(compute)
    assert [outcome.error for outcome in run_pack(VARIANTS, WorkerContext(str(tmp_path), device="cpu"))] == [None]
    assert ledger.failures("models") == {}


def _nothing(cells: Sequence[Any], *_: Any) -> Iterator[tuple[Cell, Result]]:
    yield from ()


def _another(cells: Sequence[Any], ledger: Ledger, context: WorkerContext) -> Iterator[tuple[Cell, Result]]:
    yield from compute([BASE], ledger, context)


def _no_table(cells: Sequence[Any], *_: Any) -> Iterator[tuple[Cell, Any]]:
    for cell in cells:
        yield cell, Result(None)  # type: ignore[arg-type]


def _bad_note(cells: Sequence[Any], *_: Any) -> Iterator[tuple[Cell, Result]]:
    for cell in cells:
        yield cell, Result(pa.table({"x": [1]}), None, {"thing": object()})


def _at_once(cells: Sequence[Any], *_: Any) -> Iterator[tuple[Cell, Result]]:
    raise MemoryError("too large")


@pytest.mark.parametrize("function", [_nothing, _another, _no_table, _bad_note, _at_once])
def test_a_computation_that_does_not_keep_its_word_fails_its_cells(function: Any, tmp_path: Path) -> None:
    use(function)
    outcomes = run_pack(VARIANTS[:3], WorkerContext(str(tmp_path), device="cpu"))
    assert sorted(outcome.cell_id for outcome in outcomes) == sorted(cell.id for cell in VARIANTS[:3])
    assert all(outcome.error for outcome in outcomes)
    assert Ledger(tmp_path).scan("models") == ({}, {})
    assert len(Ledger(tmp_path).failures("models")) == 3


def test_a_storage_error_within_a_pack_is_no_failure_of_a_cell(tmp_path: Path) -> None:
    def full(cells: Sequence[Any], *_: Any) -> Iterator[tuple[Cell, Result]]:
        raise StorageError("full")

    use(full)
    with pytest.raises(StorageError):
        run_pack(VARIANTS, WorkerContext(str(tmp_path), device="cpu"))
    assert Ledger(tmp_path).failures("models") == {}
