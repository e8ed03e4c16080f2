"""Tables in a terminal and in a pipe: all of the text and every digit, at any width."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from analysis.views import View, print_views

METHODS = ("Wachter [trade_off=1.0]", "APΔS", "RBR", "KD-tree", "RNCE", "BetaRCE [max_shells=50, samples=10]",
           "ROAR-LIME", "RobX balanced", "RobX robust-first")  # fmt: skip
FAMILIES = ("Architecture", "Bootstrap", "New seed", "Training config", "Label update", "Deletion", "Data addition",
            "Parameter perturb. (bounded_parameter)")  # fmt: skip
SHORT = ("Arch.", "Boot.", "Seed", "Config", "Label", "Delet.", "Addit.", "Perturb.")


def view(cell: str = "{}.{} (n=1)") -> View:
    rows = [
        (method, *(cell.format(10 + 9 * place, column) for column in range(8))) for place, method in enumerate(METHODS)
    ]
    rows.append(("distinct draws / all variants", *(f"{29 + n}/12{n}" for n in range(8))))
    header = ("Method", *FAMILIES)
    return View("key", "Robustness [paper]: a title", header, tuple(rows), footer=1, narrow=("Method", *SHORT))


def printed(table: View, width: int = 80, terminal: bool = True) -> str:
    file = io.StringIO()
    print_views([table], Console(file=file, width=width, force_terminal=terminal, color_system=None))
    return file.getvalue()


def words(table: View) -> list[str]:
    return [word for row in table.rows for cell in row for word in re.split(r"\s|(?<=_)", cell) if word]


@pytest.mark.parametrize("cell", ["{}.{} (n=1)", "{}.{} ± 10.{}", "– (n=0)", "{}.{}"])
@pytest.mark.parametrize("width", [40, 80, 130])
@pytest.mark.parametrize("terminal", [True, False])
def test_nothing_is_lost(cell: str, width: int, terminal: bool) -> None:
    table = view(cell.replace("10.{}", "10.1"))
    text = printed(table, width, terminal)
    assert "…" not in text
    for word in set(words(table)) - {"±"}:
        assert word in text
    numbers = re.findall(r"\d+\.\d", " ".join(cell for row in table.rows for cell in row[1:]))
    assert sorted(re.findall(r"(?<!=)\b\d+\.\d", text)) == sorted(numbers)


def test_a_table_that_can_fit_stays_within_the_width() -> None:
    lines = printed(view("{}.{}")).splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("off=1.0]") for line in lines)
    assert "Arch. = Architecture" in " ".join(lines)


def test_a_pipe_gets_one_line_per_row_and_full_headers() -> None:
    lines = printed(view(), terminal=False).splitlines()
    assert len([line for line in lines if "(n=1)" in line]) == len(METHODS)
    assert any(all(name in line for name in FAMILIES) for line in lines)


def test_a_deviation_takes_a_line_of_its_own_where_the_table_is_too_wide() -> None:
    header = ("Method", *(f"model {place}" for place in range(6)))
    table = View("key", "t", header, (("Integrated Gradients", *["0.123 ± 0.045"] * 6),))
    assert printed(table, 130).count("0.123 ± 0.045") == 6
    assert printed(table, 92).count("0.123±0.045") == 6
    lines = printed(table, 80).splitlines()
    assert max(map(len, lines)) <= 80
    assert [(line.count("0.123"), line.count("±0.045")) for line in lines if "0." in line] == [(6, 0), (0, 6)]


def test_brackets_are_text_and_the_title_is_one_line() -> None:
    table = View("key", "Mass accuracy [bold]of[/bold] everything: " + "long " * 6, ("Method", "OLA-CEA [epochs=2]"),
                 (("LIME [samples=3]", "0.123"),))  # fmt: skip
    text = printed(table)
    assert "OLA-CEA [epochs=2]" in text
    assert "LIME [samples=3]" in text
    assert text.splitlines()[0].rstrip() == table.title.rstrip()
