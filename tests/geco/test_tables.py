"""Printed tables: every text escaped in every form, and the paper's two tables from the released files."""

from __future__ import annotations

import html.parser
import re
from pathlib import Path

import pyarrow as pa
import pytest

from geco_ray.errors import UserError
from geco_ray.geco.audit.audit import Split, audit_tasks
from geco_ray.geco.audit.bias import bias_of_tasks
from geco_ray.geco.audit.tables import (
    counts_table,
    defects_table,
    marked_sentence,
    table_1,
    table_2,
    tables_of_tasks,
)
from geco_ray.geco.rows import Row
from geco_ray.table import FORMS, PrintedTable, Span, cell, printed

ORIGINAL = ("She", "even", "touches", "the", "heart", "of", "her", "Aunt", ".")
NASTY = r"a|b <c> & d_e $f$ 100% #1 ~x^2 {g} \h `i` *j*"


def one(*cells: object) -> PrintedTable:
    return PrintedTable("T", tuple("abc"[: len(cells)]), (tuple(cell(value) for value in cells),))


def test_markdown_keeps_one_row_per_line_and_no_live_markup() -> None:
    text = one(NASTY, "line\nbreak").render("markdown")
    row = text.splitlines()[-1]
    assert row.replace("\\|", "").count("|") == 3
    assert row == (r"| a\|b \<c\> & d\_e $f$ 100% \#1 \~x^2 {g} \\h \`i\` \*j\* | line break |")


def test_latex_escapes_everything_that_it_reads_as_a_command() -> None:
    row = next(line for line in one(NASTY).render("latex").splitlines() if line.startswith(r"a\textbar"))
    assert row == (
        r"a\textbar{}b \textless{}c\textgreater{} \& d\_e \$f\$ 100\% \#1 \textasciitilde{}x\textasciicircum{}2 "
        r"\{g\} \textbackslash{}h `i` *j* \\"
    )


def test_html_is_read_back_as_it_was_written() -> None:
    class Reader(html.parser.HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.cells: list[str] = []
            self.inside = False

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            if tag == "td":
                self.inside = True
                self.cells.append("")

        def handle_endtag(self, tag: str) -> None:
            self.inside = self.inside and tag != "td"

        def handle_data(self, data: str) -> None:
            if self.inside:
                self.cells[-1] += data

    reader = Reader()
    reader.feed(one(NASTY, "é").render("html"))
    assert reader.cells == [NASTY, "é"]


def test_marked_words_show_in_every_form() -> None:
    table = PrintedTable("T", ("a",), (((Span("x", True), Span(" y")),),))
    assert "| **x** y |" in table.render("markdown")
    assert r"\textbf{x} y \\" in table.render("latex")
    assert "<td><mark>x</mark> y</td>" in table.render("html")


def test_an_unknown_form_is_refused_with_the_closest() -> None:
    with pytest.raises(UserError, match="latex"):
        one("x").render("latx")


def test_any_table_prints_nulls_lists_and_floats() -> None:
    table = pa.table({"a_b": [1, 2], "share": [0.12345, None], "sizes": [[1, 2], []], "name": ["x", "y"]})
    text = printed(table, "T", digits=3).render("markdown")
    assert "| a b | share | sizes | name |" in text
    assert "| 1 | 0.123 | 1 / 2 | x |" in text
    assert "| 2 | – |  | y |" in text


def row(text: str, truth: str, gender: str = "female", idx: int = 0) -> Row:
    labels = ("female", "male", "neutral")
    return Row(tuple(text.split(" ")), tuple(map(int, truth)), gender, labels.index(gender), idx, 1)


def test_a_sentence_is_marked_by_position_and_blank_words_show_as_nothing() -> None:
    spans = marked_sentence(row("she  saw she ", "11010"))
    assert [(span.text, span.marked) for span in spans if span.text != " "] == [
        ("she", True),
        ("", False),
        ("saw", False),
        ("she", True),
        ("", False),
    ]


def test_table_1_by_hand() -> None:
    train = (row("She runs far", "100"), row("He runs far", "100", "male"))
    test = (row("She sits", "10", idx=1), row("He sits", "10", "male", idx=1))
    pair = [Split("mine", "train", ("female", "male"), train), Split("mine", "test", ("female", "male"), test)]
    values = ["".join(span.text for span in content) for content in table_1(pair).rows[0]]
    assert values == [
        "mine", "female, male", "2", "2", "2", "2.50 ± 0.50", "1.00 ± 0.00", "0.400", "0", "5", "0.500",
    ]  # fmt: skip


def test_table_2_refuses_a_sentence_that_is_not_there() -> None:
    split = Split("mine", "train", ("female",), (row("she", "1"),))
    with pytest.raises(UserError, match="7 is not in 'mine'"):
        table_2([split], [split], 7)


def test_the_paper_tables_of_the_release(data_dir: Path) -> None:
    first, second = tables_of_tasks(
        data_dir, original=["She", "even", "touches", "the", "heart", "of", "her", "Aunt", "."]
    )
    text = first.render("markdown")
    assert text.count("| 1610 |") == 4
    assert "| 3864 | 966 |" in text
    assert "$D_S^{nb}$" in first.render("latex")
    assert len(second.rows) == 7
    text = second.render("markdown")
    assert "**She** even touches the heart of **her** Aunt ." in text  # D_S
    assert "**He** even touches the heart of **his** **Uncle** ." in text  # D_A
    assert "**They** even touches the heart of **their** **Parent's Sibling** ." in text
    for form in FORMS:
        assert first.render(form) == first.render(form)
        assert second.render(form).endswith("\n")


def test_the_data_page_shows_what_the_commands_print(data_dir: Path) -> None:
    result = audit_tasks(data_dir=data_dir)
    versions = tables_of_tasks(data_dir, original=ORIGINAL)[1]
    page = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
    for name, table in (("counts", counts_table(result)), ("defects", defects_table(result)), ("versions", versions)):
        shown = page.split(f"<!-- {name} -->\n")[1].split(f"\n<!-- end of {name} -->")[0]
        assert f"**{table.title}**\n\n{shown}\n" == table.render("markdown")


def test_the_bias_on_the_data_page_is_the_computed_one(data_dir: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
    lines = [
        line.strip("| ").split(" | ") for line in page.splitlines() if re.match(r"\| `\w+` \| (paper|literal) ", line)
    ]
    assert len(lines) == 4
    found = bias_of_tasks(("non_binary_gender_all", "non_binary_gender_subj"), data_dir).to_pylist()
    for task, reading, *values in lines:
        key = (task.strip("`"), reading, "train+test")
        computed = [r["bias"] for r in found if (r["task"], r["reading"], r["scope"]) == key]
        assert values == [f"{value:.4f}"[1:] for value in computed]
