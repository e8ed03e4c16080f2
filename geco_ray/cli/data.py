"""``geco-ray data``: get the data of both benchmarks, look through them, make sets of your own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console

from geco_ray.cli import data_build
from geco_ray.cli.data_build import Json, print_json, say
from geco_ray.cli.output import PlainConsole
from geco_ray.errors import UserError, unknown_name

app = typer.Typer(no_args_is_help=True, help="Get, audit and build data sets.")
app.command()(data_build.build)
app.command()(data_build.convert)

Tasks = Annotated[list[str] | None, typer.Argument(help="Names of tasks; the four GECO tasks by default.")]
TasksAndTables = Annotated[
    list[str] | None, typer.Argument(help="Names of tasks and tables; the four GECO tasks by default.")
]
DataDir = Annotated[
    Path | None,
    typer.Option(
        help="Your folder of data files; else GECO_RAY_DATA, the cache, or, for GECO tasks alone, a download."
    ),
]
_LEGEND = """negative: the word marks the first class (female, number 0); positive: it marks the last class.
Three classes are correlated with 0, 1 and 2, so that the middle one hardly shows; --per-class takes each class
against the others, and positive is then for the class."""
_WIDE = 240  # a pipe has no width; at rich's 80 columns the tables would be cut into slivers


def _console() -> Console:
    console = PlainConsole()
    return console if console.is_terminal else PlainConsole(width=_WIDE)


def _task_names(tasks: Sequence[str] | None) -> list[str]:
    from geco_ray.geco.data.sources import GECO_TASKS

    return list(dict.fromkeys(tasks)) if tasks else list(GECO_TASKS)


@app.command()
def download(
    tasks: Annotated[
        list[str] | None,
        typer.Argument(help="Names, or geco or tabular for all of a kind; by default all that needs no acceptance."),
    ] = None,
    to: Annotated[Path | None, typer.Option(help="A folder for --data-dir; by default the download cache.")] = None,
    data_dir: DataDir = None,
    offline: Annotated[bool, typer.Option(help="Only check what is there; never touch the network.")] = False,
    accept_terms: Annotated[
        bool, typer.Option(help="I accept the terms of use of what I name (heloc: FICO's).")
    ] = False,
    as_json: Json = False,
) -> None:
    """Download data sets from their pinned commits and check them; what is there already is only checked.

    The four GECO tasks and the tables diabetes, wine_quality and heloc; breast_cancer comes with scikit-learn.
    """
    names = _to_download(tasks or [], accept_terms)
    if to is not None and data_dir is not None and to != data_dir:
        raise UserError("--to and --data-dir name two folders", remedy="Give one of them.")
    folder = to if to is not None else data_dir
    switch = True if offline else None
    files = [item for name in names for item in _fetch(name, folder, switch, accept_terms)]
    if as_json:
        print_json(files)
        return
    for item in files:
        say(f"{item['data set']}: {item['path']}")
    if not tasks and not accept_terms:
        typer.echo("heloc is left out, since it has terms of use: `geco-ray data download heloc`.", err=True)


def _to_download(asked: Sequence[str], accept_terms: bool) -> list[str]:
    from geco_ray.cfe.data.cards import BUILT_IN
    from geco_ray.geco.data.sources import GECO_TASKS

    tables = [name for name, card in BUILT_IN.items() if card.url]
    free = [name for name in tables if accept_terms or not BUILT_IN[name].terms]
    groups = {"geco": list(GECO_TASKS), "tabular": free}
    known = [*GECO_TASKS, *BUILT_IN, *groups]
    for name in asked:
        if name not in known:
            raise unknown_name("data set to download", name, known)
    names = [member for name in asked or groups for member in groups.get(name, [name])]
    return list(dict.fromkeys(names))


def _fetch(name: str, folder: Path | None, offline: bool | None, accept_terms: bool) -> list[dict[str, str]]:
    from geco_ray.cfe.data.datasets import download_dataset
    from geco_ray.geco.data.sources import GECO_TASKS, fetch_task

    if name in GECO_TASKS:
        paths = list(fetch_task(name, folder, offline=offline).values())
    else:
        paths = [download_dataset(name, folder, accept_terms=accept_terms, offline=offline)]
    return [{"data set": name, "path": str(path)} for path in paths]


@app.command()
def audit(
    tasks: TasksAndTables = None,
    data_dir: DataDir = None,
    encoder: Annotated[
        list[str] | None, typer.Option(help="And what this encoder sees of the tasks, by its tokenizer; repeatable.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Count what is in the files of tasks and what is wrong with them; --json lists every occurrence with its line.

    For tables (diabetes, or a CSV of your own): the rows used, and values that may stand for missing ones.
    """
    from geco_ray.cli.audit import audit_by_kind
    from geco_ray.terminal import show_table

    values, tables = audit_by_kind(_task_names(tasks), data_dir, encoder or ())
    if as_json:
        print_json(values)
        return
    console = _console()
    for number, table in enumerate(tables):
        if number:
            console.print()
        show_table(console, table)


