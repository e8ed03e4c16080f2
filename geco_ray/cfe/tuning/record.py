"""What tuning selected, kept: the record that the package carries for its four tables, and a table's own.

An entry belongs to one method, protocol, way of seeding and data set, and holds what it hangs on: the fingerprint of
the data, the validation rows that were asked, the base model's probabilities there, every candidate's score, versions
and kernels. A table's own record, ``NAME.tuned.json``, lies in the folder of the card (``geco-ray tune`` writes it) and
goes before the package's. Its values become part of a cell's identity when a grid is planned.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from geco_ray.cfe.methods.base import METHODS
from geco_ray.cfe.tuning.rule import GRIDS, Candidate
from geco_ray.errors import UserError
from geco_ray.files.roots import data_roots
from geco_ray.registry import Options

RECORD = Path(__file__).with_name("tuned.json")
SCHEMA = 2
BY_RULE, BY_PAPER = "rule", "numbers of the paper"


@dataclass(frozen=True)
class TuningEntry:
    """One selection with what it hangs on.

    Attributes:
        data: fingerprint of the prepared data. base_seed: of the model that was asked.
        selected: the value in force. by_rule: what the rule selects; ``source`` says which of the two reasons
            ``selected`` has: the rule, or numbers of the paper that no other value gives.
        row_ids: the validation rows in the order asked; probabilities: the base model's, float32 exactly.
        made_with: versions of packages, and kernels.
    """

    method: str
    protocol: str
    seeding: str
    dataset: str
    data: str
    base_seed: int
    selected: dict[str, float]
    by_rule: dict[str, float]
    row_ids: tuple[int, ...]
    probabilities: tuple[float, ...]
    candidates: tuple[Candidate, ...]
    source: str = BY_RULE
    made_with: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Method, protocol, seeding, data set."""
        return self.method, self.protocol, self.seeding, self.dataset


Entries = Mapping[tuple[str, str, str, str], TuningEntry]


def write_entries(path: Path, entries: Iterable[TuningEntry]) -> None:
    """Write a record: an entry a line, so that a change of one is seen as such.

    Raises:
        UserError: the file cannot be written.
    """
    lines = ",\n".join(json.dumps(asdict(entry)) for entry in entries)
    try:
        path.write_text(f'{{"schema": {SCHEMA}, "entries": [\n{lines}\n]}}\n', encoding="utf-8")
    except OSError as error:
        raise UserError(f"the record of tuning cannot be written ({error.strerror})", where=str(path)) from None


def read_entries(path: Path) -> Entries:
    """Read a record.

    Raises:
        UserError: it cannot be read, or is none.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["schema"] != SCHEMA:
            raise ValueError("another schema")
        entries = [_entry(given) for given in content["entries"]]
    except OSError as error:
        raise UserError(f"the record of tuning cannot be read ({error.strerror})", where=str(path)) from None
    except (ValueError, KeyError, TypeError):
        raise UserError(
            "this is no record of tuning", where=str(path),
            remedy=f"Write it again with `geco-ray tune {path.name.removesuffix('.tuned.json')}`, or remove it",
        ) from None  # fmt: skip
    return {entry.key: entry for entry in entries}


def _entry(given: dict[str, Any]) -> TuningEntry:
    candidates = tuple(Candidate(**candidate) for candidate in given["candidates"])
    rows, probabilities = tuple(given["row_ids"]), tuple(given["probabilities"])
    return TuningEntry(**given | {"candidates": candidates, "row_ids": rows, "probabilities": probabilities})


def own_record(dataset: str, data_dir: Path | None = None) -> Path | None:
    """Where a table's own record lies, if it has one."""
    name = f"{dataset}.tuned.json"
    places = [folder / name for root in data_roots(data_dir) for folder in (root / "tabular", root)]
    return next((path for path in places if path.is_file()), None)


