"""Tables as people read them: rows of text, with the count beside every number and a gap where there is none.

A view is made once from a table of numbers and then shown alike in the terminal, in Markdown and in HTML.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from analysis.aggregate import highest, lines
from analysis.names import in_order, look, title

GAP = "–"


@dataclass(frozen=True)
class View:
    """A table to show: ``key`` names it in files and links; the first column is a label, the others are numbers."""

    key: str
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    footer: int = 0  # how many of the last rows describe the columns (chance, seeds, ...)


def number(value: Any, digits: int) -> str:
    """``value`` with ``digits`` decimals; a gap for null."""
    return GAP if value is None or pd.isna(value) else f"{value:.{digits}f}"


def spread(mean: Any, sd: Any, n: Any, digits: int, usual: int | None = None) -> str:
    """``0.71 ± 0.03``; n is added when it is 0 or 1 or, with ``usual``, when it differs from that."""
    seeds = 0 if n is None or pd.isna(n) else int(n)
    text = number(mean, digits)
    if text == GAP:
        return f"{GAP} (n={seeds})"
    if seeds > 1:
        text += f" ± {number(sd, digits)}"
    return text if seeds > 1 and (usual is None or seeds == usual) else f"{text} (n={seeds})"


def with_labels(table: pd.DataFrame) -> pd.DataFrame:
    """Add ``method_label`` and, for GECOBench, ``model_label``; options are named only where they tell rows apart."""
    out = table.copy()
    kind = "attribution" if "paradigm" in out.columns else "counterfactual"
    tails = _settings_tails(out)
    out["method_label"] = [title(kind, name) + tail for name, tail in zip(out["method"], tails, strict=True)]
    if "paradigm" in out.columns:
        several = out.groupby("paradigm")["encoder"].nunique()
        out["model_label"] = [
            title("paradigm", paradigm) + (f" ({encoder})" if several[paradigm] > 1 else "")
            for paradigm, encoder in zip(out["paradigm"], out["encoder"], strict=True)
        ]
    return out


def ordered(table: pd.DataFrame, kind: str, column: str, label: str) -> list[str]:
    """The distinct labels of ``table``, in the papers' order of the names in ``column``."""
    pairs = {(look(kind, name).rank, name, text) for name, text in zip(table[column], table[label], strict=True)}
    return list(dict.fromkeys(text for _, _, text in sorted(pairs)))


def accuracy_views(accuracy: pd.DataFrame, mass: pd.DataFrame) -> dict[tuple[str, str, str], tuple[str, int]]:
    """Test accuracy in percent and its n by (dataset, protocol, model label), for the footer of the mass table."""
    found: dict[tuple[str, str, str], tuple[str, int]] = {}
    if accuracy.empty or mass.empty:
        return found
    labels = mass[["encoder", "paradigm", "model_label"]].drop_duplicates()
    for row in lines(accuracy.merge(labels, on=["encoder", "paradigm"])):
        source = "test_accuracy" if pd.notna(row.test_accuracy) else "explained_accuracy"
        mean, sd, n = (getattr(row, source + end) for end in ("", "_sd", "_n"))
        text = spread(None if pd.isna(mean) else 100 * mean, None if pd.isna(sd) else 100 * sd, n, 1)
        found[(str(row.dataset), str(row.protocol), str(row.model_label))] = (text, int(n))
    return found


def mass_views(mass: pd.DataFrame, accuracy: pd.DataFrame) -> list[View]:
    """One view per dataset and protocol: methods down, models across."""
    if mass.empty:
        return []
    table = with_labels(mass)
    accuracies = accuracy_views(accuracy, table)
    views = []
    for dataset in in_order("dataset", table["dataset"]):
        for protocol, part in table[table["dataset"] == dataset].groupby("protocol", dropna=False, sort=True):
            views.append(_mass_view(dataset, str(protocol), part, accuracies))
    return views