@app.command()
def bias(
    tasks: Tasks = None,
    data_dir: DataDir = None,
    figure: Annotated[Path | None, typer.Option(help="Draw it too: a name ending in .png or .svg.")] = None,
    terms: Annotated[
        Path | None, typer.Option(help="YAML with the terms of each class; the English pronouns by default.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compute how evenly the classes occur together with all other words, in three readings."""
    from geco_ray.cli.data_tables import bias_table
    from geco_ray.geco.audit.bias import GENDER_TERMS, bias_of_tasks, read_terms
    from geco_ray.terminal import rich_table

    if figure is not None and figure.suffix not in (".png", ".svg"):
        raise UserError("a figure is a PNG or an SVG", where="--figure", found=str(figure), expected=".png or .svg")
    chosen = GENDER_TERMS if terms is None else read_terms(terms)
    found = bias_of_tasks(_task_names(tasks), data_dir, terms=chosen)
    if figure is not None:
        _draw_bias(found, figure)
    if as_json:
        print_json(found.to_pylist())
        return
    console = _console()
    console.print(rich_table(bias_table(found)))
    if figure is not None:
        console.print(f"The figure is at {figure}.", soft_wrap=True)


def _draw_bias(table: Any, path: Path) -> None:
    from analysis.geco.figures.bias import bias_figure

    picture = bias_figure(table.to_pandas())
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(picture.png if path.suffix == ".png" else picture.svg)
    except OSError as error:
        raise UserError(f"the figure cannot be written: {error.strerror}", where=str(path)) from None


@app.command()
def correlations(
    tasks: Tasks = None,
    data_dir: DataDir = None,
    top: Annotated[int, typer.Option(min=1, help="Words on each side.")] = 10,
    per_class: Annotated[bool, typer.Option(help="Each class against the others as well.")] = False,
    as_json: Json = False,
) -> None:
    """Show which words of the test split go with which class, by tf-idf."""
    from geco_ray.geco.audit.correlations import correlations_of_tasks
    from geco_ray.table import printed
    from geco_ray.terminal import rich_table

    found = correlations_of_tasks(_task_names(tasks), data_dir, top, per_class=per_class)
    if as_json:
        print_json(found.to_pylist())
    else:
        console = _console()
        console.print(rich_table(printed(found, "Words that go with the label")))
        console.print(f"\n{_LEGEND}")


@app.command()
def tables(
    data_dir: DataDir = None,
    form: Annotated[
        Literal["markdown", "latex", "html"] | None, typer.Option("--format", help="For a document; else for the eye.")
    ] = None,
    labelling: Annotated[
        Path | None, typer.Option(help="GECO's labelling JSON, for the unaltered sentence; labelling.json by default.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Print the paper's Tables 1 and 2: properties of the four tasks, and one sentence in all its versions."""
    from geco_ray.cli.data_tables import plain_table
    from geco_ray.geco.audit.tables import tables_of_tasks
    from geco_ray.terminal import rich_table

    found = tables_of_tasks(data_dir, _original(labelling, data_dir))
    if as_json:
        print_json([plain_table(table) for table in found])
    elif form is not None:
        typer.echo("\n".join(table.render(form) for table in found), nl=False)
    else:
        console = _console()
        for table in found:
            console.print(rich_table(table))
            console.print()


def _original(labelling: Path | None, data_dir: Path | None) -> tuple[str, ...] | None:
    """The unaltered words of the example, or None where no labelled source lies with the data."""
    from geco_ray.files.roots import data_roots
    from geco_ray.geco.audit.tables import EXAMPLE_SENTENCE
    from geco_ray.geco.corpus.convert import convert_geco

    if labelling is None:
        places = [folder / "labelling.json" for root in data_roots(data_dir) for folder in (root / "geco", root)]
        labelling = next((path for path in places if path.is_file()), None)
        if labelling is None:
            return None
    for sentence in convert_geco(labelling).sentences:
        if sentence.id == EXAMPLE_SENTENCE:
            return sentence.words
    raise UserError(f"the labelling has no sentence {EXAMPLE_SENTENCE}", where=str(labelling))


@app.command()
def card(
    name: Annotated[str, typer.Argument(help="A data set of either benchmark.")],
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Show where a data set comes from, on what terms, and what it is and is not for."""
    from geco_ray.cli.data_tables import any_card, card_table

    found = any_card(name, data_dir)
    if as_json:
        print_json(found)
    else:
        _console().print(card_table(found))
