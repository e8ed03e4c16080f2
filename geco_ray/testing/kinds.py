"""Which checks a component is held to, by what it is registered as."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from geco_ray.cfe.changes.base import FAMILIES
from geco_ray.cfe.methods.base import METHODS
from geco_ray.errors import UserError
from geco_ray.geco.attribution.base import ATTRIBUTIONS
from geco_ray.geco.paradigms.base import PARADIGMS
from geco_ray.registry import Entry, Registry
from geco_ray.testing.attributions import check_attribution_method
from geco_ray.testing.changes import check_change_family
from geco_ray.testing.counterfactuals import check_counterfactual_method
from geco_ray.testing.faults import Conformance
from geco_ray.testing.paradigms import check_paradigm

_REGISTRIES: tuple[Registry[Any], ...] = (ATTRIBUTIONS, PARADIGMS, FAMILIES, METHODS)


def check(reference: str, options: Mapping[str, object] | None = None) -> Conformance:
    """Run the checks of a component.

    Args:
        reference: ``my_method.py:nearest``, ``my_package.my_method:nearest``, or the name of an installed one.
        options: that make it quick.

    Raises:
        UserError: there is no such file, module or component.
    """
    registry, entry = find_component(reference)
    if registry is FAMILIES:
        return check_change_family(entry)
    checks: dict[str, Callable[..., Conformance]] = {
        ATTRIBUTIONS.kind: check_attribution_method,
        PARADIGMS.kind: check_paradigm,
        METHODS.kind: check_counterfactual_method,
    }
    return checks[registry.kind](entry, options)


def find_component(reference: str) -> tuple[Registry[Any], Entry[Any]]:
    """The registry that has the component, and its entry.

    Raises:
        UserError: none has it; the message is of the registry that something in the file is registered in.
    """
    missing: list[UserError] = []
    for registry in _REGISTRIES:
        try:
            return registry, registry.get(reference, folder=Path.cwd())
        except UserError as error:
            missing.append(error)
    source, _, name = reference.rpartition(":")
    kinds = ", ".join(registry.kind for registry in _REGISTRIES)
    close = next((error for error in missing if "Did you mean" in str(error)), None)
    if close is not None or "there is no such file" in str(missing[0]) or "cannot be loaded" in str(missing[0]):
        raise close or missing[0]
    remedy = "Register it there, see docs/extending.md"
    raise UserError(f"there is no component {name!r}", where=source or None, expected=f"one of {kinds}", remedy=remedy)
