"""What ``geco-ray ls methods``, ``paradigms`` and ``families`` show: each component with its title and options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from geco_ray.registry import Registry

COMPONENTS = ("paradigms", "methods", "families")
_BOUNDS = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}
_TYPES = {"integer": "whole number", "number": "number", "string": "text", "boolean": "true or false", "null": "null"}


def components(kind: str) -> dict[str, list[dict[str, Any]]]:
    """Every component of a kind, by the key of a grid that takes it.

    Returns:
        ``geco methods``, ``cfe methods``, ... to entries of name, title and options; an option has name, type (as a
        grid takes it, in words) and default.
    """
    from geco_ray.cfe.changes.base import FAMILIES
    from geco_ray.cfe.methods.base import METHODS
    from geco_ray.geco.attribution.base import ATTRIBUTIONS
    from geco_ray.geco.paradigms.base import PARADIGMS

    registries: dict[str, Registry[Any]] = {
        "geco paradigms": PARADIGMS,
        "geco methods": ATTRIBUTIONS,
        "cfe families": FAMILIES,
        "cfe methods": METHODS,
    }
    return {
        name: [
            {"name": entry.name, "title": entry.title, "options": _options(entry.options.model_json_schema())}
            for entry in registry.entries()
        ]
        for name, registry in registries.items()
        if name.endswith(kind)
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
                yield f"      {option['name']:<20}{option['type']:<28}{default}"
