"""From GECO's labelling JSON to our labelling format.

The public JSON is a legacy version of the labelling behind the release: its neutral labels are empty and later fixes
by hand are missing, so the released files stay the source of truth.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from geco_ray.errors import UserError
from geco_ray.files.json_lines import read_json
from geco_ray.files.yaml_lines import decode_text
from geco_ray.geco.corpus.labelling import VERSIONS, Label, Labelling, Sentence
from geco_ray.geco.rows import LABELS, read_bytes


def convert_geco(path: Path) -> Labelling:
    """Read GECO's labelling JSON (``tags`` and ``sentences``, see the repository's labelling tool).

    Every sentence of the file is in the result; nothing is guessed or left out.

    Raises:
        UserError: not JSON, a repeated key or id, or not of that shape; the message names the sentence.
    """
    document = read_json(decode_text(read_bytes(path), str(path)), str(path))
    if not isinstance(document, dict) or not all(isinstance(document.get(k), dict) for k in ("tags", "sentences")):
        raise UserError("the file is not a GECO labelling", where=str(path), expected="the keys 'tags' and 'sentences'")
    reader = _Reader(str(path), document["tags"])
    sentences = [reader.sentence(record, key) for key, record in document["sentences"].items()]
    keys: dict[int, str] = {}
    for key, sentence in zip(document["sentences"], sentences, strict=True):
        if (first := keys.setdefault(sentence.id, key)) != key:
            where = f"{path}: sentences {first} and {key}"
            raise UserError(f"two sentences have the same idx {sentence.id}", where=where)
    head = {"name": "GECO", "language": "en", "attribute": "gender"}
    return Labelling(LABELS, tuple(sentences), head)


class _Reader:
    """Checks the records of one file; ``where`` in errors is the file and the sentence's key."""

    def __init__(self, path: str, tags: Mapping[str, Any]) -> None:
        self._path = path
        self._where = f"{path}: tags"
        self._tags: dict[int, str] = {}
        for number, tag in tags.items():
            key = self._number(number, "the key of a tag")
            self._tags[key] = self._text(self._get(self._table(tag, f"tag {number}"), "tag", f"tag {number}"), "tag")

    def sentence(self, record: object, key: str) -> Sentence:
        self._where = f"{self._path}: sentence {key}"
        table = self._table(record, "the record")
        words = self._get(table, "sentence", "the record")
        if not isinstance(words, list) or not words:
            raise self._error("the sentence must be a list of words", words)
        for position, word in enumerate(words):
            self._text(word, f"word {position}")
        labels: dict[tuple[str, str], dict[int, Label]] = {}
        versions = self._table(self._get(table, "versions", "the record"), "versions")
        for version in VERSIONS:
            classes = self._get(self._table(self._get(versions, version, "versions"), version), "gender", version)
            for name, item in self._table(classes, f"{version} gender").items():
                if name not in LABELS:
                    raise self._error(f"unknown class {name!r} in {version}")
                if found := self._labels(item, f"{version} {name}", len(words)):
                    labels[version, name] = found
        number = self._number(self._get(table, "idx", "the record"), "idx")
        return Sentence(number, tuple(words), labels, where=self._where)

    def _labels(self, item: object, what: str, length: int) -> dict[int, Label]:
        labels: dict[int, Label] = {}
        labelling = self._get(self._table(item, what), "labelling", what)
        for key, label in self._table(labelling, f"the labelling of {what}").items():
            position = self._number(key, f"a position of {what}")
            if position >= length:
                raise self._error(f"a label of {what} lies outside the sentence", key, f"less than {length}")
            if position in labels:
                raise self._error(f"position {position} of {what} is given twice")
            labels[position] = self._label(self._table(label, f"label {key} of {what}"), f"{key} of {what}")
        return labels

    def _label(self, label: Mapping[str, Any], what: str) -> Label:
        if "replacement" in label:
            return Label(form=self._text(label["replacement"], f"replacement {what}"))
        number = self._number(self._get(label, "tag", f"label {what}"), f"tag {what}")
        if number not in self._tags:
            raise self._error(f"label {what} names a tag that is not in the file", number)
        return Label(tag=self._tags[number])

    def _get(self, table: Mapping[str, Any], key: str, what: str) -> Any:
        if key not in table:
            raise self._error(f"{what} lacks the key {key!r}")
        return table[key]

    def _table(self, value: object, what: str) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise self._error(f"{what} must be an object", value)
        return value

    def _text(self, value: object, what: str) -> str:
        if not isinstance(value, str):
            raise self._error(f"{what} must be a text", "null" if value is None else value)
        return value

    def _number(self, value: object, what: str) -> int:
        text = str(value)
        if isinstance(value, (bool, float)) or not (text.isascii() and text.isdigit()) or int(text[:11]) >= 2**31:
            raise self._error(f"{what} must be a whole number from 0", "null" if value is None else value)
        return int(text)

    def _error(self, what: str, found: object = None, expected: str | None = None) -> UserError:
        return UserError(what, where=self._where, found=found, expected=expected)
