"""A grid's report: tables and figures of its finished cells, in the terminal and as files."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from rich.console import Console
from rich.text import Text

from analysis.about.card import card, cells_view
from analysis.about.provenance import provenance_view
from analysis.load import LedgerLike
from analysis.missing import Group, groups, missing_view
from analysis.publish import publish
from analysis.topic import Numbers, Section, topics
from analysis.views import View, markdown_page, notes_of, print_views, to_latex
from geco_ray.arithmetic import kernel_warning
from geco_ray.cells import Cell

if TYPE_CHECKING:
    from analysis.figures import Picture


def read_numbers(
    ledger: LedgerLike, ids: Collection[str] | None = None, data_dir: Path | None = None, person_rows: bool = True
) -> list[Numbers[Any]]:
    """The numbers of every benchmark, of the finished cells among ``ids`` (all when None).

    ``data_dir`` is the folder of the user's data, whose cards give titles; None for the usual places. ``person_rows``
    is False where rows that may be of persons stay out of the page.
    """
    numbers = [Numbers(topic, ledger, ids, data_dir, person_rows) for topic in topics()]
    topics_here = max(1, sum(bool(each.counts()) for each in numbers))
    for each in numbers:
        each.level /= topics_here
        each.room //= topics_here
    return numbers


def print_tables(
    ledger: LedgerLike,
    ids: Collection[str] | None = None,
    console: Console | None = None,
    numbers: Sequence[Numbers[Any]] | None = None,
) -> None:
    """Print all tables of the finished cells among ``ids`` (all when None); ``numbers`` if they are read already."""
    console = console or Console(markup=False, emoji=False)
    numbers = numbers or read_numbers(ledger, ids)
    parts = [views for each in numbers if (views := each.views())]
    for views in parts:
        print_views(views, console)
        for note in notes_of(views):
            console.print(Text(note, style="dim"))
        console.print()
    if not parts:
        console.print(_nothing(numbers))


def write_report(
    ledger: LedgerLike,
    ids: Collection[str] | None,
    folder: str | Path,
    name: str,
    numbers: Sequence[Numbers[Any]] | None = None,
    planned: Sequence[Cell] = (),
) -> list[Path]:
    """Write the report of the finished cells among ``ids`` (all when None) into ``folder``.

    Files: ``index.html`` (self-contained), ``tables.md``, each table of numbers as CSV and Parquet, each table for
    people as LaTeX, each figure as PNG, SVG and PDF, and what the benchmarks' own sections hold. The same cells give
    the same bytes, and a file whose content would not change is not touched.

    ``name`` is the grid; ``numbers`` are those of :func:`read_numbers`, if they are read already; ``planned`` are all
    cells of the grid, so that the page can say what is missing and why.

    Returns:
        The paths of all files of the report, sorted.

    Raises:
        StorageError: the folder cannot be written.
    """
    from analysis import page

    numbers = numbers or read_numbers(ledger, ids)
    shown = [(each, views) for each in numbers if (views := each.views())]
    parts, pictures = [views for _, views in shown], [picture for each in numbers for picture in each.pictures()]
    sections = [section for each in numbers for section in each.topic.sections(each, name)]
    cells = groups(ledger, planned)
    lacking = missing_view(cells, [each.titles for each in numbers])
    parts = [[lacking], *parts] if lacking else parts
    files = _tables(numbers) | {"tables.md": markdown_page(f"Results of grid {name}", parts).encode()}
    files |= _shown_files(parts, pictures, sections)
    downloads = _downloads(files, _contents(numbers, sections))
    lead, counts = _lead([each.topic.question for each, _ in shown]), [one for each in numbers for one in each.counts()]
    about = card(numbers, cells), _closing(numbers, cells, name)
    texts = _nothing(numbers), kernel_warning(info for each in numbers for info in each.infos())
    index = page.index_page(name, lead, counts, pictures, parts, sections, downloads, *texts, *about)
    return publish(Path(folder), files | {"index.html": index})


def _closing(numbers: Sequence[Numbers[Any]], cells: Mapping[tuple[str, str, str], Group], grid: str) -> list[View]:
    """The tables of how the run went and with what."""
    views = [view for each in numbers for view in each.topic.health(each)]
    return [view for view in (cells_view(cells), *views, provenance_view(grid, numbers)) if view]


def _shown_files(
    parts: Sequence[Sequence[View]], pictures: Sequence[Picture], sections: Sequence[Section]
) -> dict[str, bytes]:
    """Tables for people, figures in all forms and the sections' own files, by name."""
    files = {f"{view.key}.tex": to_latex(view).encode() for views in parts for view in views}
    for picture in pictures:
        files |= {f"{picture.name}.{form}": getattr(picture, form) for form in ("png", "svg", "pdf")}
    for section in sections:
        files |= section.files
    return files


def _downloads(files: Iterable[str], contents: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(file, contents.get(file, "figure")) for file in sorted(files)]


def _contents(numbers: Sequence[Numbers[Any]], sections: Sequence[Section]) -> dict[str, str]:
    """File name to what is in it, of all files but figures."""
    contents = {"tables.md": "the tables of this page in Markdown"}
    for section in sections:
        contents |= section.contents
    for each in numbers:
        for file, table in each.topic.tables.items():
            contents[file] = table.contents
            contents[file.removesuffix(".csv") + ".parquet"] = f"{table.contents} (Parquet)"
        contents |= {f"{view.key}.tex": f"{view.title} (LaTeX, package booktabs)" for view in each.views()}
        for picture in each.pictures():
            source = f", drawn from {picture.table}.csv" if picture.table else ""
            contents |= {f"{picture.name}.{form}": f"figure{source}" for form in ("png", "svg", "pdf")}
    return contents


def _tables(numbers: Sequence[Numbers[Any]]) -> dict[str, bytes]:
    """CSV and Parquet files by name.

    Raises:
        ValueError: two benchmarks give their tables one name.
    """
    files: dict[str, bytes] = {}
    for each in numbers:
        for file, table in each.files().items():
            if file in files:
                raise ValueError(f"two benchmarks have a table {file!r}, one of them is {each.topic.name!r}")
            files[file] = _csv(table)
            files[file.removesuffix(".csv") + ".parquet"] = _parquet(table)
    return files


def _csv(table: pd.DataFrame) -> bytes:
    """The numbers at full use (ten significant digits), UTF-8, one line per row; null is an empty field."""
    text = table.to_csv(index=False, float_format="%.10g", lineterminator="\n")
    return text.encode()


def _parquet(table: pd.DataFrame) -> bytes:
    """The same table with the types of its columns, all digits kept."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    arrow = pa.Table.from_pandas(table, preserve_index=False).replace_schema_metadata(None)
    pq.write_table(arrow, sink, compression="zstd")
    return sink.getvalue()


def _lead(questions: Sequence[str]) -> str:
    """The benchmarks' questions as one sentence."""
    *first, last = questions or [""]
    text = f"{', '.join(first)}, and {last}" if first else last
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _nothing(numbers: Sequence[Numbers[Any]]) -> str:
    kinds = " or ".join(each.topic.begins_with for each in numbers)
    return f"No result to show yet: no {kinds} cell of this grid is finished."
