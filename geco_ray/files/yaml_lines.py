"""One strict reader of YAML for grids, cards, labellings, word lists and cluster files: plain values and their lines.

What YAML would change in silence is refused with its line: a key given twice (loaders keep the last one), a comment
that cuts a text off, a number that YAML 1.1 takes for text (``1e-3``) or for another number (``010`` is 8, ``1:30`` is
90), anchors, aliases, tags, and nothing (``~``) where a text is meant. How strict, a :class:`Strictness` says.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import yaml

from geco_ray.errors import UserError

KeyPath = tuple[str | int, ...]
Place = Callable[[int], str]
"""Tells where a line is, such as ``grid.yaml:7``."""

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NUMBER_AS_TEXT = re.compile(r"^[+-]?(\d+(\.\d*)?|\.\d+)[eE][+-]?\d+$")
_PLAIN_NUMBER = re.compile(r"^[+-]?(0|[1-9]\d{0,99}|\d+\.\d*([eE][+-]\d+)?|\.\d+([eE][+-]\d+)?|\.(inf|nan))$", re.I)
_CONTROL = yaml.reader.Reader.NON_PRINTABLE
_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")  # what YAML 1.1 takes for the end of a line
_DEEPEST = 20
_LONGEST_SHOWN = 80
_TAG = "tag:yaml.org,2002:"
_QUOTE = "Put the text in quotes"


class LinedText(str):
    """A scalar with its line; ``missing``: nothing is written there, not even quotes."""

    __slots__ = ("line", "missing")
    line: int
    missing: bool


class LinedList(list[Any]):
    """A list with its line."""

    __slots__ = ("line",)
    line: int


class LinedTable(dict[str, Any]):
    """A mapping with its line; the keys are :class:`LinedText`."""

    __slots__ = ("line",)
    line: int


@dataclass(frozen=True)
class Strictness:
    """How a kind of file is read.

    Attributes:
        noun: what messages call such files, in the plural.
        scalars: ``text`` keeps every scalar as it is written (``no`` and ``1`` stay words) and gives values that carry
            their line; ``typed`` knows text, plain numbers, true, false and null, nothing else; ``any`` takes whatever
            YAML makes of it, aliases and tags too.
        as_written: keys at the top whose scalars stay text as written under ``typed``.
        whole_text: keys at the top under which no comment may follow an unquoted text on its line.
        spaced_comments: whether elsewhere ``#`` after a text needs a blank behind it to be a comment (``tea #1``).
    """

    noun: str
    scalars: Literal["text", "typed", "any"] = "typed"
    as_written: frozenset[str] = frozenset()
    whole_text: frozenset[str] = frozenset()
    spaced_comments: bool = False


@dataclass
class Document:
    """The value of a YAML text (None for an empty one) and the line of every key path in it."""

    value: Any = None
    lines: dict[KeyPath, int] = field(default_factory=dict)


def line_of(value: object, default: int) -> int:
    """The line of ``value``, or ``default`` when it carries none."""
    return getattr(value, "line", default)


def is_missing(value: object) -> bool:
    """Whether ``value`` was left out in its file: an empty scalar without quotes."""
    return getattr(value, "missing", False)


def decode_text(data: bytes, name: str) -> str:
    """The text of a UTF-8 file, a byte order mark at its beginning taken off.

    Raises:
        UserError: not UTF-8, with the line of the first wrong byte.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise UserError("not UTF-8 text", where=f"{name}:{line}", remedy="Save the file as UTF-8") from None


