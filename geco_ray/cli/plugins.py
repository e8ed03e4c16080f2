"""``--plugins`` and ``--redo``: components from files of one's own, and finished cells to be computed again."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Annotated, Any

import typer
from rich.console import Console

from geco_ray.cells import Cell
from geco_ray.errors import UserError, simplify, suggest
from geco_ray.ledger import Ledger
from geco_ray.plugins import load_plugin
from geco_ray.table import amount

Plugins = Annotated[
    list[str] | None,
    typer.Option("--plugins", help="A file or module that registers components of your own; may be given again."),
]
Redo = Annotated[
    list[str] | None,
    typer.Option("--redo", help="Compute again all of a method, paradigm, family or data set; may be given again."),
]
_CHOSEN_BY = ("method", "paradigm", "family", "dataset", "encoder")


def load_plugins(references: Sequence[str] | None) -> None:
    """Load each file or module.

    Raises:
        UserError: one is not there or cannot be loaded.
    """
    for reference in references or ():
        load_plugin(reference)


def set_aside(names: Collection[str] | None, cells: Sequence[Cell], ledger: Ledger, console: Console) -> None:
    """Move the finished cells of some components or data sets into the run folder's quarantine.

    Raises:
        UserError: the grid has no such name. LeaseError: a run is going on.
    """
    from geco_ray.runtime.lease import lease

    if not names:
        return
    chosen = chosen_cells(names, cells)
    with lease(ledger.storage):
        count = 0
        for stage in dict.fromkeys(cell.stage for cell in chosen):
            done = ledger.done(stage)
            again = [cell.id for cell in chosen if cell.stage == stage and cell.id in done]
            ledger.quarantine(stage, again)
            count += len(again)
    text = f"{amount(count, 'finished cell is', 'finished cells are')} computed again; the old ones are in"
    console.print(f"{text} {ledger.root}/quarantine", soft_wrap=True)


def chosen_cells(names: Collection[str], cells: Sequence[Cell]) -> list[Cell]:
    """The cells that one of the names is a value of: of their method, paradigm, family, data set or encoder.

    Raises:
        UserError: a name that no cell has.
    """
    values = [_values(cell.params()) for cell in cells]
    known = sorted({value for of_cell in values for value in of_cell})
    forms = {simplify(value) for value in known}
    for name in names:
        if simplify(name) not in forms:
            raise UserError(f"the grid has no {name!r}", where="--redo", remedy=suggest(name, known).rstrip("."))
    wanted = {simplify(name) for name in names}
    return [cell for cell, own in zip(cells, values, strict=True) if wanted & {simplify(value) for value in own}]


def _values(params: dict[str, Any]) -> set[str]:
    return {str(params[key]) for key in _CHOSEN_BY if params.get(key)}
