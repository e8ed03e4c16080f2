"""Tables for papers: every .tex file is read by a small parser, headers and rows have one width, all is escaped."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from analysis.report import write_report
from geco_ray.table import PrintedTable, cell

BARE = re.compile(r"(?<!\\)[%#_^~&$]")  # signs that LaTeX would act upon


def parse(text: str) -> tuple[list[str], list[list[str]]]:
    """Header and rows of a table with booktabs' rules.

    Raises:
        ValueError: environments or braces that do not close, a row of another width, a sign that is not escaped.
    """
    opened: list[str] = []
    for kind, name in re.findall(r"\\(begin|end)\{(\w+)\}", text):
        if kind == "begin":
            opened.append(name)
        elif not opened or opened.pop() != name:
            raise ValueError(f"\\end{{{name}}} closes nothing")
    plain = text.replace(r"\{", "").replace(r"\}", "")
    if opened or plain.count("{") != plain.count("}"):
        raise ValueError("something is not closed")
    (columns,) = re.findall(r"\\begin\{tabular\}\{([lr]+)\}", text)
    body = text[text.index(r"\toprule") : text.index(r"\bottomrule")]
    rows = [re.split(r" & ", line.removesuffix(r" \\")) for line in body.splitlines() if line.endswith(r" \\")]
    for row in rows:
        if len(row) != len(columns):
            raise ValueError(f"{len(row)} cells in {len(columns)} columns: {row}")
    words = [piece for row in rows for piece in row]
    for piece in words:
        if BARE.search(re.sub(r"\$[^$]*\$", "", piece)):
            raise ValueError(f"a sign is not escaped: {piece}")
    return rows[0], rows[1:]


def test_every_table_of_a_report_parses(full_ledger: Any, tmp_path: Path) -> None:
    paths = [path for path in write_report(full_ledger, None, tmp_path, "full") if path.suffix == ".tex"]
    assert len(paths) >= 3
    for path in paths:
        header, rows = parse(path.read_text(encoding="utf-8"))
        assert len(header) > 1
        assert rows


def test_headers_and_cells_are_escaped() -> None:
    table = PrintedTable("50 % of $x_1$", ("a_b & c", "#2"), ((cell("{x}\\y"), cell("~^|<Δ>")),))
    header, ((first, second),) = parse(table.render("latex"))
    assert header == [r"a\_b \& c", r"\#2"]
    assert (first, second) == (
        r"\{x\}\textbackslash{}y",
        r"\textasciitilde{}\textasciicircum{}\textbar{}\textless{}$\Delta$\textgreater{}",
    )


@pytest.mark.parametrize(
    "broken", [r"\begin{table}", "\\begin{tabular}{lr}\n\\toprule\na & b & c \\\\\n\\bottomrule\n\\end{tabular}",
               "\\begin{tabular}{lr}\n\\toprule\na_b & c \\\\\n\\bottomrule\n\\end{tabular}"]
)  # fmt: skip
def test_the_parser_refuses_what_latex_would(broken: str) -> None:
    with pytest.raises(ValueError, match=r"closed|columns|escaped"):
        parse(broken)
