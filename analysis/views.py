"""Tables as people read them: rows of text, with the count beside every number and a gap where there is none.

A view is made once from a table of numbers and then shown alike in the terminal, in Markdown and in HTML.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
from rich.console import Console

from analysis.styles import Style, Titles, variants
from geco_ray.table import PrintedTable, cell, escape_signs, markdown_rows
from geco_ray.terminal import fitted_table

GAP = "–"


@dataclass(frozen=True)
class View:
    """A table to show: ``key`` names it in files and links; the first column is a label, the others are numbers.

    ``narrow`` is a shorter header for terminals, where the whole table should fit into eighty columns.
    """

    key: str
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    findings: tuple[str, ...] = ()  # what the numbers say, in plain sentences
    notes: tuple[str, ...] = ()  # how they are made
    footer: int = 0  # how many of the last rows describe the columns (chance, seeds, ...)
    narrow: tuple[str, ...] = ()
    setup: str = ""  # what a reader would not expect: encoders, samples, options unlike the defaults

    @property
    def table(self) -> PrintedTable:
        """The view without what is said of it."""
        rows = tuple(tuple(map(cell, row)) for row in self.rows)
        return PrintedTable(self.title, self.header, rows, labelled=True, footer=self.footer, narrow=self.narrow)


def notes_of(views: Sequence[View]) -> list[str]:
    """How the views' numbers are made: each note once, in the order in which it first appears."""
    return list(dict.fromkeys(note for view in views for note in view.notes))


def print_views(views: Sequence[View], console: Console) -> None:
    """Print the views, fitted to the terminal, or at full width where there is none."""
    width = console.width if console.is_terminal else None
    for view in views:
        console.print(fitted_table(view.table, width, view.setup, view.findings), crop=False)


def to_markdown(view: View) -> str:
    """The view as a GitHub table with a heading and its findings."""
    lines = [f"### {escape_signs(view.title)}", "", *markdown_rows(view.table, escape_signs)]
    lines += ["", _small(view.setup)] if view.setup else []
    lines += [text for finding in view.findings for text in ("", escape_signs(finding))]
    return "\n".join(lines) + "\n"


def to_latex(view: View) -> str:
    """The view as a LaTeX table, its findings, settings and notes below it."""
    below = tuple(text for text in (*view.findings, view.setup, *view.notes) if text)
    return replace(view.table, notes=below).render("latex")


def _small(text: str) -> str:
    return f"<sub>{escape_signs(text).replace('>', '&gt;')}</sub>"


def markdown_page(heading: str, parts: Sequence[Sequence[View]]) -> str:
    """All views under one heading, those of each part followed by their notes."""
    lines = [f"## {escape_signs(heading)}\n"]
    for part in parts:
        notes = (f"{_small(note)}\n" for note in notes_of(part))
        lines += [*map(to_markdown, part), *notes]
    return "\n".join(lines)


def number(value: Any, digits: int) -> str:
    """``value`` with ``digits`` decimals; a gap for null."""
    return GAP if value is None or pd.isna(value) else f"{value:.{digits}f}"


def percent(fraction: Any, digits: int) -> str:
    """A fraction in percent; 100 and 0 are kept for all and nothing, so .9999 has more decimals: ``99.99``."""
    if fraction is None or pd.isna(fraction) or fraction in (0, 1):
        return number(None if fraction is None or pd.isna(fraction) else 100 * fraction, digits)
    for more in range(digits, digits + 4):
        text = f"{100 * fraction:.{more}f}"
        if float(text) not in (0.0, 100.0):
            return text
    return f">{100 - 10.0**-more:.{more}f}" if fraction > 0.5 else f"<{10.0**-more:.{more}f}"


def spread(mean: Any, sd: Any, n: Any, digits: int, usual: int | None = None) -> str:
    """``0.71 ± 0.03``; n is added when it is 0 or 1 or, with ``usual``, when it differs from that."""
    seeds = 0 if n is None or pd.isna(n) else int(n)
    text = number(mean, digits)
    if text == GAP:
        return f"{GAP} (n={seeds})"
    if seeds > 1:
        text += f" ± {number(sd, digits)}"
    return text if seeds > 1 and (usual is None or seeds == usual) else f"{text} (n={seeds})"


