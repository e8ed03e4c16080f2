"""A CSV's rows with the lines they stand on: read whole or refused, never guessed at.

Comma, UTF-8 (a byte-order mark is allowed), quotation marks as in RFC 4180, names in the first line, and as many values
in each row as there are names. What the values mean is not looked at here.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from geco_ray.errors import UserError
from geco_ray.files.text import first_repeated

_LINE_BREAK = re.compile(r"\r\n|\r|\n")
_MARKS = {b"\xff\xfe\0\0": "UTF-32", b"\0\0\xfe\xff": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
_SAVE = 'Save it as UTF-8 (in a spreadsheet: "CSV UTF-8"), or convert it: iconv -f {0} -t UTF-8 OLD.csv > NEW.csv'
_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}


@dataclass(frozen=True)
class CsvRows:
    """A file's names and cells, all as text. ``lines[i]`` is the line on which ``rows[i]`` begins, from 1."""

    path: Path
    header: tuple[str, ...]
    rows: list[list[str]]
    lines: list[int]

    def column(self, position: int) -> list[str]:
        """The cells of a column."""
        return [row[position] for row in self.rows]

    def where(self, row: int, position: int = 0) -> str:
        """File and line of a cell; quoted line breaks in the cells before it are counted."""
        before = sum(len(_LINE_BREAK.findall(cell)) for cell in self.rows[row][:position])
        return f"{self.path}:{self.lines[row] + before}"


def read_csv(path: Path) -> CsvRows:
    """Read a CSV file whole.

    Raises:
        UserError: another encoding or separator, a NUL, a broken quotation, a blank line, a name that appears twice, or
            a row with more or fewer values than the header has names; file and line are named.
    """
    records = list(_records(_decoded(path), path))
    if not records:
        raise UserError("the table is empty", where=str(path))
    for line, cells in records:
        if not any(cell.strip() for cell in cells) and len(cells) < 2:
            raise UserError("the line is blank", where=f"{path}:{line}", remedy="Delete it.")
    header = _header(records[0][1], path)
    found = CsvRows(path, header, [cells for _, cells in records[1:]], [line for line, _ in records[1:]])
    _check_lengths(found)
    return found


def _decoded(path: Path) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"the table cannot be read: {error.strerror or error}", where=str(path)) from None
    encoding = next((name for mark, name in _MARKS.items() if data.startswith(mark)), None)
    if encoding is not None:
        raise UserError(f"the table is {encoding}", where=str(path), expected="UTF-8", remedy=_SAVE.format(encoding))
    nul = data.find(b"\0")
    if nul >= 0:
        wide = data.count(b"\0") > len(data) // 4
        what = "the table looks like UTF-16 without a byte-order mark" if wide else "a NUL byte"
        remedy = _SAVE.format("UTF-16LE") if wide else "The file is damaged, or no text: get it again."
        raise UserError(what, where=f"{path}:{_line_at(data, nul)}", expected="UTF-8", remedy=remedy)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        at = error.start + (3 if data.startswith(b"\xef\xbb\xbf") else 0)
        start = max(data.rfind(b"\n", 0, at), at - 20) + 1
        shown = data[start : at + 12].splitlines()[0].decode("cp1252", "replace")
        raise UserError(
            "the table is not UTF-8",
            where=f"{path}:{_line_at(data, at)}",
            found=f"byte 0x{data[at]:02x}; read as Windows-1252: {shown}",
            expected="UTF-8",
            remedy=_SAVE.format("CP1252"),
        ) from None


def _line_at(data: bytes, position: int) -> int:
    return len(re.findall(rb"\r\n|\r|\n", data[:position])) + 1


def _records(text: str, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Each record with the line on which it begins."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    line = 1
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise UserError(
                f"the row cannot be read: {error}",
                where=f"{path}:{line}",
                found=None if reader.line_num <= line else f"a row that goes on to line {reader.line_num}",
                remedy='A quotation mark is not closed, or stands inside a quoted value (write it twice: "").',
            ) from None
        yield line, cells
        line = reader.line_num + 1


def _header(cells: Sequence[str], path: Path) -> tuple[str, ...]:
    where = f"{path}:1"
    if cells[0].strip().casefold() in ("sep=", "sep=;", "sep=\t", "sep=|"):
        raise UserError("the first line is Excel's line about the separator", where=where, remedy="Delete it.")
    if len(cells) == 1:
        text = cells[0]
        used = max(_SEPARATORS, key=text.count)
        if used in text:
            raise UserError(
                f"the columns are separated by {_SEPARATORS[used]}",
                where=where,
                found=text,
                expected="commas",
                remedy="Save the table with commas, and with points as decimal signs.",
            )
        raise UserError("the table has one column", where=where, found=text, expected="names separated by commas")
    header = tuple(name.strip() for name in cells)
    for name in header:
        if "\ufeff" in name:
            raise UserError("a second byte-order mark", where=where, found=ascii(name), remedy="Delete the character.")
    twice = first_repeated(header)
    if twice is not None:
        what = f"column {header[twice[1]]!r} appears twice in the header"
        if not header[twice[1]]:
            what = "two columns have no name"
        raise UserError(what, where=where, found=f"columns {twice[0] + 1} and {twice[1] + 1}")
    return header


def _check_lengths(table: CsvRows) -> None:
    width = len(table.header)
    wrong = [number for number, cells in enumerate(table.rows) if len(cells) != width]
    if not wrong:
        return
    row = wrong[0]
    cells = table.rows[row]
    shown = ",".join(cells)
    what = "the row has more values than the header has names"
    if len(cells) < width:
        what = f"the row has fewer values than the header has names, none for column {table.header[len(cells)]!r}"
    raise UserError(
        what,
        where=table.where(row),
        found=f"{len(cells)} values: {shown if len(shown) <= 80 else shown[:77] + '...'}",
        expected=f"{width} values",
        remedy=f"{_why(table, wrong)} {len(wrong)} of {len(table.rows)} rows are affected.",
    )


def _why(table: CsvRows, wrong: Sequence[int]) -> str:
    """What most often lies behind rows of another length."""
    width, cells = len(table.header), table.rows[wrong[0]]
    if len(cells) > width:
        if all(table.rows[row][-1] == "" for row in wrong):
            return "Delete the comma at the end of the row."
        lengths = Counter(len(row) for row in table.rows)
        all_one_more = lengths == {width + 1: len(table.rows)}
        names = "Row names have no name in the header (in R: row.names = FALSE), or a" if all_one_more else "A"
        return f"{names} value holds a comma: write 1234 for 1,234 and 1.5 for 1,5, and put text in quotes."
    if len(cells) == 1 and any(sign in cells[0] for sign in _SEPARATORS):
        return "Separate all rows by commas."
    return "An empty value needs its comma too."
