"""The labelling format: source sentences with the words that turn, per version and class, written by hand or converted.

A YAML file for the hand::

    format: geco_ray labelling 1
    name: my corpus
    language: en
    classes: [female, male, neutral]
    sentences:
      - (She|He|They) (opens||open) the letter from (her|his|their) (mother|father*|parent) .
      - id: 7
        text: The clerk thanks her .
        labels:
          all: {female: {3: her}, male: {3: him}, neutral: {3: them}}
          subj: {}

A JSONL file holds the same: the first line is the head without ``sentences``, each further line one sentence.
The versions are those of GECO: in ``all`` every gendered word turns, in ``subj`` only the words of the grammatical
subject (GECOBench, data set section).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from geco_ray.errors import UserError, suggest
from geco_ray.files.atomic import write_whole
from geco_ray.files.yaml_lines import line_of, read_json_lines, read_yaml
from geco_ray.geco.corpus.markup import Slot, parse_markup
from geco_ray.geco.rows import LABELS, MAX_WORDS, read_bytes

FORMAT = "geco_ray labelling 1"
VERSIONS = ("all", "subj")
HEAD_KEYS = ("format", "name", "language", "attribute", "source", "licence", "classes")
SENTENCE_KEYS = ("id", "text", "words", "labels", "note")


@dataclass(frozen=True, slots=True)
class Label:
    """What stands at a position in one version and class: a ``form``, or a ``tag`` such as ``surname`` to be filled."""

    form: str | None = None
    tag: str | None = None


@dataclass(frozen=True, slots=True)
class Sentence:
    """A source sentence with its labels, keyed by (version, class) and then by 0-based position."""

    id: int
    words: tuple[str, ...]
    labels: Mapping[tuple[str, str], Mapping[int, Label]]
    note: str = ""
    where: str = ""

    def label(self, version: str, name: str, position: int) -> Label | None:
        """The label at a position, or None when the source word stays."""
        return self.labels.get((version, name), {}).get(position)


@dataclass(frozen=True)
class Labelling:
    """A labelled corpus; the order of ``classes`` gives their ids."""

    classes: tuple[str, ...]
    sentences: tuple[Sentence, ...]
    head: Mapping[str, str] = field(default_factory=dict)


def load_labelling(path: Path) -> Labelling:
    """Read a labelling file; ``.jsonl`` is read as JSON lines, anything else as YAML.

    Raises:
        UserError: whatever is not as it should be, with file and line.
    """
    return parse_labelling(read_bytes(path), str(path))


def parse_labelling(data: bytes, name: str) -> Labelling:
    """As :func:`load_labelling`, for bytes already read; ``name`` stands for the file in errors."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise UserError("the file is not UTF-8", where=f"{name}:{line}") from None
    entries: list[tuple[int, Any]]
    if name.endswith(".jsonl"):
        lines = list(read_json_lines(text, name))
        if not lines:
            raise UserError("the file is empty", where=name)
        head, entries = lines[0][1], lines[1:]
    else:
        head = read_yaml(text, name)
        sentences = head.pop("sentences", None) if isinstance(head, dict) else None
        if not isinstance(sentences, list):
            raise UserError("the key 'sentences' with a list of sentences is missing", where=f"{name}:1")
        entries = [(line_of(item, 1), item) for item in sentences]
    classes, notes = _head(head, name)
    if not entries:
        raise UserError("the file has no sentences", where=name)
    parsed: dict[int, Sentence] = {}
    for ordinal, (line, entry) in enumerate(entries):
        sentence = _Reader(classes, name, line).sentence(entry, ordinal)
        if sentence.id in parsed:
            first = parsed[sentence.id].where
            raise UserError(f"sentence {sentence.id} stands at {first} already", where=sentence.where)
        parsed[sentence.id] = sentence
    return Labelling(classes, tuple(parsed.values()), notes)