def read_yaml(text: str, place: Place, strictness: Strictness, path: KeyPath = ()) -> Document:
    """Read the single document in ``text``.

    Args:
        text: the content of the file.
        place: where a line of it is, for messages.
        strictness: the rules for files of its kind.
        path: the key path at which ``text`` stands, for messages.

    Raises:
        UserError: invalid YAML, a repeated key, or whatever the strictness forbids, with the line.
    """
    if found := _CONTROL.search(text):
        line = len(_BREAK.findall(text[: found.start()])) + 1
        what = f"not valid YAML: control characters are not allowed, U+{ord(found.group()):04X} is one"
        raise UserError(what, where=place(line), remedy="Remove the control characters")
    try:
        node = _compose(text, place, strictness, _LOADER)
        reader = _Reader(text, place, strictness)
        return Document() if node is None else Document(reader.value(node, path), reader.lines)
    except yaml.MarkedYAMLError as error:
        raise _invalid(text, error, place, strictness) from None
    except RecursionError:
        raise UserError(
            f"nested more than {_DEEPEST} deep", where=place(1), remedy="Look for an open bracket"
        ) from None


def _compose(text: str, place: Place, strictness: Strictness, loader: Any) -> yaml.Node | None:
    if strictness.scalars != "any":
        _refuse_fancy(text, place, strictness.noun, loader)
    return yaml.compose(text, Loader=loader)


def _invalid(text: str, error: yaml.MarkedYAMLError, place: Place, strictness: Strictness) -> UserError:
    """The error in PyYAML's own words, which do not depend on whether libyaml is there."""
    try:
        _compose(text, place, strictness, yaml.SafeLoader)
    except yaml.MarkedYAMLError as same:
        error = same
    # For a quote left open the fault is where it began; the scanner notices it far below.
    mark = (isinstance(error, yaml.scanner.ScannerError) and error.context_mark) or error.problem_mark
    what = " ".join(str(part) for part in (error.context, error.problem) if part)
    if "'\\t'" in what:
        remedy = "Indent by blanks, not tabs"
    elif "mapping values are not allowed" in what:
        remedy = "If the colon belongs to a text, put the text in quotes; else check the indentation"
    else:
        remedy = "Check indentation, brackets, quotes and colons there; a text that begins with a sign needs quotes"
    return UserError(f"not valid YAML: {what}", where=place(mark.line + 1 if mark else 1), remedy=remedy)


def _refuse_fancy(text: str, place: Place, noun: str, loader: Any) -> None:
    """Refuse anchors, aliases, tags and great depth before the composer follows them (an alias may hold itself)."""
    depth = 0
    for event in yaml.parse(text, Loader=loader):
        at = place(event.start_mark.line + 1) if event.start_mark else place(1)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise UserError(
                f"{noun} have no anchors and aliases, {getattr(event, 'anchor', '')!r} is one",
                where=at,
                remedy="Write the value out (and quote a text that begins with & or *)",
            )
        if tag := getattr(event, "tag", None):
            remedy = "Leave the tag out (and quote a text that begins with !)"
            raise UserError(f"{noun} have no YAML tags, {tag!r} is one", where=at, remedy=remedy)
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise UserError(f"nested more than {_DEEPEST} deep", where=at, remedy="Look for a bracket left open")


