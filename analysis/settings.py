"""What a table's numbers were made with, where a reader would not expect it: options unlike the defaults."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from analysis.styles import Names, registered_entry
from geco_ray.errors import UserError

_KEPT = "All options have their default values."


def options_sentence(unlike: list[str]) -> str:
    """The texts of :func:`unlike_defaults` as a sentence."""
    return f"Options unlike the defaults: {'; '.join(unlike)}." if unlike else _KEPT


def unlike_defaults(
    names: Names,
    titles: Mapping[str, str],
    used: Iterable[tuple[str, dict[str, Any]]],
    defaults: Callable[[str], Mapping[str, Any]],
) -> list[str]:
    """For each name with options unlike its defaults a text such as ``Integrated Gradients n_steps=5 or 10``.

    Args:
        names: the kind of the names, for their order.
        titles: name to title.
        used: pairs of a name and the options that it was used with.
        defaults: gives a name's default options.
    """
    values: dict[str, dict[str, list[Any]]] = {}
    for name, options in used:
        for key, value in options.items():
            seen = values.setdefault(name, {}).setdefault(key, [])
            if value not in seen:
                seen.append(value)
    texts = []
    for name in names.in_order(values):
        usual = defaults(name)
        unlike = {key: seen for key, seen in values[name].items() if key not in usual or seen != [usual[key]]}
        if unlike:
            shown = (f"{key}={_either(seen, usual.get(key))}" for key, seen in sorted(unlike.items()))
            texts.append(f"{titles[name]} {', '.join(shown)}")
    return texts


@cache
def default_options(place: str, name: str) -> Mapping[str, Any]:
    """Default options of a component of the registry ``place`` (``module:name``).

    Empty when it is not registered here, so that all its options are named.
    """
    try:
        usual: dict[str, Any] = registered_entry(place, name).parse_options().model_dump(mode="json")
    except UserError:
        return {}
    return usual


def _either(values: list[Any], usual: Any) -> str:
    numbers = all(isinstance(value, int | float) for value in values)
    texts = [
        json.dumps(value) + (" (the default)" if value == usual else "")
        for value in sorted(values, key=None if numbers else json.dumps)
    ]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} or {texts[-1]}"