def _head(head: object, name: str) -> tuple[tuple[str, ...], dict[str, str]]:
    if not isinstance(head, dict):
        raise UserError("the file does not begin with the keys of the format", where=f"{name}:1", expected=FORMAT)
    for key in head:
        if key not in HEAD_KEYS:
            raise UserError(
                f"unknown key {key!r}",
                where=f"{name}:{line_of(key, 1)}",
                remedy=suggest(key, [*HEAD_KEYS, "sentences"]),
            )
    if head.get("format") != FORMAT:
        where = f"{name}:{line_of(head.get('format'), 1)}"
        raise UserError("not a labelling of this format", where=where, found=head.get("format"), expected=FORMAT)
    classes = head.get("classes", list(LABELS))
    where = f"{name}:{line_of(classes, 1)}"
    if not isinstance(classes, list) or not all(isinstance(item, str) and item.strip() for item in classes):
        raise UserError("classes must be a list of names", where=where, found=classes)
    if len(classes) < 2 or len(set(classes)) != len(classes):
        raise UserError("classes must be two or more different names", where=where, found=[*map(str, classes)])
    for key, value in head.items():
        if key != "classes" and not isinstance(value, str):
            raise UserError(f"{key} must be a text", where=f"{name}:{line_of(value, 1)}")
    return tuple(map(str, classes)), {key: str(value) for key, value in head.items() if key != "classes"}