class _Reader:
    """Turns nodes to values and notes the line of every key path."""

    def __init__(self, text: str, place: Place, strictness: Strictness) -> None:
        self._rows, self._place, self._strictness = _BREAK.split(text), place, strictness
        self._lined = strictness.scalars == "text"
        self._open: set[int] = set()
        self.lines: dict[KeyPath, int] = {}

    def value(self, node: yaml.Node, path: KeyPath) -> Any:
        line = node.start_mark.line + 1
        self.lines.setdefault(path, line)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path, line)
        if id(node) in self._open:
            raise UserError("an alias holds itself", where=self._place(line), remedy="Write the value out")
        self._open.add(id(node))
        if isinstance(node, yaml.MappingNode):
            value: Any = self._mapping(node, path)
        else:
            value = [self.value(item, (*path, number)) for number, item in enumerate(node.value)]
            value = LinedList(value) if self._lined else value
        self._open.discard(id(node))
        if self._lined:
            value.line = line
        return _construct(node) if self._strictness.scalars == "any" and not self._open else value

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
        result: dict[str, Any] = LinedTable() if self._lined else {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                remedy = "Look for a missing quote"
                raise UserError("a key is a word, not a list or mapping", where=self._place(line), remedy=remedy)
            key = self._text(key_node, line) if self._lined else str(key_node.value)
            if key in result:
                raise UserError(f"the key {key!r} is given twice", where=self._place(line), remedy="Keep one of them")
            self.lines[(*path, str(key))] = line
            result[key] = self.value(value_node, (*path, str(key)))
        return result

    def _scalar(self, node: yaml.ScalarNode, path: KeyPath, line: int) -> Any:
        strictness = self._strictness
        if strictness.scalars == "any":
            return None  # the whole is constructed by YAML's own rules
        where = ": ".join(part for part in (self._place(line), ".".join(map(str, path))) if part)
        kind = str(node.tag).removeprefix(_TAG)
        as_text = self._lined or bool(path and path[0] in strictness.as_written)
        if not node.style and (as_text or kind == "str"):
            self._refuse_cut(node, path)
        if not as_text:
            return typed_scalar(node, where)
        if kind == "null" and node.value:
            raise UserError(f"YAML reads {node.value!r} as nothing, where a text is meant", where=where, remedy=_QUOTE)
        return self._text(node, line) if self._lined else str(node.value)

    def _text(self, node: yaml.ScalarNode, line: int) -> LinedText:
        text = LinedText(node.value)
        text.line, text.missing = line, not node.value and not node.style
        return text

    def _refuse_cut(self, node: yaml.ScalarNode, path: KeyPath) -> None:
        """Refuse a text that ends where YAML sees a comment, if it may have been meant to go on."""
        end = node.end_mark
        rest = self._rows[end.line][end.column :] if end.line < len(self._rows) and node.value else ""
        whole = bool(path and path[0] in self._strictness.whole_text)
        if re.match(r"\s+#" if whole else r"\s+#[^\s#]", rest) and (whole or self._strictness.spaced_comments):
            raise UserError(
                f"YAML takes {shorten(rest.strip())!r} for a comment, so the text ends before it",
                where=self._place(end.line + 1),
                remedy=f"{_QUOTE} if it goes on; else give the comment a line of its own",
            )


def typed_scalar(node: yaml.ScalarNode, where: str) -> Any:
    """Text, a whole or broken number in plain writing, true, false or null; nothing else that YAML 1.1 knows."""
    text, kind = str(node.value), str(node.tag).removeprefix(_TAG)
    shown = shorten(text)
    if kind == "str":
        if _NUMBER_AS_TEXT.match(text) and not node.style:
            raise UserError(f"YAML reads {shown!r} as text", where=where, remedy=f"Write {_as_yaml_number(text)}")
        return text
    if kind in ("int", "float") and not _PLAIN_NUMBER.match(text):
        raise UserError(
            f"YAML reads {shown!r} as a number in an unusual way", where=where, remedy="Write plain digits, or quote it"
        )
    if kind not in ("int", "float", "bool", "null"):
        raise UserError(f"{shown!r} is read as a {kind}", where=where, remedy="Quote it if it is text")
    if kind == "bool" and text.lower() not in ("true", "false"):
        raise UserError(
            f"YAML reads {shown!r} as true or false", where=where, remedy="Write true or false, or quote it"
        )
    return _construct(node)


def shorten(text: str) -> str:
    """A text cut to a length that a message can show."""
    return text if len(text) < _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def _construct(node: yaml.Node) -> Any:
    return yaml.SafeLoader("").construct_document(node)


def _as_yaml_number(text: str) -> str:
    mantissa, exponent = text.lower().split("e")
    mantissa = mantissa if "." in mantissa else f"{mantissa}.0"
    return f"{mantissa}e{exponent}" if exponent[0] in "+-" else f"{mantissa}e+{exponent}"
