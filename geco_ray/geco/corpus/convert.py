"""From GECO's labelling JSON to our labelling format.

The public JSON is a legacy version of the labelling behind the release: its neutral labels are empty and later fixes
by hand are missing, so the released files stay the source of truth.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from geco_ray.errors import UserError
from geco_ray.geco.corpus.labelling import VERSIONS, Label, Labelling, Sentence
from geco_ray.geco.rows import LABELS, read_bytes


def convert_geco(path: Path) -> Labelling:
    """Read GECO's labelling JSON (``tags`` and ``sentences``, see the repository's labelling tool).

    Raises:
        UserError: not JSON, or not of that shape; the message names the sentence.
    """
    try:
        document = json.loads(read_bytes(path))
    except UnicodeDecodeError:
        raise UserError("the file is not UTF-8", where=str(path)) from None
    except json.JSONDecodeError as error:
        raise UserError(f"invalid JSON: {error.msg}", where=f"{path}:{error.lineno}") from None
    if not isinstance(document, dict) or not all(isinstance(document.get(k), dict) for k in ("tags", "sentences")):
        raise UserError("the file is not a GECO labelling", where=str(path), expected="the keys 'tags' and 'sentences'")
    sentences = []
    for key, record in document["sentences"].items():
        where = f"{path}: sentence {key}"
        try:
            tags = {int(number): str(tag["tag"]) for number, tag in document["tags"].items()}
            sentences.append(_sentence(record, tags, where))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UserError(f"the record is not as expected: {error!r}", where=where) from None
    if len({sentence.id for sentence in sentences}) != len(sentences):
        raise UserError("two sentences have the same idx", where=str(path))
    head = {"name": "GECO", "language": "en", "attribute": "gender"}
    return Labelling(LABELS, tuple(sentences), head)


def _sentence(record: Mapping[str, Any], tags: Mapping[int, str], where: str) -> Sentence:
    words = tuple(str(word) for word in record["sentence"])
    labels: dict[tuple[str, str], dict[int, Label]] = {}
    for version in VERSIONS:
        for name, item in record["versions"][version]["gender"].items():
            if name not in LABELS:
                raise UserError(f"unknown class {name!r}", where=where)
            found = {int(position): _label(label, tags) for position, label in item["labelling"].items()}
            if any(not 0 <= position < len(words) for position in found):
                raise UserError(f"a label of {version} {name} lies outside the sentence", where=where)
            if found:
                labels[version, name] = found
    return Sentence(int(record["idx"]), words, labels, where=where)


def _label(label: Mapping[str, Any], tags: Mapping[int, str]) -> Label:
    if "replacement" in label:
        return Label(form=str(label["replacement"]))
    return Label(tag=tags[int(label["tag"])])
