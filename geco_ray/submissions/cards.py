"""The card of a submission: what the file beside it is, ``mine.yaml`` for ``mine.csv``."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from geco_ray.errors import UserError, suggest
from geco_ray.files.home import expand_home
from geco_ray.files.yaml_lines import Strictness, decode_text, read_yaml
from geco_ray.registry import Options

FORMAT = "geco_ray.submission/1"
Kind = Literal["counterfactuals", "attributions"]


class SubmissionCard(Options):
    """What a submitted file is.

    Attributes:
        format: the version of this schema. kind: what the rows are.
        name: in tables and files. title: for people. version: of the method, as its authors count.
        paper: where it is described. robust: whether the method aims at counterfactuals that survive model changes.
        values: the unit of counterfactuals: that of the table, or standardised as the models see it.
        dataset, base_seed, seeding: of all rows, where the file has no such column.
        model: the classifier of all rows, where the file has no such column.
    """

    format: Literal["geco_ray.submission/1"]
    kind: Kind
    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    title: str = ""
    version: str = ""
    paper: str = ""
    robust: bool = False
    values: Literal["original", "standardised"] = "original"
    dataset: str | None = None
    base_seed: int | None = None
    seeding: Literal["paper", "independent"] | None = None
    model: str | None = None

    def deciding(self) -> dict[str, object]:
        """What of the card changes results; titles and papers do not."""
        return self.model_dump(exclude={"title", "paper", "robust"})


def card_path(file: Path) -> Path:
    """Where the card of ``file`` lies."""
    return file.with_suffix(".yaml")


def read_card(file: Path) -> SubmissionCard:
    """The card of a submitted file.

    Raises:
        UserError: there is none, or a key is missing, unknown or of another type; with file and line.
    """
    path = card_path(file)
    try:
        text = decode_text(path.read_bytes(), str(path))
    except OSError:
        remedy = f"Write one with format: {FORMAT}, kind: and name:; docs/submissions.md tells the keys"
        raise UserError("the submission has no card", where=str(path), remedy=remedy) from None
    document = read_yaml(text, lambda line: f"{path}:{line}", Strictness("cards"))
    try:
        return SubmissionCard.model_validate_json(json.dumps(document.value), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    key = str(first["loc"][0]) if first["loc"] else "card"
    where = f"{path}:{document.lines.get((key,), 1)}"
    if first["type"] == "extra_forbidden":
        raise UserError(f"unknown key {key!r}", where=where, remedy=suggest(key, SubmissionCard.model_fields))
    if first["type"] == "missing":
        raise UserError(f"the key {key!r} is missing", where=where, remedy="docs/submissions.md tells what it takes")
    raise UserError(f"{key}: {first['msg']}", where=where, found=first["input"])


def require_kind(card: SubmissionCard, kind: Kind, file: Path) -> None:
    """Refuse a file of the other kind.

    Raises:
        UserError: it is.
    """
    if card.kind != kind:
        remedy = f"Name it under the methods of {'cfe' if card.kind == 'counterfactuals' else 'geco'}"
        raise UserError(f"the submission holds {card.kind}", where=str(file), expected=kind, remedy=remedy)


def find_submission(reference: str) -> Path:
    """The submitted file.

    Raises:
        UserError: there is none, or its name has no ending that is read.
    """
    path = expand_home(reference, "submission")
    if path.suffix not in (".csv", ".parquet", ".jsonl"):
        raise UserError("a submission is a CSV, Parquet or JSONL file", where=str(path), found=path.suffix)
    if not path.is_file():
        remedy = "Give its path from here, or from the grid's folder"
        raise UserError("there is no such submission", where=str(path), remedy=remedy)
    return path


def content_id(file: Path) -> str:
    """16 hex digits over the file's bytes and what of its card changes results.

    Raises:
        UserError: file or card cannot be read.
    """
    deciding = json.dumps(read_card(file).deciding(), sort_keys=True)
    try:
        data = file.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read the submission ({error.strerror})", where=str(file)) from None
    return hashlib.sha256(deciding.encode() + b"\n" + data).hexdigest()[:16]
