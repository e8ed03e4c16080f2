"""What an encoder sees of a task against what the truth says, before anything is trained; the tokenizer is enough.

A truth word that the tokenizer makes the same in all forms (another case, another accent, a script that it does not
know) cannot be found by any explanation of any model, and a word that spells a special token is none to the encoder.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from geco_ray.errors import UserError
from geco_ray.files.text import compare_key
from geco_ray.table import PrintedTable, cell

if TYPE_CHECKING:
    from geco_ray.geco.encoders import EncoderSource
    from geco_ray.geco.rows import Row
    from geco_ray.geco.task import Task
    from geco_ray.geco.tokens import TaskTokens, WordTokenizer

KINDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "same_pieces": ("source sentences", "have two forms with the same pieces, which no model can tell apart"),
        "hidden_truth": ("truth words", "differ between the forms, and their pieces do not"),
        "no_piece": ("truth words", "have no piece (blank or zero width) and can get no attribution"),
        "unknown": ("words", "become or hold the unknown token, which stands for any word"),
        "special": ("words", "spell a special token, which the encoder takes for its own"),
    }
)
"""Kind of finding to its unit and to what it means."""

_EXAMPLES = 3

Pieces = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class EncoderAudit:
    """The findings on one task and one encoder.

    Attributes:
        task: name of the task.
        encoder: name of the encoder.
        sentences: source sentences whose forms differ; only these can be told apart.
        told_apart: those of which at least two forms have other pieces.
        counts: kind of finding to its number, over train and test.
        examples: kind of finding to up to three of them.
    """

    task: str
    encoder: str
    sentences: int
    told_apart: int
    counts: Mapping[str, int]
    examples: Mapping[str, tuple[str, ...]]

    def lines(self) -> list[str]:
        """A sentence for each kind that was found."""
        return [
            finding_line(self.task, self.encoder, kind, n, self.examples[kind]) for kind, n in self.counts.items() if n
        ]

    def record(self) -> dict[str, object]:
        """Plain values, ready for JSON."""
        return {
            "task": self.task,
            "encoder": self.encoder,
            "sentences": self.sentences,
            "told apart": self.told_apart,
            "counts": dict(self.counts),
            "examples": {kind: list(found) for kind, found in self.examples.items()},
        }


def finding_line(task: str, encoder: str, kind: str, count: int, examples: Sequence[str]) -> str:
    """A finding in words, such as a reader of a run or a report needs them."""
    unit, meaning = KINDS[kind]
    shown = ", ".join(examples)
    return f"{task} with {encoder}: {count:,} {unit} {meaning}" + (f" (such as {shown})." if shown else ".")


def audit_encoder(task: Task, tokenizer: WordTokenizer, encoder: str) -> EncoderAudit:
    """Compare both files of ``task`` with the pieces that ``tokenizer`` makes of them."""
    rows = (*task.train, *task.test)
    pieces = tokenizer.pieces(word for row in rows for word in row.words)
    found: dict[str, list[str]] = {kind: [] for kind in KINDS}
    sentences = told_apart = 0
    by_sentence: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        by_sentence[row.sentence_idx].append(row)
    for forms in by_sentence.values():
        texts = {tuple(map(compare_key, row.words)): row for row in forms}
        if len(texts) > 1:
            seen = {sum((pieces[word] for word in row.words), ()) for row in texts.values()}
            sentences += 1
            told_apart += len(seen) > 1
            if len(seen) < len(texts):
                found["same_pieces"].append(_difference([*texts.values()]))
            found["hidden_truth"] += _hidden(forms, pieces)
    for kind, word in _words(rows, pieces, tokenizer):
        found[kind].append(repr(word))
    counts = {kind: len(texts) for kind, texts in found.items()}
    examples = {kind: tuple(dict.fromkeys(texts))[:_EXAMPLES] for kind, texts in found.items()}
    return EncoderAudit(task.name, encoder, sentences, told_apart, counts, examples)


def require_forms_apart(audit: EncoderAudit) -> None:
    """Refuse a task of which no sentence has two forms that the encoder can tell apart.

    Raises:
        UserError: there is none, with examples.
    """
    if audit.sentences and not audit.told_apart:
        raise UserError(
            f"encoder {audit.encoder!r} cannot tell the forms apart: in all {audit.sentences} source sentences they "
            "have the same pieces",
            where=audit.task,
            found=", ".join(audit.examples["same_pieces"]),
            expected="forms whose pieces differ",
            remedy="Take an encoder whose tokenizer keeps case, accents and script",
        )


def require_limits(tokens: TaskTokens, source: EncoderSource) -> None:
    """Refuse an encoder that has no embedding for a piece of the task, or too few positions for a sentence.

    Raises:
        UserError: the word and its piece, or the sentence and its length.
    """
    from geco_ray.geco.encoders import encoder_positions, locate_encoder
    from geco_ray.geco.tokens import require_positions

    path = locate_encoder(source) / "config.json"
    embeddings = json.loads(path.read_text(encoding="utf-8")).get("vocab_size", 30522)
    task, tokenizer = tokens.task, tokens.tokenizer
    where = f"encoder {source.name!r}, {task.name}"
    if int(tokens.used_ids[-1]) >= embeddings:
        pieces = tokenizer.pieces(word for row in (*task.train, *task.test) for word in row.words)
        beyond = {piece: word for word, ids in pieces.items() for piece in ids if piece >= embeddings}
        piece, word = next(iter(beyond.items()), (int(tokens.used_ids[-1]), ""))
        raise UserError(
            f"the tokenizer gives the token {tokenizer.text(piece)!r}" + (f" (in the word {word!r})" if word else ""),
            where=where,
            found=f"id {piece}",
            expected=f"an id below {embeddings}, the size of the encoder's embedding",
            remedy="Resize the encoder's embedding and save it again, or take its own tokenizer",
        )
    require_positions(tokens, encoder_positions(source), source.name)


def encoder_table(audits: Iterable[EncoderAudit]) -> PrintedTable:
    """The counts of encoder audits: a row per kind, a column per task and encoder."""
    audits = list(audits)
    header = ("what the encoder sees", *(f"{audit.task} with {audit.encoder}" for audit in audits))
    whole = ("source sentences whose forms differ, told apart", *(f"{a.sentences}, {a.told_apart}" for a in audits))
    rows = [whole]
    for kind, (unit, meaning) in KINDS.items():
        shown = (", ".join([str(audit.counts[kind]), *audit.examples[kind]]) for audit in audits)
        rows.append((f"{kind}: {unit} that {meaning}", *shown))
    return PrintedTable("What the encoder sees of them", header, tuple(tuple(map(cell, row)) for row in rows))


def _difference(forms: Sequence[Row]) -> str:
    """The words by which the forms of a sentence differ, at their first difference."""
    for words in zip(*(row.words for row in forms), strict=False):
        if len(set(map(compare_key, words))) > 1:
            return " / ".join(repr(word) for word in words)
    return " / ".join(repr(" ".join(row.words)) for row in forms)


def _hidden(forms: Sequence[Row], pieces: Pieces) -> Iterator[str]:
    """Truth words of one sentence that differ between its forms while their pieces do not."""
    for position, words in enumerate(zip(*(row.words for row in forms), strict=False)):
        marked = any(row.truth[position : position + 1] == (1,) for row in forms)
        if marked and len(set(map(compare_key, words))) > 1 and len({pieces[word] for word in words}) == 1:
            yield " / ".join(repr(word) for word in words)


def _words(rows: Iterable[Row], pieces: Pieces, tokenizer: WordTokenizer) -> Iterator[tuple[str, str]]:
    special = set(tokenizer.special_ids) - {tokenizer.unk_id}
    unknown = None if tokenizer.unk_id is None else tokenizer.text(tokenizer.unk_id)
    for row in rows:
        for word, marked in zip(row.words, row.truth, strict=False):
            ids = pieces[word]
            if marked and not ids:
                yield "no_piece", word
            if special.intersection(ids) or (unknown is not None and unknown in word and tokenizer.unk_id in ids):
                yield "special", word
            elif tokenizer.unk_id in ids:
                yield "unknown", word
