"""Labellings as text and as files; whatever is written is read back first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from geco_ray.errors import UserError
from geco_ray.files.atomic import write_whole
from geco_ray.geco.corpus.labelling import FORMAT, Labelling, parse_labelling


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
        UserError: the name has another ending, a sentence would be refused when read, or the file cannot be written.
    """
    dump = {".jsonl": dump_labelling, ".yaml": dump_yaml, ".yml": dump_yaml}.get(path.suffix)
    if dump is None:
        expected = "a name ending in .yaml or .jsonl"
        raise UserError("a labelling is YAML or JSON lines", where=str(path), expected=expected)
    text = dump(labelling)
    again = parse_labelling(text.encode("utf-8", "surrogatepass"), str(path))
    if dump_labelling(again) != dump_labelling(labelling):
        raise UserError("the labelling cannot be written so that it is read as it is", where=str(path))
    write_text(path, text)


def write_text(path: Path, text: str) -> None:
    """Replace a file by ``text`` in one step, so that no reader sees half of it."""
    try:
        write_whole(path, text.encode())
    except OSError as error:
        raise UserError(f"cannot write the file: {error.strerror}", where=str(path)) from None