def counted(values: pd.Series, one: str, many: str) -> str:
    """``5 seeds`` or ``3 to 5 seeds``, from a column of counts."""
    known = sorted({int(value) for value in values.dropna()})
    if not known:
        return f"no {many}"
    text = str(known[0]) if len(known) == 1 else f"{known[0]} to {known[-1]}"
    return f"{text} {one if known == [1] else many}"


def settings_tails(table: pd.DataFrame, by: list[str], concerns: Callable[[str], bool]) -> list[str]:
    """For each row the settings that tell it from others of the same ``by``, as `` [steps=50]``; else empty.

    ``concerns`` tells which settings count, by their dotted keys.
    """
    flat = {
        text: {key: value for key, value in _flatten(json.loads(text)) if concerns(key)}
        for text in set(table["settings"].dropna())
    }
    kinds = {name: set(group["settings"].dropna()) for name, group in table.groupby(by, sort=False, dropna=False)}
    tails = []
    for name, text in zip(table[by].itertuples(index=False, name=None), table["settings"], strict=True):
        others = [flat[other] for other in kinds[name]]
        mine = flat.get(text, {})
        unlike = [key for key in sorted(mine) if any(other.get(key) != mine[key] for other in others)]
        tails.append(" [" + ", ".join(f"{key.split('.')[-1]}={mine[key]}" for key in unlike) + "]" if unlike else "")
    return tails


def ordered(table: pd.DataFrame, column: str, label: str) -> list[str]:
    """The distinct labels of a table of :func:`with_titles`, in the order of the names in ``column``; 5 before 10."""
    rows = set(zip(table[f"{column}_rank"], table[column], table[label], strict=True))
    inside = sorted(rows, key=lambda row: (row[0], row[1], _natural(row[2])))
    return list(dict.fromkeys(text for _, _, text in inside))


def names_of(table: pd.DataFrame, column: str) -> list[str]:
    """The distinct names in ``column`` of a table of :func:`with_titles`, in their order."""
    return list(
        dict.fromkeys(name for _, name in sorted(set(zip(table[f"{column}_rank"], table[column], strict=True))))
    )


def label_styles(table: pd.DataFrame, column: str, label: str) -> dict[str, Style]:
    """Label to style of a table of :func:`with_titles`, in order; the labels of one name have shades of their own."""
    names = table.drop_duplicates(label).set_index(label)
    looks = dict(zip(names[column], names[f"{column}_style"], strict=True))
    return variants([(str(names.loc[text, column]), text) for text in ordered(table, column, label)], looks)


def with_titles(table: pd.DataFrame, titles: Titles, kinds: Iterable[str]) -> pd.DataFrame:
    """``table`` with ``dataset_title``, ``_rank``, ``_style`` and ``_aims`` for the kind ``dataset``, and so on."""
    out = table.copy()
    for kind in kinds:
        names, own = set(out[kind]), titles.kind(kind)
        out[f"{kind}_title"] = out[kind].map(titles.of(kind, names))
        out[f"{kind}_rank"] = out[kind].map({name: own.style(name).rank for name in names})
        out[f"{kind}_style"] = out[kind].map({name: own.style(name) for name in names})
        out[f"{kind}_aims"] = [own.profile(name).aims for name in out[kind]]
    return out


def title_of(part: pd.DataFrame, kind: str, name: str) -> str:
    """The title of ``name`` in a table of :func:`with_titles` that has it."""
    return str(part.loc[part[kind] == name, f"{kind}_title"].iloc[0])


def _natural(text: str) -> tuple[list[tuple[str, float]], str]:
    """A sort key under which the numbers within texts count as numbers."""
    pieces = re.findall(r"([^\d]*)(\d+(?:\.\d+)?(?:e-?\d+)?)?", text)
    return [(words, float(digits or -1)) for words, digits in pieces], text


def _flatten(value: Any, prefix: str = "") -> list[tuple[str, Any]]:
    if not isinstance(value, dict):
        return [(prefix, json.dumps(value))]
    return [pair for key in value for pair in _flatten(value[key], f"{prefix}.{key}" if prefix else key)]
