"""Reading a CSV: nothing is cut, lines are the file's own, and what is no plain CSV is refused where it stands."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from geco_ray.cfe.data.csv_lines import read_csv
from geco_ray.errors import UserError

HEADER = ["income", "debt", "paid"]
cell = st.text(st.characters(exclude_characters="\0\ufeff", exclude_categories=["Cs"]), max_size=6)
table_rows = st.lists(st.lists(cell, min_size=3, max_size=3), min_size=1, max_size=8)
latin_word = st.text(st.characters(min_codepoint=0xA0, max_codepoint=0xFF), min_size=1, max_size=5).filter(
    lambda word: "\ufffd" in word.encode("latin-1").decode("utf-8", "replace")
)
in_one_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"' if set(cell) & set(',"\r\n') else cell


def written(rows: list[list[str]], end: str = "\n") -> list[str]:
    """Each row as a CSV line of its own."""
    return [",".join(map(quoted, row)) + end for row in rows]


def breaks(text: str) -> int:
    return text.replace("\r\n", "\n").replace("\r", "\n").count("\n")


def read(folder: Path, data: bytes | str):
    path = folder / "t.csv"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return read_csv(path)


def refusal(folder: Path, data: bytes | str) -> str:
    with pytest.raises(UserError) as caught:
        read(folder, data)
    return str(caught.value)


@in_one_folder
@given(table_rows, st.sampled_from(["\n", "\r\n", "\r"]), st.booleans())
def test_cells_come_back_and_lines_are_those_of_the_file(tmp_path: Path, rows, end: str, mark: bool) -> None:
    texts = written([HEADER, *rows], end)
    found = read(tmp_path, ("\ufeff" if mark else "") + "".join(texts))
    assert found.rows == rows
    assert found.lines == [1 + breaks("".join(texts[: number + 1])) for number in range(len(rows))]


@in_one_folder
@given(table_rows, st.data())
def test_a_row_of_another_length_is_refused_at_its_line(tmp_path: Path, rows, data: st.DataObject) -> None:
    row = data.draw(st.integers(0, len(rows) - 1), label="row")
    rows[row] = data.draw(st.lists(cell, min_size=2, max_size=5).filter(lambda cells: len(cells) != 3), label="cells")
    texts = written([HEADER, *rows])
    message = refusal(tmp_path, "".join(texts))
    assert f"t.csv:{1 + breaks(''.join(texts[: row + 1]))}: the row has" in message
    assert f"(found '{len(rows[row])} values: " in message or f'(found "{len(rows[row])} values: ' in message


@in_one_folder
@given(latin_word, st.integers(0, 4))
def test_another_encoding_is_refused_at_its_line(tmp_path: Path, word: str, row: int) -> None:
    rows = [["1", "2", "yes"] for _ in range(5)]
    rows[row][1] = word
    text = "".join(written([HEADER, *rows]))
    message = refusal(tmp_path, text.encode("latin-1"))
    assert f"t.csv:{row + 2}: the table is not UTF-8" in message
    assert "UTF-16" in refusal(tmp_path, text.encode("utf-16"))
    assert "UTF-16" in refusal(tmp_path, text.encode("utf-16-le"))
    assert "UTF-16" in refusal(tmp_path, text.encode("utf-16-be"))
    assert "UTF-32" in refusal(tmp_path, text.encode("utf-32"))


@in_one_folder
@given(st.integers(0, 4), st.integers(0, 2))
def test_a_nul_byte_is_refused_at_its_line(tmp_path: Path, row: int, column: int) -> None:
    rows = [["1", "2", "yes"] for _ in range(5)]
    rows[row][column] += "\0"
    assert f"t.csv:{row + 2}: a NUL byte" in refusal(tmp_path, "".join(written([HEADER, *rows])))


@pytest.mark.parametrize("line", range(4))
@pytest.mark.parametrize("blank", ["", "  ", "\t"])
def test_a_blank_line_is_refused_wherever_it_is(tmp_path: Path, line: int, blank: str) -> None:
    lines = ["a,b", "1,2", "3,4"]
    lines.insert(line, blank)
    assert f"t.csv:{line + 1}: the line is blank. Delete it." in refusal(tmp_path, "\n".join(lines) + "\n")


@pytest.mark.parametrize(("sign", "name"), [(";", "semicolons"), ("\t", "tabs"), ("|", "bars")])
def test_another_separator_is_named(tmp_path: Path, sign: str, name: str) -> None:
    text = f"income{sign}debt{sign}paid\n1,5{sign}2,5{sign}yes\n"
    assert f"t.csv:1: the columns are separated by {name}" in refusal(tmp_path, text)


BAD = {
    "Excel's first line": ("sep=,\na,b\n1,2\n", "t.csv:1", "Excel"),
    "a title above the names": ("My table\na,b\n1,2\n", "t.csv:1", "one column"),
    "rows by semicolon": ("a,b\n1;2\n", "t.csv:2", "Separate all rows by commas"),
    "row names": ("a,b\nx,1,2\ny,3,4\n", "t.csv:2", "row.names = FALSE"),
    "thousands": ("a,b\n1,2\n1,234,2\n", "t.csv:3", "write 1234 for 1,234"),
    "a comma at each end": ("a,b\n1,2,\n3,4,\n", "t.csv:2", "Delete the comma"),
    "the same name twice": ("a,b,a\n1,2,3\n", "t.csv:1", "columns 1 and 3"),
    "the same name in two normal forms": ("\u00e9,b,e\u0301\n1,2,3\n", "t.csv:1", "columns 1 and 3"),
    "two names missing": ("a,,\n1,2,3\n", "t.csv:1", "two columns have no name"),
    "two byte-order marks": ("\ufeff\ufeffa,b\n1,2\n", "t.csv:1", "byte-order mark"),
    "an open quotation": ('a,b\n1,2\n3,"4\n5,6\n', "t.csv:3", "not closed"),
    "a quotation in a quotation": ('a,b\n1,"2"3"\n', "t.csv:2", "quotation mark"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_plain_csv_is_refused_with_its_remedy(case: str, tmp_path: Path) -> None:
    text, *said = BAD[case]
    message = refusal(tmp_path, text)
    for part in said:
        assert part in message


def test_a_cell_behind_a_quoted_line_break_has_the_line_it_stands_on(tmp_path: Path) -> None:
    found = read(tmp_path, 'a,b,c\n"x\ny",1,2\n"x\r\ny\nz",3,4\n')
    assert [found.where(0, 0)[-2:], found.where(0, 1)[-2:], found.where(1, 0)[-2:], found.where(1, 2)[-2:]] == [
        ":2", ":3", ":4", ":6",
    ]  # fmt: skip
