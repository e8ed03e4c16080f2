"""``geco-ray export`` and ``geco-ray submit``: the way to tools of other environments, and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from geco_ray.cli.data import DataDir
from geco_ray.cli.output import PlainConsole
from geco_ray.cli.plugins import Plugins, load_plugins
from geco_ray.ledger import Ledger
from geco_ray.table import amount

if TYPE_CHECKING:
    from geco_ray.exchange.checking import Coverage

Root = Annotated[str, typer.Option(help="The run folder that has the trained models.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def export(
    name: Annotated[str, typer.Argument(help="A grid: its base models and classifiers are exported.")],
    overrides: Annotated[list[str] | None, typer.Argument(help="KEY=VALUE, such as only=cfe.")] = None,
    to: Annotated[Path, typer.Option(help="The folder to write.")] = Path("export"),
    root: Root = "runs",
    data_dir: DataDir = None,
    plugins: Plugins = None,
    withhold_truth: Annotated[bool, typer.Option(help="Leave the truth out of the sentences.")] = False,
    as_json: Json = False,
) -> None:
    """Write what a tool of another environment needs: requests and networks, sentences and classifiers."""
    from geco_ray.experiments.exchange import export_models, models_of
    from geco_ray.plan.config import load_grid
    from geco_ray.plan.expand import expand

    load_plugins(plugins)
    grid, text = load_grid(name, overrides or ())
    folder = data_dir.absolute() if data_dir else None
    models = models_of(expand(grid, text, folder))
    written = [str(path) for path in export_models(models, Ledger(root), folder, to, truth=not withhold_truth)]
    out = PlainConsole()
    if as_json:
        out.print_json(json.dumps({"folders": written}))
        return
    for path in written:
        out.print(path, soft_wrap=True)
    out.print(f"{amount(len(written), 'folder', 'folders')} written; docs/submissions.md tells what the files hold")


def submit(
    file: Annotated[str, typer.Argument(help="Counterfactuals (CSV, Parquet) or attributions (JSONL, Parquet).")],
    root: Root = "runs",
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Check a file of results that were made elsewhere, and say how a grid names it."""
    from geco_ray.experiments.exchange import check_submission
    from geco_ray.submissions import SubmissionOptions, content_id, find_submission, read_card

    path = find_submission(file)
    card, content = read_card(path), content_id(path)
    rows, checked = check_submission(path, Ledger(root), data_dir.absolute() if data_dir else None)
    facts: dict[str, Any] = {
        "name": card.name, "title": card.title or card.name, "version": card.version, "kind": card.kind,
        "content": content, "rows": rows, "checked": [vars(one) | {"missing": one.missing} for one in checked],
        "grid": f"{{name: {SubmissionOptions.registered_as}, file: {file}}}",
    }  # fmt: skip
    _show(facts, checked, root, as_json)


def _show(facts: dict[str, Any], checked: list[Coverage], root: str, as_json: bool) -> None:
    out = PlainConsole()
    if as_json:
        out.print_json(json.dumps(facts))
        return
    out.print(f"{facts['title']} {facts['version']}: {facts['rows']:,} {facts['kind']}, content {facts['content']}")
    for one in checked:
        accepted = "" if one.accepted is None else f", {one.accepted} of them accepted by the base model"
        missing = f"; {one.missing} missing count as not answered" if one.missing else ""
        out.print(f"{one.of}: {one.answered} of {one.requests} answered{accepted}{missing}", soft_wrap=True)
    if not checked:
        out.print(f"{root} has none of its models: only the file itself was checked", soft_wrap=True)
    out.print(f"in a grid, under methods: {facts['grid']}", soft_wrap=True)
