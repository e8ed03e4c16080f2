"""What a trial of counterfactuals on changed models gives: tables, and a page of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from geco_ray.cfe.changes.base import FAMILIES
from geco_ray.cfe.metrics import METRICS
from geco_ray.errors import UserError
from geco_ray.files.atomic import write_whole
from geco_ray.table import PrintedTable, cell

if TYPE_CHECKING:
    import pyarrow as pa

NO_CHANGE = "no change"
SHOWN = ("empirical_robustness", "end_to_end_robustness", "conditional_survival")
"""The metrics of the summary."""
_FORMS = {".md": "markdown", ".html": "html", ".tex": "latex"}


@dataclass(frozen=True, eq=False)
class Survival:
    """Which counterfactuals survived which changed models.

    Attributes:
        table: a row per request, family and variant: ``request``, ``family``, ``variant``, ``level``, ``changed``
            (whether the variant says anything else than the model refitted unchanged), ``status`` of the request,
            ``survived`` (null unless the status is ``found`` and the variant was made), ``factual_still_adverse``,
            ``reason`` (why a variant was not made).
        requests: a row per request: ``request``, ``status``, ``reason``, ``base_probability``, ``distance`` (mean
            over columns, in median absolute deviations, 1 for a changed category), ``changed_columns``,
            ``nearest_favourable`` and ``relative_distance`` (see
            :func:`geco_ray.cfe.constraints.plausibility.plausibility`).
        summary: a row per family: numbers of variants made, unchanged and failed, counts and metrics over those
            that changed something, ``verdict``: ``changed``, ``no change`` or ``failed``.
        notes: what a reader must know, one sentence each.
    """

    table: pa.Table
    requests: pa.Table
    summary: pa.Table
    notes: tuple[str, ...]

    def printed(self) -> PrintedTable:
        """The summary for people, notes below."""
        rows = [[_title(row["family"]), *_shown(row)] for row in self.summary.to_pylist()]
        header = ("Family", "Variants", *(f"{METRICS[name].title} %" for name in SHOWN))
        cells = tuple(tuple(cell(value) for value in row) for row in rows)
        status = self.requests["status"].to_pylist()
        counts = ", ".join(f"{status.count(state)} {state}" for state in dict.fromkeys(sorted(status)))
        title = f"Survival of {len(status)} counterfactuals ({counts})"
        return PrintedTable(title, header, cells, self.notes, labelled=True)

    def report(self, path: str | Path) -> Path:
        """Write the summary as ``.html``, ``.md`` or ``.tex``, and the whole table beside it as ``.csv``.

        Returns:
            The path of the page.

        Raises:
            UserError: another ending.
        """
        import io

        from pyarrow import csv

        page = Path(path)
        if page.suffix not in _FORMS:
            expected = ", ".join(_FORMS)
            raise UserError("a report has another ending", where=str(page), found=page.suffix, expected=expected)
        stream = io.BytesIO()
        csv.write_csv(self.table, stream)
        write_whole(page.with_suffix(".csv"), stream.getvalue())
        write_whole(page, self.printed().render(_FORMS[page.suffix]).encode())
        return page

    def __str__(self) -> str:
        return self.printed().render("markdown")


def _title(family: str) -> str:
    return FAMILIES.get(family).title


def _shown(row: dict[str, object]) -> list[object]:
    variants = f"{row['variants']}"
    if row["unchanged"] and row["verdict"] == "changed":
        variants += f" ({row['unchanged']} unchanged)"
    if row["failed"]:
        variants += f" ({row['failed']} failed)"
    if row["verdict"] != "changed":
        return [variants, row["verdict"], None, None]
    values = [row[name] for name in SHOWN]
    return [variants, *(f"{100 * value:.1f}" if isinstance(value, float) else None for value in values)]