class _Reader:
    """Checks one entry of the list of sentences; ``line`` is where it begins."""

    def __init__(self, classes: tuple[str, ...], name: str, line: int) -> None:
        self.classes, self.name, self.line = classes, name, line

    def error(self, what: str, value: object = None, *, remedy: str | None = None) -> UserError:
        return UserError(what, where=f"{self.name}:{line_of(value, self.line)}", remedy=remedy)

    def sentence(self, entry: object, ordinal: int) -> Sentence:
        if isinstance(entry, str):
            return self.marked(str(entry), ordinal, "", self.line)
        if not isinstance(entry, dict):
            raise self.error("a sentence must be a marked text or a mapping", entry)
        for key in entry:
            if key not in SENTENCE_KEYS:
                raise self.error(f"unknown key {key!r}", key, remedy=suggest(key, SENTENCE_KEYS))
        number = self.integer(entry.get("id", ordinal), "id", 2**31 - 1)
        note = entry.get("note", "")
        if not isinstance(note, str):
            raise self.error("note must be a text", note)
        if ("text" in entry) == ("words" in entry):
            raise self.error("a sentence needs either text or words", entry)
        text = entry.get("text", "")
        if not isinstance(text, str):
            raise self.error("text must be a text", text)
        if "text" in entry and "labels" not in entry:
            return self.marked(text, number, note, line_of(text, self.line))
        words = self.words(entry["words"] if "words" in entry else text.split())
        labels = self.labels(entry.get("labels", {}), words)
        return Sentence(number, words, labels, str(note), f"{self.name}:{self.line}")

    def marked(self, text: str, number: int, note: str, line: int) -> Sentence:
        words, slots = parse_markup(text, self.classes, f"{self.name}:{line}")
        return Sentence(number, self.words(words), slot_labels(slots, self.classes), note, f"{self.name}:{self.line}")

    def words(self, value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
            raise self.error("words must be a list of words", value)
        if not any(word.strip() for word in value):
            raise self.error("the sentence is empty", value)
        if len(value) > MAX_WORDS:
            raise self.error(f"the sentence has {len(value)} words, more than {MAX_WORDS}", value)
        return tuple(map(str, value))

    def integer(self, value: object, what: str, most: int) -> int:
        text = str(value)
        if isinstance(value, (bool, float)) or not text.isdecimal() or len(text) > 10 or int(text) > most:
            raise self.error(f"{what} must be a whole number from 0 to {most}, not {text[:40]!r}", value)
        return int(text)

    def labels(self, value: object, words: tuple[str, ...]) -> dict[tuple[str, str], dict[int, Label]]:
        labels: dict[tuple[str, str], dict[int, Label]] = {}
        for version, classes in self.table(value, "labels", VERSIONS).items():
            for name, positions in self.table(classes, f"version {version}", self.classes).items():
                if not isinstance(positions, dict):
                    raise self.error(f"{version} {name} must map positions to forms", positions)
                labels[version, name] = {
                    self.integer(position, "a position", len(words) - 1): self.label(label)
                    for position, label in positions.items()
                }
        return labels

    def table(self, value: object, what: str, keys: Sequence[str]) -> dict[str, object]:
        if not isinstance(value, dict):
            raise self.error(f"{what} must be a mapping with the keys {', '.join(keys)}", value)
        for key in value:
            if key not in keys:
                raise self.error(f"unknown key {key!r} in {what}", key, remedy=suggest(key, keys))
        return {str(key): item for key, item in value.items()}

    def label(self, value: object) -> Label:
        if isinstance(value, str):
            return Label(form=str(value))
        if isinstance(value, dict) and list(value) == ["tag"] and isinstance(value["tag"], str) and value["tag"]:
            return Label(tag=str(value["tag"]))
        raise self.error("a label is a form, or {tag: NAME}", value)


def slot_labels(slots: Sequence[Slot], classes: Sequence[str]) -> dict[tuple[str, str], dict[int, Label]]:
    """The labels that the slots of a marked sentence stand for."""
    labels: dict[tuple[str, str], dict[int, Label]] = {}
    for slot in slots:
        for version in VERSIONS if slot.star is None else VERSIONS[:1]:
            for name, form in zip(classes, slot.forms, strict=False):  # the last class may be left to a rule
                labels.setdefault((version, name), {})[slot.position] = Label(form=form)
    return labels


def dump_labelling(labelling: Labelling) -> str:
    """The labelling as JSON lines."""
    head, records = _records(labelling)
    return "\n".join(json.dumps(record, ensure_ascii=False) for record in (head, *records)) + "\n"


def dump_yaml(labelling: Labelling) -> str:
    """The labelling as YAML with every sentence spelled out, to be edited by hand."""
    import yaml

    head, records = _records(labelling)
    for record in records:
        words = record.pop("words")
        text = " ".join(words)
        content = {"text": text} if text.split() == words else {"words": words}
        record.update(content | {"labels": record.pop("labels")})  # without labels, a text would be read as marked
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    parts: list[dict[str, Any]] = [head, {"sentences": records}]
    return "".join(
        yaml.dump(part, Dumper=dumper, default_flow_style=None, sort_keys=False, allow_unicode=True, width=2**20)
        for part in parts
    )


def _records(labelling: Labelling) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    head = {"format": FORMAT, **labelling.head, "classes": list(labelling.classes)}
    records = []
    for sentence in labelling.sentences:
        labels: dict[str, dict[str, dict[int, object]]] = {}
        for (version, name), positions in sorted(sentence.labels.items()):
            labels.setdefault(version, {})[name] = {
                position: label.form if label.tag is None else {"tag": label.tag}
                for position, label in sorted(positions.items())
            }
        record = {"id": sentence.id, "words": list(sentence.words), "labels": labels}
        records.append(record | ({"note": sentence.note} if sentence.note else {}))
    return head, records


def write_labelling(labelling: Labelling, path: Path) -> None:
    """Write a labelling as a ``.jsonl`` or ``.yaml`` file, whole or not at all.

    Raises:
        UserError: the name has another ending, or the file cannot be written.
    """
    dump = {".jsonl": dump_labelling, ".yaml": dump_yaml, ".yml": dump_yaml}.get(path.suffix)
    if dump is None:
        where = str(path)
        raise UserError("a labelling is YAML or JSON lines", where=where, expected="a name ending in .yaml or .jsonl")
    write_text(path, dump(labelling))


def write_text(path: Path, text: str) -> None:
    """Replace a file by ``text`` in one step, so that no reader sees half of it."""
    try:
        write_whole(path, text.encode())
    except OSError as error:
        raise UserError(f"cannot write the file: {error.strerror}", where=str(path)) from None