def _mass_view(
    dataset: str, protocol: str, part: pd.DataFrame, accuracies: dict[tuple[str, str, str], tuple[str, int]]
) -> View:
    models = ordered(part, "paradigm", "paradigm", "model_label")
    methods = ordered(part, "attribution", "method", "method_label")
    usual = {model: int(part.loc[part["model_label"] == model, "mean_n"].max()) for model in models}
    cells = {(row.method_label, row.model_label): row for row in lines(part)}
    rows = []
    for method in methods:
        texts = []
        for model in models:
            cell: Any = cells.get((method, model))
            texts.append(GAP if cell is None else spread(cell.mean, cell.mean_sd, cell.mean_n, 3, usual[model]))
        rows.append((method, *texts))
    per_model = {model: part[part["model_label"] == model] for model in models}
    rows += [
        ("chance (share of marked words)", *(number(per_model[m]["chance"].mean(), 3) for m in models)),
        ("test accuracy of the model, %", *(accuracies.get((dataset, protocol, m), (GAP, 0))[0] for m in models)),
        ("seeds", *(str(usual[model]) for model in models)),
        ("sentences per seed, correct / all", *(_sentences(per_model[model]) for model in models)),
    ]
    notes = [
        "Mass accuracy over the test sentences that the model got right: mean over sentences within a seed, then "
        "mean ± standard deviation (ddof 1) over seeds."
    ]
    notes += _undefined_note(part)
    name = f"Mass accuracy: {title('dataset', dataset)}, protocol {protocol}"
    key = f"mass_accuracy_{dataset}_{protocol}"
    return View(key, name, ("Method", *models), tuple(rows), tuple(notes), footer=4)


def _sentences(part: pd.DataFrame) -> str:
    row = highest(part, "all_rows")
    seeds = max(int(row.seeds), 1)
    return f"{row.rows / seeds:.0f} / {row.all_rows / seeds:.0f}"


def _undefined_note(part: pd.DataFrame) -> list[str]:
    lost = part[part["all_undefined"] > 0]
    if lost.empty:
        return []
    total, rows = int(lost["all_undefined"].sum()), int(part["all_rows"].sum())
    worst = highest(lost, "all_undefined")
    most = f"{worst.method_label} on {worst.model_label}: {worst.reasons}"
    return [f"{total:,} of {rows:,} scored rows have no value and are left out of the means (most: {most})."]


def table_6_views(table: pd.DataFrame) -> list[View]:
    """One view per data set, protocol and seeding: methods down, metrics across, rates in percent."""
    header = (
        "Method", "Coverage %", "Base validity %", "Empirical robustness %", "End-to-end robustness %",
        "Distance", "Requests", "Base models",
    )  # fmt: skip
    metrics = ("coverage", "base_validity", "robustness", "end_to_end")

    def line(row: Any) -> tuple[str, ...]:
        usual = int(row.seeds)
        rates = (_percent(getattr(row, m), getattr(row, f"{m}_sd"), getattr(row, f"{m}_n"), usual) for m in metrics)
        distance = spread(row.distance, row.distance_sd, row.distance_n, 3, usual)
        return (row.method_label, *rates, distance, f"{int(row.requests):,}", str(usual))

    return _cfe_views(table, "table_6", "Counterfactuals", header, line, _table_6_notes)


def family_views(table: pd.DataFrame) -> list[View]:
    """One view per data set, protocol and seeding: methods down, change families across, robustness in percent."""
    if table.empty:
        return []
    labelled, views = with_labels(table), []
    for (dataset, protocol, seeding), part in _cfe_parts(labelled):
        families = in_order("family", part["family"])
        cells = {(row.method_label, row.family): row for row in lines(part)}
        rows = []
        for method in ordered(part, "counterfactual", "method", "method_label"):
            texts = []
            for family in families:
                cell: Any = cells.get((method, family))
                texts.append(GAP if cell is None else number(100 * cell.robustness, 1))
            rows.append((method, *texts))
        rows += _draw_rows(part, families)
        notes = _family_notes(part)
        name = f"Robustness by what changed: {title('dataset', dataset)}, protocol {protocol}, seeding {seeding}"
        header = ("Method", *(title("family", family) for family in families))
        footer = len(rows) - part["method_label"].nunique()
        views.append(View(f"families_{dataset}_{protocol}_{seeding}", name, header, tuple(rows), notes, footer))
    return views


