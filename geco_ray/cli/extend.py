"""``geco-ray new`` and ``geco-ray test``: a component of one's own, begun and held to the rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from geco_ray.cli.output import PlainConsole, labelled
from geco_ray.errors import UserError
from geco_ray.table import amount

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def new_component(
    kind: Annotated[str, typer.Argument(help="attribution, counterfactual, change, paradigm or dataset.")],
    name: Annotated[str, typer.Argument(help="Letters in lower case, digits and _.")],
    to: Annotated[Path, typer.Option(help="The folder to write in; for a data set, your folder of data.")] = Path(),
) -> None:
    """Write a small working file of a kind, and its test."""
    from geco_ray.scaffold import write_new

    out = PlainConsole()
    written = write_new(kind, name, to)
    for path in written:
        out.print(str(path), soft_wrap=True)
    if written[0].suffix == ".py":
        out.print(
            f"`geco-ray test {written[0]}:{name}` checks it; in a grid: {{name: {written[0]}:{name}}}", soft_wrap=True
        )
    else:
        out.print(f"`geco-ray data card {name} --data-dir {to}` shows it", soft_wrap=True)


def check_component(
    reference: Annotated[str, typer.Argument(help="FILE.py:NAME, MODULE:NAME, or the name of an installed component.")],
    options: Annotated[list[str] | None, typer.Argument(help="KEY=VALUE, options that make it quick.")] = None,
    as_json: Json = False,
) -> None:
    """Hold a component to the rules of its kind; exit code 1 if it breaks one."""
    from geco_ray.testing import check

    found = check(reference, dict(_option(word) for word in options or ()))
    out = PlainConsole()
    if as_json:
        faults = [vars(fault) for fault in found.faults]
        out.print_json(json.dumps({"name": found.name, "kind": found.kind, "passed": found.passed, "faults": faults}))
    else:
        for fault in found.faults:
            out.print(labelled("fault", "red", str(fault)), soft_wrap=True)
        checks, faults_ = amount(len(found.passed), "check", "checks"), amount(len(found.faults), "fault", "faults")
        out.print(f"{found.kind} {found.name}: {checks} passed, {faults_}", soft_wrap=True)
    if found.faults:
        raise typer.Exit(1)


def _option(word: str) -> tuple[str, Any]:
    import yaml

    key, sign, text = word.partition("=")
    if not sign or not key:
        raise UserError("an option is KEY=VALUE", where=word, remedy="Write it as epochs=2")
    return key, yaml.safe_load(text)
