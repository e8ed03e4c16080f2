"""What the axes of any benchmark are made of: one value or a list of them, seeds, counts, components with options."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from geco_ray.errors import UserError
from geco_ray.plan.gridfile import GridText, KeyPath

T = TypeVar("T")


class Axes(BaseModel):
    """Base of a benchmark's axes: frozen, strict types, unknown keys refused. Every field reaches a cell's identity."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def _one_or_many(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else (value,)


def _count_or_list(value: Any) -> Any:
    if not isinstance(value, int) or isinstance(value, bool):
        return tuple(value) if isinstance(value, list) else value
    if not 1 <= value <= _LARGEST_COUNT:
        raise ValueError(f"a count is between 1 and {_LARGEST_COUNT}; write [{value}] for the one number {value}")
    return tuple(range(value))


def _list_of_seeds(value: Any) -> Any:
    """Only a list: ``base_seeds: 2026`` could be one seed or 2,026 of them."""
    if isinstance(value, int) and not isinstance(value, bool):
        raise ValueError(f"base seeds are a list; write [{value}] for the one seed {value}")
    return tuple(value) if isinstance(value, list) else value


def _named(value: Any) -> Any:
    """A component is its name, or a mapping of ``name`` and the options that differ from the defaults."""
    if isinstance(value, dict):
        if "name" not in value:
            raise ValueError("a mapping here needs the key 'name'")
        options = {key: item for key, item in value.items() if key != "name"}
        return {"name": value["name"], "options": options}
    return {"name": value, "options": {}}


class ComponentChoice(Axes):
    """A paradigm, method or family as a grid names it, with the options it sets."""

    name: str
    options: dict[str, Any] = {}


_LARGEST_COUNT = 1000
Axis = Annotated[tuple[T, ...], BeforeValidator(_one_or_many), Field(min_length=1)]
Component = Annotated[ComponentChoice, BeforeValidator(_named)]
Protocol = Literal["paper", "corrected"]
Count = Annotated[int, Field(ge=1)]
Natural = Annotated[int, Field(ge=0, le=2**32 - 1)]  # NumPy's legacy seeding, which scikit-learn uses, takes no more
Seeds = Annotated[tuple[Natural, ...], BeforeValidator(_list_of_seeds), Field(min_length=1)]
Numbers = Annotated[tuple[Natural, ...], BeforeValidator(_count_or_list), Field(min_length=1)]  # 3 is 0, 1, 2


def refuse_duplicates(values: Iterable[Any], path: KeyPath, text: GridText, show: Callable[[Any], str] = str) -> None:
    """Refuse an axis that lists one value twice: it would count one result as two.

    Raises:
        UserError: it does, with the place of the second.
    """
    seen: list[Any] = []
    for number, value in enumerate(values):
        if value in seen:
            shown = value.name if isinstance(value, ComponentChoice) else show(value)
            raise UserError(
                f"{'.'.join(map(str, path))} lists {shown!r} twice",
                where=text.place((*path, number)),
                remedy="Keep one",
            )
        seen.append(value)