def _family_notes(part: pd.DataFrame) -> tuple[str, ...]:
    notes = [
        "Empirical robustness in percent: of the answers that the base model accepts, the share that a changed model "
        "still accepts. Mean over base models."
    ]
    if (part["draws"] < part["models"]).any():
        notes.append(
            "Distinct draws: the paper's seeds are consecutive, so variants of different base models share random "
            "draws; standard deviations over base models are too small by that."
        )
    return tuple(notes)


def _draw_rows(part: pd.DataFrame, families: Sequence[str]) -> list[tuple[str, ...]]:
    known = part.drop_duplicates("family").set_index("family")
    variants = tuple(str(known.loc[family, "variants"]) for family in families)
    rows = [("variants per base model", *variants)]
    if known["draws"].notna().any():
        draws = (
            f"{number(known.loc[family, 'draws'], 0)} of {number(known.loc[family, 'models'], 0)}"
            for family in families
        )
        rows.append(("distinct draws of all variants", *draws))
    return rows


def _cfe_parts(table: pd.DataFrame) -> list[tuple[tuple[str, str, str], pd.DataFrame]]:
    parts = []
    for dataset in in_order("dataset", table["dataset"]):
        groups = table[table["dataset"] == dataset].groupby(["protocol", "seeding"], dropna=False, sort=True)
        for (protocol, seeding), part in groups:
            parts.append(((dataset, str(protocol), str(seeding)), part))
    return parts


def _cfe_views(
    table: pd.DataFrame,
    key: str,
    name: str,
    header: tuple[str, ...],
    line: Callable[[Any], tuple[str, ...]],
    notes: Callable[[pd.DataFrame], Sequence[str]],
) -> list[View]:
    if table.empty:
        return []
    labelled, views = with_labels(table), []
    for (dataset, protocol, seeding), part in _cfe_parts(labelled):
        by_label = {row.method_label: row for row in lines(part)}
        order = ordered(part, "counterfactual", "method", "method_label")
        rows = tuple(line(by_label[label]) for label in order)
        heading = f"{name}: {title('dataset', dataset)}, protocol {protocol}, seeding {seeding}"
        views.append(View(f"{key}_{dataset}_{protocol}_{seeding}", heading, header, rows, tuple(notes(part))))
    return views


def _percent(mean: Any, sd: Any, n: Any, usual: int) -> str:
    return spread(None if pd.isna(mean) else 100 * mean, None if pd.isna(sd) else 100 * sd, n, 1, usual)


def _table_6_notes(part: pd.DataFrame) -> list[str]:
    variants = sorted(set(part["variants"]))
    notes = [
        f"Mean ± standard deviation (ddof 1) over base models; {' or '.join(variants)} changed models per base model. "
        "Distance: mean L1 per feature, in units of the feature's median absolute deviation."
    ]
    failed = int(part["error"].sum())
    if failed:
        notes.append(
            f"{failed:,} of {int(part['requests'].sum()):,} requests ended in an error; they count as not covered."
        )
    return notes


def _settings_tails(table: pd.DataFrame) -> list[str]:
    """For each row the settings that tell it from other rows of the same axes, as `` [steps=50]``; else empty."""
    flat = {text: dict(_flatten(json.loads(text))) for text in set(table["settings"].dropna())}
    kinds = {name: set(group["settings"].dropna()) for name, group in table.groupby("method", sort=False)}
    tails = []
    for method, text in zip(table["method"], table["settings"], strict=True):
        others = [flat[other] for other in kinds[method]]
        mine = flat.get(text, {})
        unlike = [key for key in sorted(mine) if any(other.get(key) != mine[key] for other in others)]
        tails.append(" [" + ", ".join(f"{key.split('.')[-1]}={mine[key]}" for key in unlike) + "]" if unlike else "")
    return tails


def _flatten(value: Any, prefix: str = "") -> list[tuple[str, Any]]:
    if not isinstance(value, dict):
        return [(prefix, json.dumps(value))]
    return [pair for key in value for pair in _flatten(value[key], f"{prefix}.{key}" if prefix else key)]
