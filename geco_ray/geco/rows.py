"""One row of a GECO-like file, read strictly: whatever is not exactly as it should be is refused by file and line.

Row format (GECOBench, data set section): one JSON object per line with the keys ``sentence`` (list of words),
``ground_truth`` (list of 0/1, one per word), ``gender`` (name of the class), ``target`` (id of the class) and
``sentence_idx`` (index of the unaltered source sentence).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from geco_ray.errors import UserError, suggest
from geco_ray.files.text import first_repeated, same_text

LABELS = ("female", "male", "neutral")
KEYS = ("sentence", "ground_truth", "gender", "target", "sentence_idx")
MAX_WORDS = 510  # the encoders take 512 pieces with their two special tokens; a longer sentence would be cut

POLICY: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "byte_order_mark": ("reject", "the first key would not be read"),
        "carriage_return": ("reject", "the file is not the one that was hashed or written"),
        "blank_line": ("reject", "a line is missing or the file was edited"),
        "invalid_json": ("reject", "nothing can be read"),
        "keys": ("reject", "a missing, unknown or repeated key"),
        "type": ("reject", "a value of the wrong type; floats and booleans are not 0/1"),
        "label": ("reject", "an id out of range, or a name that is not the name of the id"),
        "empty_sentence": ("reject", "no word, or blank words only"),
        "long_sentence": ("reject", f"more than {MAX_WORDS} words cannot be explained without cutting"),
        "duplicate_id": ("reject", "the same source sentence twice in one class"),
        "split_leak": ("reject", "a source sentence in both train and test"),
        "length_mismatch": ("reject", "mask and sentence differ in length; four released rows are repaired"),
        "empty_truth": ("count", "kept; its scores are null with the reason empty_truth"),
        "blank_word": ("count", "kept; it gets no attribution"),
        "padded_word": ("count", "kept as it is; stripped only for matching"),
        "several_labels": ("count", "kept; one text under more than one label"),
        "duplicate_text": ("count", "kept; the same words as an earlier row of the file"),
    }
)
"""What the loader does with each defect: ``reject`` (a :class:`UserError`) or ``count`` (see the audit), and why."""


@dataclass(frozen=True, slots=True)
class Row:
    """One labelled variant of a source sentence.

    Attributes:
        words: the words of the data set, never changed (a blank word stays blank).
        truth: 1 for each word that differs between the classes' variants, else 0; as long as ``words``.
        gender: name of the class.
        target: id of the class.
        sentence_idx: index of the source sentence, shared by its variants.
        line: 1-based line of the file.
    """

    words: tuple[str, ...]
    truth: tuple[int, ...]
    gender: str
    target: int
    sentence_idx: int
    line: int


def read_rows(path: Path, *, labels: Sequence[str] | None = LABELS, keep_mismatched: bool = False) -> list[Row]:
    """Read one jsonl file strictly, see :data:`POLICY`.

    Args:
        path: the file.
        labels: class names in the order of their ids; None infers them from the file.
        keep_mismatched: return rows whose mask is longer or shorter than the sentence, for an audit.

    Raises:
        UserError: the first defect, with file and line.
    """
    return parse_rows(read_bytes(path), str(path), labels=labels, keep_mismatched=keep_mismatched)


def read_bytes(path: Path) -> bytes:
    """The file's bytes.

    Raises:
        UserError: no such file, a folder, or no permission.
    """
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise UserError(f"cannot read the file: {error.strerror}", where=str(path)) from None


def parse_rows(
    data: bytes, name: str, *, labels: Sequence[str] | None = LABELS, keep_mismatched: bool = False
) -> list[Row]:
    """As :func:`read_rows`, for bytes already read; ``name`` stands for the file in errors."""
    if data.startswith(b"\xef\xbb\xbf"):
        raise UserError("the file begins with a byte order mark", where=f"{name}:1", remedy="Save it as plain UTF-8.")
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    if not lines:
        raise UserError("the file is empty", where=name)
    rows: list[Row] = []
    seen: dict[tuple[int, int], int] = {}
    for number, line in enumerate(lines, start=1):
        where = f"{name}:{number}"
        row = _parse_line(line, number, where, keep_mismatched)
        if (first := seen.setdefault((row.sentence_idx, row.target), number)) != number:
            raise UserError(
                f"sentence_idx {row.sentence_idx} with target {row.target} stands on line {first} already", where=where
            )
        rows.append(row)
    return respelled(rows, check_labels(rows, labels, name))


def check_labels(rows: Sequence[Row], labels: Sequence[str] | None, name: str) -> tuple[str, ...]:
    """The class names in the order of their ids, after checking every row's name and id against each other.

    ``labels`` None takes them from the rows: each id has one name, and the ids are 0, 1, ... without a gap. Names that
    are all among :data:`LABELS` may leave ids out, which then are those of :data:`LABELS`.
    """
    if labels is None:
        labels = _inferred(rows, name)
    for row in rows:
        where = f"{name}:{row.line}"
        if not 0 <= row.target < len(labels):
            raise UserError(
                "the target is not the id of a class",
                where=where,
                found=row.target,
                expected=", ".join(f"{index} ({label})" for index, label in enumerate(labels)),
            )
        if row.gender == labels[row.target] or same_text(row.gender, labels[row.target]):
            continue
        known = next((index for index, label in enumerate(labels) if same_text(label, row.gender)), None)
        if known is None:
            raise UserError(f"unknown class {row.gender!r}", where=where, remedy=suggest(row.gender, labels))
        raise UserError(
            f"gender {row.gender!r} does not fit target {row.target}",
            where=where,
            expected=f"target {known} or gender {labels[row.target]!r}",
        )
    return tuple(labels)


def respelled(rows: Sequence[Row], labels: Sequence[str]) -> list[Row]:
    """The rows with each class named as in ``labels``; a name may be typed in another Unicode normal form."""
    return [row if row.gender == labels[row.target] else replace(row, gender=labels[row.target]) for row in rows]


def _inferred(rows: Sequence[Row], name: str) -> tuple[str, ...]:
    by_id: dict[int, str] = {}
    for row in rows:
        by_id.setdefault(row.target, row.gender)
    gap = sorted(by_id) != list(range(len(by_id))) or len(by_id) < 2
    if gap and (names := set(by_id.values())) <= set(LABELS):
        return LABELS[: max(2, len(names))]
    if gap:
        raise UserError("the targets must be 0, 1, ... without a gap, at least two", where=name, found=sorted(by_id))
    labels = tuple(by_id[index] for index in range(len(by_id)))
    if first_repeated(labels) is not None:
        raise UserError("two targets have the same gender", where=name, found=list(labels))
    return labels


def _parse_line(line: bytes, number: int, where: str, keep_mismatched: bool) -> Row:
    if line.endswith(b"\r"):
        raise UserError(
            "the line ends in a carriage return",
            where=where,
            remedy="Convert the file to Unix line ends, or download it again.",
        )
    if not line.strip():
        raise UserError("the line is blank", where=where, remedy="Delete it.")
    try:
        text = line.decode("utf-8")
        record = json.loads(text, object_pairs_hook=lambda pairs: _no_repeats(pairs, where))
    except UnicodeDecodeError as error:
        raise UserError(f"byte {error.start + 1} of the line is not UTF-8", where=where) from None
    except json.JSONDecodeError as error:
        raise UserError(f"invalid JSON at column {error.colno}: {error.msg}", where=where) from None
    except (RecursionError, ValueError):  # ValueError: a number of thousands of digits
        raise UserError("invalid JSON: nested too deeply, or too long a number", where=where) from None
    if not isinstance(record, dict):
        raise UserError("the line is not a JSON object", where=where, found=type(record).__name__)
    for key in KEYS:
        if key not in record:
            raise UserError(f"the key {key!r} is missing", where=where)
    for key in record:
        if key not in KEYS:
            raise UserError(f"unknown key {key!r}", where=where, remedy=suggest(key, KEYS))
    words = _words(record["sentence"], where)
    truth = _mask(record["ground_truth"], where)
    if len(words) != len(truth) and not keep_mismatched:
        kind = "longer" if len(truth) > len(words) else "shorter"
        raise UserError(
            f"ground_truth is {kind} than the sentence", where=where, found=len(truth), expected=f"{len(words)} values"
        )
    gender = record["gender"]
    if not isinstance(gender, str) or not gender:
        raise UserError("gender must be a name", where=where, found=gender)
    return Row(words, truth, gender, _integer(record, "target", where), _index(record, where), number)


def _no_repeats(pairs: list[tuple[str, object]], where: str) -> dict[str, object]:
    record = dict(pairs)
    if len(record) != len(pairs):
        names = [key for key, _ in pairs]
        raise UserError(f"the key {next(k for k in names if names.count(k) > 1)!r} is given twice", where=where)
    return record


def _integer(record: Mapping[str, object], key: str, where: str) -> int:
    value = record[key]
    if type(value) is not int:  # a boolean is an int to isinstance
        raise UserError(f"{key} must be an integer", where=where, found=value)
    return value


def _index(record: Mapping[str, object], where: str) -> int:
    value = _integer(record, "sentence_idx", where)
    if not 0 <= value < 2**31:
        raise UserError("sentence_idx must not be negative or beyond 32 bits", where=where, found=value)
    return value


def _words(value: object, where: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise UserError("sentence must be a list of words", where=where, found=type(value).__name__)
    for position, word in enumerate(value):
        if not isinstance(word, str):
            raise UserError(f"word {position} of the sentence is not a string", where=where, found=word)
        if not word.isascii() and any("\ud800" <= ch <= "\udfff" for ch in word):
            raise UserError(f"word {position} of the sentence is not valid Unicode", where=where, found=word)
    if not any(word.strip() for word in value):
        raise UserError("the sentence is empty", where=where)
    if len(value) > MAX_WORDS:
        raise UserError("the sentence is too long", where=where, found=len(value), expected=f"<= {MAX_WORDS} words")
    return tuple(value)


def _mask(value: object, where: str) -> tuple[int, ...]:
    if not isinstance(value, list):
        raise UserError("ground_truth must be a list of 0 and 1", where=where, found=type(value).__name__)
    for position, flag in enumerate(value):
        if type(flag) is not int or flag not in (0, 1):
            raise UserError(f"value {position} of ground_truth is not 0 or 1", where=where, found=flag)
    return tuple(value)
