"""``geco-ray ls``: the names that a grid may use; each component with its title and options."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from geco_ray.cli.data import DataDir
from geco_ray.cli.output import PlainConsole
from geco_ray.cli.plugins import Plugins, load_plugins
from geco_ray.errors import unknown_name
from geco_ray.plan.benchmark import benchmarks, load_named

_BOUNDS = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}
_TYPES = {"integer": "whole number", "number": "number", "string": "text", "boolean": "true or false", "null": "null"}


def component_kinds() -> list[str]:
    """The axes whose components ``geco-ray ls`` lists: ``paradigms``, ``methods``, ``families`` and the like."""
    return list(dict.fromkeys(key for benchmark in benchmarks() for key in benchmark.components))


def components(kind: str) -> dict[str, list[dict[str, Any]]]:
    """Every component of a kind, by the key of a grid that takes it.

    Returns:
        ``geco methods``, ``cfe methods``, ... to entries of name, title and options; an option has name, type (as a
        grid takes it, in words) and default.
    """
    return {
        f"{benchmark.name} {key}": [
            {"name": entry.name, "title": entry.title, "options": _options(entry.options.model_json_schema())}
            for entry in load_named(registry).entries()
        ]
        for benchmark in benchmarks()
        for key, registry in benchmark.components.items()
        if key == kind
    }


def _options(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {"name": name, "type": _type(value), "default": value.get("default")}
        for name, value in schema.get("properties", {}).items()
    ]


def _type(schema: Mapping[str, Any]) -> str:
    """A value's type in words: ``whole number >= 1``."""
    if "anyOf" in schema:
        return " or ".join(map(_type, schema["anyOf"]))
    if "const" in schema:
        return str(schema["const"])
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    kind = _TYPES.get(str(schema.get("type")), str(schema.get("type", "any value")))
    bounds = [f"{sign} {schema[key]:g}" for key, sign in _BOUNDS.items() if key in schema]
    return f"{kind} {', '.join(bounds)}" if bounds else kind


def component_lines(found: Mapping[str, list[dict[str, Any]]]) -> Iterator[str]:
    """For the terminal: the key of a grid, below it each component, below that its options, type and default."""
    for key, entries in found.items():
        yield f"{key.replace(' ', '.')}"
        for entry in entries:
            yield f"  {entry['name']:<24}{entry['title']}"
            for option in entry["options"]:
                default = "null" if option["default"] is None else option["default"]
                yield f"      {option['name']:<20}{option['type']:<27} {default}"


def list_names(
    kind: Annotated[
        str | None, typer.Argument(help="grids, datasets, or an axis: methods, paradigms, families, encoders.")
    ] = None,
    data_dir: DataDir = None,
    plugins: Plugins = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
) -> None:
    """List the names that a grid may use; components with titles and options, grids with their descriptions."""
    from geco_ray.cli.console import grid_descriptions, grids_table, known_names, names_table

    load_plugins(plugins)
    out = PlainConsole()
    kinds = ["grids", "datasets", *component_kinds()]
    if kind is not None and kind not in kinds:
        raise unknown_name("kind of names", kind, kinds)
    if kind in component_kinds():
        found = components(kind)
        if as_json:
            out.print_json(json.dumps(found))
        else:
            for line in component_lines(found):
                out.print(line, soft_wrap=True)
            out.print("In a grid: NAME, or {name: NAME, OPTION: VALUE}; see docs/grids.md.")
        return
    if kind == "grids":
        descriptions = grid_descriptions()
        if as_json:
            out.print_json(json.dumps({"grids": list(descriptions), "descriptions": descriptions}))
        else:
            out.print(grids_table(descriptions))
        return
    names = known_names(kind, data_dir)
    if as_json:
        out.print_json(json.dumps(names))
    else:
        out.print(names_table(names))
