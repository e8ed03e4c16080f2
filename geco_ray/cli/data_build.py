"""``geco-ray data build`` and ``convert``: tasks of one's own from sentences that were labelled by hand."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from geco_ray.errors import UserError
from geco_ray.table import visible

Json = Annotated[bool, typer.Option("--json", help="Print plain values as JSON.")]


def say(text: str) -> None:
    """Print a line, whatever a user's names hold."""
    typer.echo(visible(text))


def print_json(value: object) -> None:
    """Print plain values as JSON."""
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))


def build(
    labelling: Annotated[Path, typer.Argument(help="A labelling: YAML, or JSON lines.")],
    to: Annotated[Path, typer.Option(help="The folder that --data-dir will name.")],
    name: Annotated[str | None, typer.Option(help="Beginning of the tasks' names; by default the file's name.")] = None,
    kind: Annotated[Literal["binary", "non_binary"] | None, typer.Option(help="Only this kind.")] = None,
    version: Annotated[Literal["all", "subj"] | None, typer.Option(help="Only this version.")] = None,
    neutral: Annotated[
        Literal["english", "paper"] | None, typer.Option(help="Derive neutral forms that are left out, in this style.")
    ] = None,
    replace: Annotated[bool, typer.Option(help="Replace tasks of that name that differ.")] = False,
    as_json: Json = False,
) -> None:
    """Build tasks from a labelled corpus: every form, the ground truth and the split, as GECO was made."""
    from geco_ray.geco.corpus.builder import build_all, write_task
    from geco_ray.geco.corpus.labelling import load_labelling
    from geco_ray.geco.corpus.neutral import NeutralRules

    prefix = _prefix(labelling.stem if name is None else name, named=name is not None)
    rules = None if neutral is None else NeutralRules(style=neutral)
    tasks = build_all(load_labelling(labelling), prefix=prefix, rules=rules, kind=kind, version=version)
    for task in tasks.values():
        _check_target(task, to / task.name, replace)
    for task in tasks.values():
        write_task(task, to / task.name)
    built = [
        {"task": task.name, "train": len(task.train), "test": len(task.test), "path": str(to / task.name)}
        for task in tasks.values()
    ]
    if as_json:
        print_json(built)
        return
    for item in built:
        say(f"{item['task']}: {item['train']} train and {item['test']} test rows in {item['path']}")
    say(f'Use them: geco-ray run geco "geco.datasets=[{built[0]["task"]}]" --data-dir {to}')


def _prefix(name: str, *, named: bool) -> str:
    where = "--name" if named else "the labelling's file name"
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name):
        remedy = None if named else "Give --name."
        raise UserError("cannot begin the name of a task", where=where, found=name, remedy=remedy)
    if name == "demo":
        raise UserError("the demo's tasks have these names", where=where, found=name, remedy="Give another --name.")
    return f"{name}_"


def _check_target(task: Any, folder: Path, replace: bool) -> None:
    from geco_ray.geco.corpus.builder import dump_rows

    for split, rows in (("train", task.train), ("test", task.test)):
        path = folder / f"{split}.jsonl"
        if not replace and path.exists() and path.read_bytes() != dump_rows(rows).encode():
            remedy = "Give --replace, or another --name."
            raise UserError("another data set of that name is there", where=str(path), remedy=remedy)


def convert(
    source: Annotated[Path, typer.Argument(help="The JSON file of GECO's labelling tool.")],
    target: Annotated[Path, typer.Argument(help="The labelling to write: .yaml, .yml or .jsonl.")],
    as_json: Json = False,
) -> None:
    """Turn GECO's labelling JSON into a labelling that `data build` reads."""
    from geco_ray.geco.corpus.convert import convert_geco
    from geco_ray.geco.corpus.writing import write_labelling

    labelling = convert_geco(source)
    write_labelling(labelling, target)
    if as_json:
        print_json({"sentences": len(labelling.sentences), "path": str(target)})
    else:
        say(f"{len(labelling.sentences)} sentences in {target}")