def find_entry(
    method: str, protocol: str, seeding: str, dataset: str, data_dir: Path | None = None
) -> TuningEntry | None:
    """The entry in force: of the table's own record, else of the package's; None if neither has one.

    Raises:
        UserError: the table's own record was made for other data, or cannot be read.
    """
    key = (method, protocol, seeding, dataset)
    path = own_record(dataset, data_dir)
    own = read_entries(path).get(key) if path is not None else None
    if own is None:
        return package_entries().get(key)
    from geco_ray.cfe.data.datasets import dataset_fingerprint

    if own.data != (found := dataset_fingerprint(dataset, data_dir)):
        raise UserError(
            f"the tuning of {dataset!r} belongs to other data: the table or its card has changed since",
            where=str(path), found=f"data {own.data[:16]}", expected=found[:16],
            remedy=f"Run `{tune_command(dataset, protocol, seeding, data_dir)}`, or remove the file",
        )  # fmt: skip
    return own


@cache
def package_entries() -> Entries:
    """The record that the package carries."""
    return read_entries(RECORD)


def tune_command(dataset: str, protocol: str, seeding: str, data_dir: Path | None = None) -> str:
    """The command that tunes a table again."""
    where = f" --data-dir {data_dir}" if data_dir else ""
    return f"geco-ray tune {dataset} --protocol {protocol} --seeding {seeding}{where}"


def tuned(
    method: str, protocol: str, dataset: str, seeding: str = "paper", data_dir: Path | None = None
) -> dict[str, float]:
    """The frozen selection for ``dataset``.

    A data set without an entry gets what all of the package's own tables selected, if they agree (as Wachter's do under
    ``seeding: paper``). Where they do not, there is no value to take and the result is empty, which
    :func:`resolve_tuned` refuses.

    Raises:
        UserError: see :func:`find_entry`.
        KeyError: the record has no such method, protocol or way of seeding.
    """
    entry = find_entry(method, protocol, seeding, dataset, data_dir)
    if entry is not None:
        return dict(entry.selected)
    kind = (method, protocol, seeding)
    known = [entry.selected for key, entry in package_entries().items() if key[:3] == kind]
    if not known:
        raise KeyError(kind)
    return dict(known[0]) if all(other == known[0] for other in known) else {}


def resolve_tuned(
    method: str, options: Options, protocol: str, dataset: str, seeding: str = "paper", data_dir: Path | None = None
) -> dict[str, float]:
    """The value of every tuned option of ``method``: as given in ``options``, else from the record (:func:`tuned`).

    Needs neither torch nor data, so that a plan can put the values into a cell's identity.

    Raises:
        UserError: an option is left open and no record says which value this data set should have, or see
            :func:`find_entry`.
        KeyError: the method is not tuned, or the record has no such protocol.
    """
    given = {name: getattr(options, name) for name in GRIDS[method][0]}
    missing = [name for name, value in given.items() if value is None]
    chosen = {name: value for name, value in given.items() if value is not None}
    frozen = tuned(method, protocol, dataset, seeding, data_dir) if missing else {}
    if not missing or frozen:
        return frozen | chosen
    example = GRIDS[method][len(GRIDS[method]) // 2] | chosen
    values = ", ".join(f"{key}: {value}" for key, value in example.items())
    what = f"{METHODS.get(method).title} has no tuned {' and '.join(missing)} for the data set {dataset!r}"
    others = ", ".join(key[3] for key in package_entries() if key[:3] == (method, protocol, seeding))
    raise UserError(
        f"{what} under protocol {protocol}, seeding {seeding}: {others} need different values",
        where=f"cfe.methods, {method}",
        remedy=f"`{tune_command(dataset, protocol, seeding, data_dir)}` finds "
        f"{'it' if len(missing) == 1 else 'them'} by the benchmark's rule. Or set "
        f"{'it' if len(missing) == 1 else 'them'} yourself, for example cfe.methods=[{{name: {method}, {values}}}].",
    )
